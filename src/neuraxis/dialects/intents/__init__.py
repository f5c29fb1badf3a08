"""Tool intents: fenced JSON blocks of calls."""
