"""MCP client: the tools, resources and prompts of MCP servers as checked commands."""
