"""Tools of other frameworks as plugins, and plugins as their tools.

Each function needs the framework's package, which is imported when it is called.
"""

from __future__ import annotations

from neuraxis.bridges.frameworks.functions import from_openai
from neuraxis.bridges.frameworks.langchain import from_langchain, to_langchain
from neuraxis.bridges.frameworks.openai_agents import to_openai_agents
from neuraxis.bridges.frameworks.pydantic_ai import from_pydantic_ai, to_pydantic_ai
from neuraxis.bridges.frameworks.smolagents import from_smolagents, to_smolagents

__all__ = [
    "from_langchain",
    "from_openai",
    "from_pydantic_ai",
    "from_smolagents",
    "to_langchain",
    "to_openai_agents",
    "to_pydantic_ai",
    "to_smolagents",
]
