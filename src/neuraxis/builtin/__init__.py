"""Plugins that come with the package: each a folder with config.yaml and code."""
