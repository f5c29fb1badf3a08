"""Neuraxis: a runtime between a language model and everything it can call."""

__version__ = "0.1.0"
