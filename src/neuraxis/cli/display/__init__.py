"""What a person sees in the terminal: text, progress, answers, pictures."""
