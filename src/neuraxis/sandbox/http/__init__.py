"""Guarded HTTP client: no request to private networks."""
