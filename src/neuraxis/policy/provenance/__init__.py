"""Provenance: where every value came from (taint tracking)."""
