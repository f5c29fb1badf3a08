"""Agent Skills as plugins."""
