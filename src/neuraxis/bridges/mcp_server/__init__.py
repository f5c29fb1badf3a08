"""MCP server: the plugins of a session, offered to any MCP client."""
