"""Scripts in a process that may do little: choose a backend, run, supervise."""
