"""Readers of table files: CSV, JSON, Excel, Parquet."""
