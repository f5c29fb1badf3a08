"""Which peers exist: name -> (venv, adapter module, variant). Order is the order in the tables."""
PEERS = {
    # the floor: what a careful hand-written loop costs
    "floor-stdlib": ("floor", "floor", "stdlib"),
    "floor-msgspec": ("floor", "floor", "msgspec"),
    "floor-msgspec-raw": ("floor", "floor", "msgspec_raw"),
    "floor-jsonschema": ("floor", "floor", "jsonschema"),
    "floor-jsonschema-rs": ("floor", "floor", "jsonschema_rs"),
    "floor-json-jsonschema-rs": ("floor", "floor", "json_rs"),
    # ours
    "neuraxis": ("neuraxis", "neuraxis_", ""),
    # the peers
    "concopilot": ("concopilot", "concopilot_", ""),
    "langchain-core": ("langchain", "langchain_", "core"),
    "langgraph-ToolNode": ("langchain", "langchain_", "toolnode"),
    "pydantic-ai": ("pydantic_ai", "pydantic_ai_", ""),
    "openai-agents": ("openai_agents", "openai_agents_", ""),
    "smolagents": ("smolagents", "smolagents_", ""),
    "mcp": ("mcp", "mcp_", ""),
    "fastmcp": ("fastmcp", "fastmcp_", ""),
    "semantic-kernel": ("semantic_kernel", "semantic_kernel_", ""),
    "toolregistry": ("toolregistry", "toolregistry_", ""),
    # opt-in layers above two of them, for what they add (P2, P4, P6)
    "deepagents": ("deepagents", "deepagents_", ""),
    "pydantic-ai+harness": ("pydantic_ai_harness", "pydantic_ai_harness_", ""),
}
#: only for P7: peers whose model writes code instead of JSON
CODE_PEERS = {
    "smolagents CodeAgent": ("smolagents", "smolagents_", "code"),
    "pydantic-ai CodeMode": ("pydantic_ai_harness", "pydantic_ai_harness_", "code"),
}
#: only for P8: ours without its early start
LATE_PEERS = {"neuraxis, early start off": ("neuraxis", "neuraxis_", "late")}
#: only for P3: peers with their tools behind a search
SEARCH_PEERS = {
    "pydantic-ai, tool search": ("pydantic_ai", "pydantic_ai_", "search"),
    "fastmcp, BM25 search": ("fastmcp", "fastmcp_", "search"),
    "toolregistry, discovery": ("toolregistry", "toolregistry_", "search"),
}
