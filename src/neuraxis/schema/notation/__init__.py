"""The YAML notation of both plugin protocols, read and written (rules B28-B50)."""
