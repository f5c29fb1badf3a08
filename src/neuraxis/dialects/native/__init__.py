"""Native dialect: the provider's own tool calls."""
