"""Plugin `plots`; config.yaml describes it."""
