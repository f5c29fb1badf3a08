"""Plugin `images`; config.yaml describes it."""
