"""The code of the plugin `files`; config.yaml describes it."""
