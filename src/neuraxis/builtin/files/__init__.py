"""Plugin `files`; config.yaml describes it."""
