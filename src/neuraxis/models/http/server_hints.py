"""Hints for the user about a server that does not answer."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from neuraxis.models.http.settings import Endpoint, is_loopback

_PORTS = {
    11434: "Ollama (`ollama serve`)",
    8080: "llama.cpp (`llama-server`)",
    8000: "vLLM (`vllm serve NAME`)",
    1234: "LM Studio",
}
"""Servers by their default port."""
_KINDS = {"ollama": 11434, "llamacpp": 8080, "vllm": 8000, "lmstudio": 1234}
_UNKNOWN = ("Name or service", "nodename nor", "getaddrinfo", "name resolution")
"""Substrings of operating systems' messages for unknown host names."""
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER", "record layer")


def unreachable(endpoint: Endpoint, reason: str) -> str:
    """Return a hint about a server that could not be reached."""
    parts = urlsplit(endpoint.url)
    address = (
        f"The address {endpoint.url} comes from the model's name, --base-url, "
        f"the setting {endpoint.says_where}. Try it with `neuraxis models test`"
    )
    if "CERTIFICATE" in reason:
        return (
            "Its certificate is not trusted here: name the file of the authority that "
            "signed it in SSL_CERT_FILE"
        )
    if any(word in reason for word in _NO_TLS):
        plain = endpoint.url.replace("https://", "http://", 1)
        if is_loopback(parts.hostname or ""):
            return f"It does not speak https there: write {plain}"
        return (
            f"It does not speak https there: is the port right? With {plain} the key "
            "and all that is said would travel for everybody to read"
        )
    if any(word in reason for word in _UNKNOWN):
        return f"No machine of that name is known: is it spelt right? {address}"
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not is_loopback(parts.hostname or "") and port not in _PORTS:
        return (
            f"Is the network there, and does it need a proxy (HTTPS_PROXY)? {address}"
        )
    if (usual := _PORTS.get(port)) is not None:
        return f"Is the server started? {port} is the port of {usual}. {address}"
    ports = ", ".join(f"{number} for {name}" for number, name in _PORTS.items())
    return f"Is the server started, and on this port? Usual are {ports}. {address}"


_NO_TOOLS = re.compile(
    r"tools?\b[^.]{0,40}(?:not|n't|un)[^.]{0,10}support|support[^.]{0,20}\btools?\b"
    r"|tool[ _-]choice|tool[ _-]call[ _-]parser|tools param|param: tools"
    r"|function calling is not",
    re.IGNORECASE,
)
_NO_JINJA = re.compile(r"--jinja|unsupported param: tools", re.IGNORECASE)
"""How llama.cpp refuses tools: with the status of a fault."""
_MAX_TOKENS = re.compile(
    r"max[ _](?:(?:completion|output|new)[ _])?tokens\W{0,3}"
    r"(?:must(?! be (?:greater|more|larger|at least|positive|>))"
    r"|is too (?:large|big|high)|exceeds)",
    re.IGNORECASE,
)
_TOO_LONG = re.compile(
    r"context[ _-](?:length|window|size)|too many tokens|prompt is too long"
    r"|exceed[^.]{0,40}tokens",
    re.IGNORECASE,
)


def refusal(message: str) -> str:
    """Return a hint about a request that a server refused, or nothing."""
    if _NO_TOOLS.search(message):
        return (
            " (with the dialect intents, which is the default, no tool calls of the "
            "server are needed)"
        )
    if _MAX_TOKENS.search(message):
        return " (the option max_tokens is more than this model writes: lower it)"
    if _TOO_LONG.search(message):
        return (
            " (the prompt is longer than the model's context: give it a larger one "
            "(for local: the setting local.context), or send less, with --no-builtin "
            "on the command line or Options(prompt_tokens=..., catalog_limit=...) in "
            "a program)"
        )
    return ""


def is_refusal(message: str) -> bool:
    """Return whether a fault's words are a refusal: asking again is useless."""
    return bool(_NO_JINJA.search(message))


def suggested_model(name: str) -> str:
    """Return the model name that was probably meant, or ""."""
    kind, colon, rest = name.partition(":")
    word = kind.casefold().replace(".", "").replace("-", "").replace("_", "")
    if colon and word in _KINDS:
        return f"http://127.0.0.1:{_KINDS[word]}/v1#{rest.strip('/') or 'NAME'}"
    if "#" in name and ("." in kind or word == "localhost"):
        return f"http://{name}"
    begins = {"claude": "anthropic", "gemini": "gemini", "gpt-": "openai"}
    begins |= {"chatgpt": "openai", "o3": "openai", "o4": "openai"}
    for start, owner in begins.items():
        if name.startswith(start) and not colon and name != owner:
            return f"{owner}:{name}"
    for owner, provider in (("anthropic", "anthropic"), ("google", "gemini")):
        if name.startswith(f"{owner}/"):
            return f"{provider}:{name.partition('/')[2]}"
    return f"openai:{name[7:]}" if name.startswith("openai/") else ""
