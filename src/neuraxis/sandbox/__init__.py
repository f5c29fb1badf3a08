"""What foreign code, pages and paths may do: guarded files, requests, processes."""
