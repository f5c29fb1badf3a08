"""Plugin `tables`; config.yaml describes it."""
