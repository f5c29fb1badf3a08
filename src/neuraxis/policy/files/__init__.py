"""Which uses of the workspace's files need no approval."""
