"""Sessions: the agent loop, its configuration, runs, answers, resuming."""

from neuraxis.session.session import Session

__all__ = ["Session"]
