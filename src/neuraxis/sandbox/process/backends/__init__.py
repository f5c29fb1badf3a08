"""One module for each kind of sandbox."""
