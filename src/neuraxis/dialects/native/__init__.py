"""The provider's own tool calls."""
