"""OAuth for MCP servers: secrets by name, tokens in a private file.

With a client secret the client signs in as itself. Without one the user signs in with a
browser, which `on_sign_in` opens; if that is not possible, the server is reported.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2
import msgspec
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from neuraxis.bridges.mcp_client.config import OAuth, ServerConfig
from neuraxis.errors import ConfigError
from neuraxis.settings import user_dir

REDIRECT = "http://127.0.0.1:8765/callback"
"""Redirect address of the browser; `on_sign_in` returns the URL that arrives."""
SignIn = Callable[[str], Awaitable[str]]
"""Opens a URL for the user; returns the URL that the browser was redirected to."""


class StoredTokens(msgspec.Struct, kw_only=True):
    """Stored sign-in data of one server, as JSON texts."""

    tokens: str = ""
    client: str = ""


class TokenFile:
    """Tokens and registration of one server, in a private file."""

    def __init__(
        self,
        url: str,
        folder: Path | None = None,
        registered: OAuthClientInformationFull | None = None,
    ) -> None:
        self._registered = registered
        name = hashlib.sha256(url.encode()).hexdigest()[:32] + ".json"
        self._file = (folder or user_dir("data") / "mcp") / name

    def _read(self) -> StoredTokens:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=StoredTokens)
        except (OSError, msgspec.MsgspecError):
            return StoredTokens()

    def _write(self, stored: StoredTokens) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = self._file.with_suffix(".new")
        opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(opened, "wb") as file:
            file.write(msgspec.json.encode(stored))
        os.replace(temporary, self._file)

    async def get_tokens(self) -> OAuthToken | None:
        """Return the stored tokens."""
        text = self._read().tokens
        return OAuthToken.model_validate_json(text) if text else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Store tokens."""
        stored = self._read()
        stored.tokens = tokens.model_dump_json()
        self._write(stored)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return the registration: the user's own, else the stored one."""
        if self._registered is not None:
            return self._registered
        text = self._read().client
        return OAuthClientInformationFull.model_validate_json(text) if text else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Store a registration."""
        stored = self._read()
        stored.client = client_info.model_dump_json()
        self._write(stored)


def oauth(
    config: ServerConfig,
    value_of: Callable[[str], str],
    on_sign_in: SignIn | None,
) -> httpx2.Auth | None:
    """Return the authentication of requests; None: not configured.

    Args:
        config: the server's configuration.
        value_of: fills in secrets by name.
        on_sign_in: lets the user sign in, if there is one.
    """
    settings = config.oauth
    if settings is None:
        return None
    secret = value_of(settings.client_secret)
    if secret and settings.client_id and on_sign_in is None:
        if not settings.issuer:
            raise ConfigError(
                f"{config.name}: oauth.issuer: expected the authorization server that "
                "the client is registered with; else a server could name its own, and "
                "be sent the secret"
            )
        return ClientCredentialsOAuthProvider(
            config.url,
            TokenFile(config.url),
            client_id=settings.client_id,
            client_secret=secret,
            scope=settings.scope or None,
            issuer=settings.issuer,
        )
    return _by_browser(config, settings, on_sign_in, secret)


def _by_browser(
    config: ServerConfig, settings: OAuth, on_sign_in: SignIn | None, secret: str
) -> httpx2.Auth:
    back: list[str] = []

    async def redirect(url: str) -> None:
        if on_sign_in is None:
            raise ConfigError(
                f"{config.name}: a person must sign in, and nobody can be asked; pass "
                "mcp(..., on_sign_in=...) or give oauth.client_secret"
            )
        back.append(await on_sign_in(url))

    async def callback() -> AuthorizationCodeResult:
        query = httpx2.URL(back.pop()).params
        return AuthorizationCodeResult(
            code=query.get("code", ""),
            state=query.get("state"),
            iss=query.get("iss"),
        )

    metadata = OAuthClientMetadata(
        client_name="neuraxis",
        redirect_uris=[AnyUrl(REDIRECT)],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        scope=settings.scope or None,
    )
    registered = None
    if settings.client_id:
        registered = OAuthClientInformationFull(
            client_id=settings.client_id,
            client_secret=secret or None,
            redirect_uris=[AnyUrl(REDIRECT)],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )
    return OAuthClientProvider(
        config.url,
        metadata,
        TokenFile(config.url, registered=registered),
        redirect_handler=redirect,
        callback_handler=callback,
        client_metadata_url=settings.client_metadata_url or None,
    )
