"""Readers of table files: CSV, JSON, Parquet."""
