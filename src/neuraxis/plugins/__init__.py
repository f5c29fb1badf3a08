"""Plugins: load manifests and Python functions as commands that run."""
