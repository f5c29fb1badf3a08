"""Plugin `python_file`; config.yaml describes it."""
