"""HTTP exchanges with a model server; every error becomes a `Failure`.

Of this package only this module imports `httpx2`, and it is itself imported with the
first request.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from typing import TYPE_CHECKING

from neuraxis.errors import (
    ConfigError,
    ModelBroken,
    ModelError,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
)
from neuraxis.models.http.answers import ServerError, body_message, is_about_size
from neuraxis.models.http.server_hints import is_refusal, refusal, unreachable
from neuraxis.models.http.settings import Endpoint, Options
from neuraxis.models.http.waits import retry_after, wait_in_body, wait_in_words

if TYPE_CHECKING:
    import httpx2

_MOST_ERROR_BYTES = 64 * 1024
_DRAIN = 0.05  # seconds to read the last bytes, to reuse the connection
_PASSING = (408, 409, 429)
_KEY_LENGTH = 8
"""Minimum characters of a key to redact; local servers get dummies such as "x"."""
_SECRET_LENGTH = 4
"""Minimum characters of a cut key to redact; fewer occur in normal words."""


class Failure(Exception):
    """Reason of a failed attempt, and whether to try again.

    `after` is the server's requested delay, `status` that of a refused request. `said`
    is the server's text as it wrote it: only shown texts are redacted.
    """

    def __init__(
        self,
        error: ModelError,
        *,
        again: bool = False,
        after: float | None = None,
        status: int | None = None,
        said: str = "",
        is_final: bool = False,
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.said = said or str(error)
        self.again = again
        self.is_final = is_final
        self.after = after
        self.status = status


def may_go_on(failure: Failure) -> bool:
    """Return whether to request the broken-off reply again.

    The server had accepted the request, so only its explicit refusal is final.
    """
    error = failure.error
    is_broken = isinstance(error, ModelBroken) and not is_about_size(str(error))
    return failure.again or (is_broken and not failure.is_final)


def new_client(endpoint: Endpoint, options: Options) -> httpx2.AsyncClient:
    """Return a client for one server.

    A proxy of the environment is used for remote servers and never for this machine.
    Redirects are not followed: prompt and key would go to another server.
    """
    import httpx2

    try:
        return httpx2.AsyncClient(
            # the wait for the answer is limited portion by portion, see `portions`
            timeout=httpx2.Timeout(None, connect=options.connect_timeout),
            trust_env=not endpoint.loopback,
            follow_redirects=False,
        )
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"the proxy or certificate settings of the environment: {error}"
        ) from error


async def send(
    client: httpx2.AsyncClient,
    request: httpx2.Request,
    endpoint: Endpoint,
    options: Options,
) -> httpx2.Response:
    """Send the request and wait for the response's head."""
    import httpx2

    host = endpoint.host
    try:
        async with asyncio.timeout(options.first_byte_timeout):
            return await client.send(request, stream=True)
    except TimeoutError as error:
        raise Failure(
            ModelTimeout(f"{host}: no answer in {options.first_byte_timeout:g} s")
        ) from error
    except httpx2.ConnectTimeout as error:
        text = f"no connection in {options.connect_timeout:g} s"
        advice = unreachable(endpoint, text)
        raise Failure(ModelTimeout(f"{host}: {text}. {advice}"), again=True) from error
    except (httpx2.ConnectError, httpx2.ProxyError) as error:
        text = str(error) or type(error).__name__
        raise Failure(
            ModelUnavailable(
                f"{host}: cannot be reached: {text}. {unreachable(endpoint, text)}"
            ),
            again="CERTIFICATE" not in text,
        ) from error
    except httpx2.TransportError as error:
        # a pooled connection that the server has closed meanwhile
        raise Failure(_broken(host, error), again=True) from error


async def portions(
    source: AsyncIterator[bytes],
    endpoint: Endpoint,
    options: Options,
    grace: Callable[[], float | None],
) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a response; each portion has a limit.

    `grace` returns a time once the answer is complete: then silence, or a broken
    connection, for that long ends it and is no failure.
    """
    import httpx2

    limit = options.first_byte_timeout
    while True:
        grace_seconds = grace()
        try:
            async with asyncio.timeout(
                limit if grace_seconds is None else min(grace_seconds, limit)
            ):
                portion = await anext(source)
        except StopAsyncIteration:
            return
        except TimeoutError as error:
            if grace_seconds is not None:
                return
            raise Failure(
                ModelTimeout(f"{endpoint.host}: the answer stopped for {limit:g} s")
            ) from error
        except (httpx2.TransportError, httpx2.DecodingError) as error:
            if grace_seconds is not None:
                return
            raise Failure(_broken(endpoint.host, error), again=True) from error
        limit = options.stall_timeout
        yield portion


async def drain(source: AsyncIterator[bytes]) -> None:
    """Read a finished response to its end, to reuse its connection."""
    import httpx2

    try:
        async with asyncio.timeout(_DRAIN):
            async for _ in source:
                pass
    except (TimeoutError, httpx2.TransportError, httpx2.DecodingError):
        pass


async def refused(
    response: httpx2.Response, endpoint: Endpoint, options: Options, key: str
) -> Failure:
    """Return the failure for a response with another status than 200."""
    status = response.status_code
    host = endpoint.host
    if 300 <= status < 400:
        # without its query, which may contain secrets
        target = response.headers.get("location", "").partition("?")[0][:200]
        return Failure(
            ModelRefused(
                f"{host}: redirects to {target or 'another place'}; set the base URL "
                "to where the server is",
                status=status,
            )
        )
    raw = await _read_some(response, options.stall_timeout)
    message = body_message(raw, response.headers.get("content-type", ""))
    text = f"{host}: HTTP {status}"
    if message:
        text += f": {without_key(message, key)}"
    elif status >= 500:
        text += " without a reason; the server's log may have it, or try again later"
    if 200 <= status < 300:
        return Failure(ModelBroken(f"{text}, which is no answer", status=status))
    after = retry_after(response.headers)
    if after is None and (status in _PASSING or status >= 500):
        # the words of the message only: some bodies repeat the prompt
        after = wait_in_body(raw.decode("utf-8", "replace"))
        after = wait_in_words(message) if after is None else after
    if after is not None:
        text += f" (it asks to wait {after:.0f} s)"
    if status in (401, 403):
        text += _key_hint(endpoint, key)
    hint = "" if status in (401, 403, 429) else refusal(message)
    if status == 404 and not hint:
        address = str(response.request.url).partition("?")[0]
        hint = f" (are {address} and the model's name right?)"
    text += hint
    is_final = is_about_size(message) or is_refusal(message)
    again = status in _PASSING or (status >= 500 and not is_final)
    if b"insufficient_quota" in raw:
        again = False  # an empty account is not refilled by waiting
    if b"tool_use_failed" in raw:
        again = True  # Groq: the model's call was malformed; a retry may succeed
    kind = ModelUnavailable if status >= 500 else ModelRefused
    error = kind(text, status=status)
    return Failure(error, again=again, after=after, status=status, said=message)


def bad_answer(error: Exception, endpoint: Endpoint, kind: str, key: str) -> Failure:
    """Return the failure for a malformed response or error with status 200.

    `kind` is its content type.
    """
    status = error.status if isinstance(error, ServerError) else None
    text = f"{endpoint.host}: {without_key(str(error), key)}"
    if "event-stream" not in kind and "json" not in kind:
        text += (
            f" (content type {kind.split(';')[0][:60] or 'unknown'}; is the base URL "
            f"{endpoint.url} right?)"
        )
    mends = isinstance(error, ServerError) and error.mends
    if status is not None and status < 500 and status not in _PASSING and not mends:
        return Failure(ModelRefused(text, status=status))
    # an HTML page is another server's, or a login's, and comes again
    is_foreign = isinstance(error, ServerError) and error.foreign
    is_final = ("html" in kind and is_foreign) or is_about_size(str(error))
    again = isinstance(error, ServerError) and error.again and not is_final
    after = wait_in_words(str(error)) if again else None
    broken = ModelBroken(text, status=status)
    ends = isinstance(error, ServerError) and error.is_final
    return Failure(broken, again=again, after=after, is_final=ends)


def without_key(text: str, key: str) -> str:
    """Redact the key, or its beginning, which a server may have quoted.

    The text may have been cut within the key.
    """
    if len(key) < (_KEY_LENGTH if key.isalpha() else _SECRET_LENGTH):
        return text  # a dummy, part of many words
    text = text.replace(key, "[key]")
    for size in range(len(key) - 1, _SECRET_LENGTH - 1, -1):
        if text.endswith(f"{key[:size]}…"):
            return f"{text[: -size - 1]}[key]…"
    return text


def _broken(host: str, error: Exception) -> ModelBroken:
    text = str(error) or type(error).__name__
    return ModelBroken(f"{host}: the connection broke off: {text[:200]}")


def _key_hint(endpoint: Endpoint, key: str) -> str:
    if key:
        name = endpoint.key_env or "the program"
        return f" (the key of {name} was sent)"
    because = endpoint.keyless_because
    if endpoint.own_key is not None:
        because = "the argument key= is empty"
    elif endpoint.key_env:
        because = f"{endpoint.key_env} is not set"
    return f" (no key was sent{', since ' + because if because else ''})"


async def _read_some(response: httpx2.Response, seconds: float) -> bytes:
    import httpx2

    read = b""
    try:
        async with asyncio.timeout(seconds):
            async for portion in response.aiter_bytes():
                read += portion
                if len(read) > _MOST_ERROR_BYTES:
                    break
    except (TimeoutError, httpx2.TransportError, httpx2.DecodingError):
        pass  # the received part is a better message than the broken connection
    return read[:_MOST_ERROR_BYTES]
