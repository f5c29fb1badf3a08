"""Plugin `fetch_url`; config.yaml describes it."""
