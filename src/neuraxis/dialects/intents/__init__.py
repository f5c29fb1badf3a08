"""Intent dialect: calls in fenced JSON blocks."""
