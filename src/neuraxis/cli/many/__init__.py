"""Commands for many requests."""
