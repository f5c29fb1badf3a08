"""The code of the plugin `assets`; config.yaml describes it."""
