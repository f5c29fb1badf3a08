"""Parsers without side effects: JSON in prose, strict JSON, YAML with lines."""
