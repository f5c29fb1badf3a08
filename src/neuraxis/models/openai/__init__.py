"""Any OpenAI-compatible server."""
