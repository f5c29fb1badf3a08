"""Ask the MCP client of a running command questions.

Clients of revision 2025-11-25 are asked while the call waits. Clients of 2026-07-28 get
the questions as the answer; the command waits, and continues when the client calls
again, so that nothing runs twice.
"""

from __future__ import annotations

import asyncio
import contextvars
import secrets
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal

import mcp_types as types
from mcp import MCPError
from mcp.server.context import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata

from neuraxis.events import ApprovalAsked
from neuraxis.parsing.json_access import as_map
from neuraxis.policy.approvals import EXPIRES
from neuraxis.schema.schema import Schema
from neuraxis.specs import Json

MOST_WAITING = 1_000
"""Maximum unanswered questions that are stored."""
_KINDS: Mapping[type, tuple[str, types.ClientCapabilities, type[types.Result]]] = {
    types.ElicitRequest: (
        "elicitation",
        types.ClientCapabilities(elicitation=types.ElicitationCapability()),
        types.ElicitResult,
    ),
    types.CreateMessageRequest: (
        "sampling",
        types.ClientCapabilities(sampling=types.SamplingCapability()),
        types.CreateMessageResult,
    ),
    types.ListRootsRequest: (
        "roots",
        types.ClientCapabilities(roots=types.RootsCapability()),
        types.ListRootsResult,
    ),
}


def form(message: str, schema: Mapping[str, Json]) -> types.ElicitRequest:
    """Return a form for the user; the answer: content, or None."""
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(
            message=message, requested_schema=dict(schema)
        )
    )


def sampling(text: str, max_tokens: int = 1_000) -> types.CreateMessageRequest:
    """Return a request to the client's model; its answer is the text."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=text))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(
            messages=[message], max_tokens=max_tokens
        )
    )


def roots() -> types.ListRootsRequest:
    """Return the question for the client's folders; its answer is their URIs."""
    return types.ListRootsRequest()


class McpClient:
    """MCP client that called: its capabilities and answers."""

    def __init__(
        self, context: ServerRequestContext[Any, Any], given: Mapping[str, Any]
    ) -> None:
        self.context = context
        """Context of the current request."""
        self.responses: Mapping[str, Any] = given
        """Answers that came with the current request."""
        self.missing: MCPError | None = None
        """Error of a question that the client does not support."""
        self.waiting: ApprovalAsked | None = None
        """Approval that only the answer to the request can ask for."""
        self.runs_plan = False
        """Whether steps may have run before a question, so that the run must wait."""
        self.refused = False
        """Whether the user already refused this request."""
        self.questions: asyncio.Queue[tuple[types.InputRequests, asyncio.Event]]
        self.questions = asyncio.Queue()

    @property
    def is_modern(self) -> bool:
        """Return whether the protocol has requests without a session."""
        return self.context.protocol_version >= "2026"

    def can(self, kind: Literal["elicitation", "sampling", "roots"]) -> bool:
        """Check whether the client declared this capability."""
        return any(
            self.context.session.check_client_capability(capability)
            for name, capability, _ in _KINDS.values()
            if name == kind
        )

    async def ask(self, **requests: types.InputRequest) -> dict[str, Any]:
        """Send all questions at once; return the answers by the same names.

        Raises:
            MCPError: the client cannot be asked this, or it answered with an error.
            ValueError: the content does not fit the form.
        """
        for request in requests.values():
            kind, capability, _ = _KINDS[type(request)]
            if not self.context.session.check_client_capability(capability):
                self.missing = MCPError(
                    types.MISSING_REQUIRED_CLIENT_CAPABILITY,
                    f"The client cannot be asked: it declares no {kind}",
                    {"requiredCapabilities": {kind: {}}},
                )
                raise self.missing
        if self.is_modern:
            while not self._is_answered(requests):
                answered = asyncio.Event()
                self.questions.put_nowait((requests, answered))
                await answered.wait()
            answers = {name: self.responses[name] for name in requests}
            self.responses = {}  # they are not for later questions
        else:
            answers = {name: await self._send(one) for name, one in requests.items()}
        return {name: _plain(answers[name], one) for name, one in requests.items()}

    def _is_answered(self, requests: types.InputRequests) -> bool:
        return all(
            isinstance(self.responses.get(name), _KINDS[type(one)][2])
            for name, one in requests.items()
        )

    async def _send(self, request: types.InputRequest) -> Any:
        return await self.context.session.send_request(
            request,
            _KINDS[type(request)][2],
            metadata=ServerMessageMetadata(related_request_id=self.context.request_id),
        )


def _plain(answer: Any, request: types.InputRequest) -> Any:
    if isinstance(answer, types.ListRootsResult):
        return [str(root.uri) for root in answer.roots]
    if isinstance(answer, types.CreateMessageResult):
        return getattr(answer.content, "text", "")
    if answer.action != "accept":
        return None
    content = as_map(answer.content)
    schema = as_map(getattr(request.params, "requested_schema", None))
    if not Schema({**schema, "x-formats": "annotation"}).valid(content):
        raise ValueError("the user did not fill in the form as required")
    return content


CURRENT: contextvars.ContextVar[McpClient | None] = contextvars.ContextVar(
    "neuraxis_mcp_client", default=None
)


def calling() -> McpClient | None:
    """Return the MCP client of the running command; None: there is none."""
    return CURRENT.get()


class OpenCalls:
    """Calls whose questions were sent as answers, until the client calls again."""

    def __init__(self) -> None:
        self._open: dict[
            tuple[str, str], tuple[McpClient, asyncio.Task[Any], asyncio.Event]
        ] = {}

    def holds(self, method: str, token: str) -> bool:
        """Check whether a request with this state continues a call."""
        return (method, token) in self._open

    async def run(
        self,
        context: ServerRequestContext[Any, Any],
        params: types.InputResponseRequestParams,
        work: Callable[[McpClient], Coroutine[Any, Any, Any]],
    ) -> Any:
        """Begin or continue a request; return its result or its questions.

        Args:
            context: the request's context.
            params: its parameters, with the answers to an earlier request.
            work: receives the client; commands get it with `calling`.
        """
        responses: Mapping[str, Any] = params.input_responses or {}
        open_call = self._open.pop((context.method, params.request_state or ""), None)
        if open_call is None:
            client = McpClient(context, responses)
            CURRENT.set(client)
            task = asyncio.create_task(work(client))
        else:
            client, task, answered = open_call
            client.context, client.responses = context, responses
            answered.set()
        question_task = asyncio.ensure_future(client.questions.get())
        try:
            await asyncio.wait(
                (task, question_task), return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError:
            task.cancel()
            raise
        finally:
            question_task.cancel()
        if task.done():
            return task.result()
        requests, answered = question_task.result()
        token = secrets.token_urlsafe(24)
        key = (context.method, token)
        while len(self._open) >= MOST_WAITING:
            self._forget(next(iter(self._open)))
        self._open[key] = (client, task, answered)
        asyncio.get_running_loop().call_later(EXPIRES, self._forget, key)
        return types.InputRequiredResult(input_requests=requests, request_state=token)

    def _forget(self, key: tuple[str, str]) -> None:
        open_call = self._open.pop(key, None)
        if open_call is not None:
            open_call[1].cancel()
