"""Families: the forms in which models write tool calls as text."""
