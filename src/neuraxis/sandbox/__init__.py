"""What foreign code, pages and paths may do: files, requests and processes held back."""
