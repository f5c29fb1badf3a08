"""Policy: rules, approvals, secrets and provenance of values."""

from neuraxis.policy.rules import DEFAULT, EVERYTHING, Policy, Rule, policy_from

__all__ = ["DEFAULT", "EVERYTHING", "Policy", "Rule", "policy_from"]
