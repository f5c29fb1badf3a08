"""Search for commands, and the choice of those a prompt shows."""
