"""The code of the plugin `web_search`; config.yaml describes it."""
