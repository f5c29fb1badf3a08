"""Terminal output: text, progress, answers, pictures."""
