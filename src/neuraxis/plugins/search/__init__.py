"""Search in commands: an index of words, and what a prompt shows of many."""
