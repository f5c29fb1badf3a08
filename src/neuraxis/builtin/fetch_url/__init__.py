"""The code of the plugin `fetch_url`; config.yaml describes it."""
