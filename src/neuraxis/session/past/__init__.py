"""What the journal tells of a session: its history, and a plan that waits."""
