"""Python for WebAssembly."""
