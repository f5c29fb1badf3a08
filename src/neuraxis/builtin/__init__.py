"""Built-in plugins: each a folder with config.yaml and code."""
