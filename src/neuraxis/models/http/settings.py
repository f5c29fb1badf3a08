"""Settings of a model server: address, key and options.

The command line, the environment and the user's settings file may choose where a key is
sent. A project's file may come from anybody, so a server that it names gets no key (and
`neuraxis.settings` refuses a `key_env` there).
"""

from __future__ import annotations

import ipaddress
import math
import os
from collections.abc import Callable, Mapping
from hashlib import blake2b
from urllib.parse import SplitResult, urlsplit, urlunsplit

from msgspec import Struct

from neuraxis.errors import ConfigError, ModelUnavailable
from neuraxis.formatting import quote
from neuraxis.models.grammar import KINDS, Kind
from neuraxis.settings import Settings, unknown_option, wrong_option
from neuraxis.specs import Json

DEFAULT_URL = "https://api.openai.com/v1"
KEY_ENV = "OPENAI_API_KEY"
URL_ENV = "OPENAI_BASE_URL"


class Options(Struct, frozen=True, kw_only=True):
    """Request options and timeouts (seconds).

    `extra` is added to the request's body. A request is repeated at most `max_retries`
    times and never later than `retry_seconds` after its start. A wait begins at
    `backoff` and doubles each time up to `max_wait`; a longer one that the server
    asks for is respected, if it ends in time.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    thinking: int | str | None = None
    """Budget of thinking in tokens (0: none), or `low`, `medium`, `high`."""
    tool_choice: str | None = None
    """`auto`, `none`, `required` (some tool), or the name of the tool to call."""
    parallel_tool_calls: bool | None = None
    """Whether one reply may hold several native tool calls."""
    output_schema: Mapping[str, Json] | None = None
    """JSON Schema that the text of each reply must fit."""
    grammar: Kind | None = None
    """Kind of grammar that constrains calls in text: `llama.cpp` or `vllm`."""
    vision: bool | None = None
    """Whether it accepts pictures and PDF files.

    None: they are sent, and replaced by words if the server refuses them."""
    cache: bool = True
    """Mark the constant part for the prompt cache, if the server needs a mark."""
    requests_per_minute: int | None = None
    """Maximum requests to this model by the whole process; others wait."""
    extra: Mapping[str, Json] = {}
    max_retries: int = 3
    retry_seconds: float = 90.0
    backoff: float = 0.5
    max_wait: float = 30.0
    connect_timeout: float = 10.0
    first_byte_timeout: float = 180.0
    """Seconds until the first byte: a local model first reads the whole prompt."""
    stall_timeout: float = 60.0
    """Seconds between two portions of the stream; comment lines count."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """Server: its base URL, and its key's variable (empty: none)."""

    url: str
    key_env: str = ""
    keyless_because: str = ""
    """Why no key is sent, for the error after a refusal."""
    says_where: str = f"openai.base_url or {URL_ENV}"
    """The setting and the variable that name the server, for the same error."""
    own_key: str | None = None
    """The key that the program passed; None: the variable's is sent."""

    def __repr__(self) -> str:
        return (
            f"Endpoint(url={self.url!r}, key_env={self.key_env!r})"  # without the key
        )

    @property
    def account(self) -> str:
        """Return a value that identifies its key without revealing it."""
        if self.own_key is None:
            return self.key_env
        return blake2b(self.own_key.encode(errors="replace")).hexdigest()

    @property
    def key_name(self) -> str:
        """Return the name of its key for messages."""
        if self.own_key is None:
            return f"The environment variable {self.key_env}"
        return "The argument key="

    @property
    def host(self) -> str:
        """Return host and port, to name the server in messages."""
        return urlsplit(self.url).netloc

    @property
    def loopback(self) -> bool:
        """Return whether the server is on this machine."""
        return is_loopback(urlsplit(self.url).hostname or "")

    def key_header(self, key: str) -> Mapping[str, str]:
        """Return the header with a key; no header without a key.

        Azure expects its keys in a header of its own, and Entra tokens, which begin as
        every JSON Web Token does, in the usual one
        (learn.microsoft.com/azure/ai-services/openai/reference#authentication). Its
        newer paths accept both as OpenAI does.
        """
        if not key:
            return {}
        if "/openai/deployments/" in self.url and not key.startswith("eyJ"):
            return {"api-key": key}
        return {"authorization": f"Bearer {key}"}

    def key(self, environ: Mapping[str, str] | None = None) -> str:
        """Read the key; empty if none is set or needed.

        Raises:
            ModelUnavailable: the server needs a key and there is none, or a header
                cannot contain it.
        """
        if self.own_key is None and not self.key_env:
            return ""
        env = os.environ if environ is None else environ
        secret = env.get(self.key_env, "") if self.own_key is None else self.own_key
        key = secret.strip()
        if not key and urlsplit(self.url).hostname in _KEYED_HOSTS:
            advice = f"set the environment variable {self.key_env}"
            if self.own_key is not None:
                advice = "the argument key= is empty; give the key"
            raise ModelUnavailable(
                f"No key for {self.host}: {advice}, or choose another model, such as "
                "local: which needs none."
            )
        if not all("!" <= char <= "~" for char in key):
            raise ModelUnavailable(
                f"{self.key_name} holds characters that no key may have."
            )
        return key


class Provider(Struct, frozen=True, kw_only=True):
    """Defaults of one kind of model server."""

    section: str
    """Its table in the settings, with `base_url` and `key_env`."""
    url: str
    """The base URL; empty: each server has its own."""
    key_env: str
    url_env: str
    path: str = "/v1"
    """Default path for a base URL without one."""
    or_else: str = ""
    """What gives the address instead, for the error message."""


OPENAI = Provider(section="openai", url=DEFAULT_URL, key_env=KEY_ENV, url_env=URL_ENV)
AZURE = Provider(
    section="azure",
    url="",
    key_env="AZURE_OPENAI_API_KEY",
    url_env="AZURE_OPENAI_ENDPOINT",
    path="/openai/v1",
)
_KEYED_HOSTS = (
    "api.openai.com",
    "api.anthropic.com",
    "generativelanguage.googleapis.com",
)
"""Servers that require a key."""
_PROJECTS = (
    "its address stands in a project's file, which may not choose where a key is "
    "sent; put openai.base_url in your own settings or in the environment"
)


def is_loopback(host: str) -> bool:
    """Return whether a host name or address means this machine."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def base_url(url: str, where: str, default_path: str = "/v1") -> str:
    """Return a base URL in normal form.

    No `/` at the end, no fragment, the default path if it has none.

    Raises:
        ConfigError: it is not a server's URL, or contains a key.
    """
    try:
        parts = urlsplit(url.strip())
        port_fits = parts.port is None or parts.port > 0
    except ValueError as error:
        raise ConfigError(f"{where}: not a URL: {error}") from error
    if "@" in parts.netloc:
        raise ConfigError(
            f"{where}: expected a URL without a name or key in it. Put the key in an "
            "environment variable and name that in openai.key_env."
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_fits:
        raise ConfigError(
            f"{where}: expected a URL such as http://127.0.0.1:8080/v1, "
            f"got {quote(url)}"
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions") or default_path
    return urlunsplit(SplitResult(parts.scheme, parts.netloc, path, parts.query, ""))


def chat_url(base: str) -> str:
    """Return the address to post to; it keeps a query (Azure's `api-version`)."""
    return address_with(base, "/chat/completions")


def address_with(base: str, path: str) -> str:
    """Append a path to a base URL and keep its query."""
    parts = urlsplit(base)
    return urlunsplit(parts._replace(path=parts.path.rstrip("/") + path))


def named_endpoint(
    name: str, settings: Settings, provider: Provider = OPENAI
) -> Endpoint:
    """Return the server of `openai:NAME`, or of another kind's name."""
    environ_url = os.environ.get(provider.url_env, "").strip()
    section = provider.section
    says_where = f"{section}.base_url or {provider.url_env}"
    for key in (f"models.{name}.base_url", f"{section}.base_url"):
        if base := settings.get(key):
            url = base_url(_string(base, key), key, provider.path)
            trusted = not settings.is_of_project(key)
            break
    else:
        url = provider.url
        if environ_url:
            url = base_url(environ_url, provider.url_env, provider.path)
        trusted = True
    if not url:
        raise ConfigError(
            f"{section}:{name}: expected the server's address in {section}.base_url "
            f"or {provider.url_env}{provider.or_else}, got none"
        )
    if not trusted:
        return Endpoint(
            url=url,
            keyless_because=_PROJECTS.replace("openai.", f"{section}."),
            says_where=says_where,
        )
    key_env = (
        _key_env(settings, f"models.{name}.key_env", f"{section}.key_env")
        or provider.key_env
    )
    return Endpoint(url=url, key_env=key_env, says_where=says_where)


def url_endpoint(url: str, name: str, settings: Settings) -> Endpoint:
    """Return the server of `http://HOST/v1#NAME`.

    It gets the general key only if it is also the server of `openai:`.
    """
    base = base_url(url, "the model's URL")
    is_projects = _is_projects_choice(base, settings)
    key_env = _key_env(settings, f"models.{name}.key_env")
    if key_env and not is_projects:
        return Endpoint(url=base, key_env=key_env)
    general = named_endpoint(name, settings)
    if general.key_env and _origin(general.url) == _origin(base):
        return Endpoint(url=base, key_env=general.key_env)
    if is_projects:
        return Endpoint(url=base, keyless_because=_PROJECTS)
    return Endpoint(
        url=base,
        keyless_because=f"none is set for {urlsplit(base).netloc}; name its variable "
        f"in models.{name}.key_env",
    )


def _is_projects_choice(base: str, settings: Settings) -> bool:
    """Return whether a project's settings file names that server in `model`."""
    model = settings.get("model")
    if not settings.is_of_project("model") or not isinstance(model, str):
        return False
    try:
        return _origin(base_url(model.partition("#")[0], "model")) == _origin(base)
    except ConfigError:
        return False


def _key_env(settings: Settings, *keys: str) -> str:
    for key in keys:
        name = settings.get(key)
        if name:
            return _string(name, key)
    return ""


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    default = 443 if parts.scheme == "https" else 80
    return parts.scheme, parts.hostname or "", parts.port or default


def _string(value: Json, where: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{where}: expected a string, got {quote(value)}")
    return value


def options_for(name: str, settings: Settings) -> Options:
    """Return the options of `models.NAME.*`; environment values are texts.

    Raises:
        ConfigError: an unknown option, or a value of a wrong type.
    """
    values: dict[str, Json] = {}
    trees: dict[str, dict[str, Json]] = {name: {} for name in _TREES}
    for key, value in settings.section(f"models.{name}").items():
        setting = f"models.{name}.{key}"
        source = f"{settings.values[setting].source}: {setting}"
        head, dot, rest = key.partition(".")
        if key in _READERS:
            values[key] = _READERS[key](value, source)
        elif dot and head in _TREES:
            _put(trees[head], rest.split("."), value)
        elif not dot and (
            message := unknown_option(setting) or wrong_option(setting, value)
        ):  # A dot: the option of another model, whose name begins with this one.
            raise ConfigError(f"{settings.values[setting].source}: {message}")
    schema = trees["output_schema"] or None
    return Options(**values, extra=trees["extra"], output_schema=schema)


def _number(value: Json, where: str) -> float:
    try:
        if isinstance(value, (int, float, str)) and not isinstance(value, bool):
            number = float(value)
            if math.isfinite(number) and number >= 0:
                return number
    except (ValueError, OverflowError):
        pass
    raise ConfigError(f"{where}: expected a number of at least 0, got {quote(value)}")


def integer(value: Json, where: str) -> int:
    """Return a setting that is a whole number of at least 0."""
    number = _number(value, where)
    if number != int(number):
        raise ConfigError(f"{where}: expected an integer, got {quote(value)}")
    return int(number)


def _boolean(value: Json, where: str) -> bool:
    word = str(value).lower()
    if isinstance(value, bool) or word in ("true", "false", "1", "0"):
        return word in ("true", "1")
    raise ConfigError(f"{where}: expected true or false, got {quote(value)}")


def _word(value: Json, where: str) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ConfigError(f"{where}: expected a word, got {quote(value)}")


def _grammar(value: Json, where: str) -> Json:
    if value in KINDS:
        return value
    raise ConfigError(
        f"{where}: expected {' or '.join(KINDS)}, which says what kind of server it "
        f"is, got {quote(value)}"
    )


def _thinking(value: Json, where: str) -> int | str:
    if isinstance(value, str) and value.lower() in EFFORTS:
        return value.lower()
    try:
        return integer(value, where)
    except ConfigError:
        raise ConfigError(
            f"{where}: expected a number of tokens or one of {', '.join(EFFORTS)}, "
            f"got {quote(value)}"
        ) from None


def effort_of(thinking: int | str) -> str:
    """Return the effort level for a thinking budget."""
    if isinstance(thinking, str):
        return thinking
    if not thinking:
        return "none"
    return "low" if thinking <= 4096 else "medium" if thinking <= 16384 else "high"


EFFORTS: Mapping[str, int] = {"low": 2048, "medium": 8192, "high": 24576}
"""Effort levels of thinking, and their budgets in tokens."""
_TREES = ("extra", "output_schema")


def _put(tree: dict[str, Json], path: list[str], value: Json) -> None:
    for part in path[:-1]:
        tree = tree.setdefault(part, {})
    tree[path[-1]] = value


_READERS: Mapping[str, Callable[[Json, str], Json]] = {
    "temperature": _number,
    "top_p": _number,
    "max_tokens": integer,
    "seed": integer,
    "thinking": _thinking,
    "tool_choice": _word,
    "parallel_tool_calls": _boolean,
    "grammar": _grammar,
    "cache": _boolean,
    "vision": _boolean,
    "requests_per_minute": integer,
    "max_retries": integer,
    "retry_seconds": _number,
    "backoff": _number,
    "max_wait": _number,
    "connect_timeout": _number,
    "first_byte_timeout": _number,
    "stall_timeout": _number,
}
