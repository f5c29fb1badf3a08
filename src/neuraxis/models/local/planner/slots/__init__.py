"""Arguments of a call, read from a request."""
