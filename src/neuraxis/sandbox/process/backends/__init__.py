"""Sandbox backends: one module for each kind."""
