"""Envelope dialects: the JSON messages of plugin protocols v1 and v2."""
