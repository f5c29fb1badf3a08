"""Earlier part of a session, read from its journal."""
