"""The code of the plugin `plots`; config.yaml describes it."""
