"""Run scripts in an isolated process: choose a backend, run, supervise."""
