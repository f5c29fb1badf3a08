"""Weights that run in process by llama.cpp."""
