"""The code of the plugin `python_file`; config.yaml describes it."""
