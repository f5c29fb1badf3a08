"""HTTP requests that cannot reach what they should not."""
