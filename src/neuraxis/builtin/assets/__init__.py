"""Plugin `assets`; config.yaml describes it."""
