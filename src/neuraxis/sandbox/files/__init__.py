"""Files of a workspace that cannot lead out of it."""
