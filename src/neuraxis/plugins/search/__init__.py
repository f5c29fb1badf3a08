"""Search for commands, and selection of the commands that a prompt shows."""
