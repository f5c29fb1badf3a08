"""Manifests (`config.yaml`) of plugin protocols v1 and v2."""
