"""Sandbox for untrusted code, file paths and URLs."""
