"""Policy: rules, approvals, secrets and provenance of values."""

from neuraxis.policy.rules import Policy, Rule

__all__ = ["Policy", "Rule"]
