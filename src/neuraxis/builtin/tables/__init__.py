"""The code of the plugin `tables`; config.yaml describes it."""
