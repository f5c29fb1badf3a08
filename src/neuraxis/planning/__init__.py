"""Calls become a checked, ordered plan; plan files and drawings of plans."""
