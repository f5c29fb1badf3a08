"""Offline planner, the model `local:`: no weights, no server, no key."""
