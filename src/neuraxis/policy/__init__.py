"""May a call run: rules, approvals, secrets, and where every value came from."""

from neuraxis.policy.rules import Policy, Rule

__all__ = ["Policy", "Rule"]
