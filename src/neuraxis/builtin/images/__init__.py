"""The code of the plugin `images`; config.yaml describes it."""
