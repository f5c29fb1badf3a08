"""OpenAPI 2.0, 3.0 and 3.1 documents, and old `ai-plugin.json`, as plugins."""
