"""Long conversations: prompts that fit."""
