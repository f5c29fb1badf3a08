"""Asset store: objects that travel by reference."""
