"""Python functions and classes as plugins: type hints become schemas."""
