"""MCP client: tools, resources and prompts of servers as commands."""
