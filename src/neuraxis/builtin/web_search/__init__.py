"""Plugin `web_search`; config.yaml describes it."""
