"""Workspace file access that refuses paths outside the workspace."""
