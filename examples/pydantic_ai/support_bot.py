"""A support bot: a refund waits for a person's yes, also across processes."""

import sys
from dataclasses import dataclass
from pathlib import Path

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolApproved,
)
from pydantic_ai.messages import ModelMessagesTypeAdapter
from scripted import scripted


@dataclass
class Shop:
    orders: dict[int, str]
    clerk: str


agent = Agent(
    sys.argv[1]
    if sys.argv[1:]
    else scripted(
        [("order", {"number": 7}), ("refund", {"number": 7, "amount": 20})],
        "You have 12.50 back.",
    ),
    deps_type=Shop,
    instructions="Refund what came broken.",
    output_type=[str, DeferredToolRequests],
)


@agent.tool
def order(ctx: RunContext[Shop], number: int) -> str:
    """State of an order."""
    return ctx.deps.orders[number]


@agent.tool(requires_approval=True)
def refund(ctx: RunContext[Shop], number: int, amount: float) -> str:
    """Pay money back."""
    done = f"{ctx.deps.clerk} refunded {amount} of order {number}"
    print(done)
    return done


shop = Shop({7: "broken"}, "Ada")
ticket = Path("ticket-1.json")

answer = agent.run_sync("Order 7 came broken, I want 20 back", deps=shop)
assert isinstance(answer.output, DeferredToolRequests)
print("waiting", [f"{one.tool_name} {one.args}" for one in answer.output.approvals])
ticket.write_bytes(answer.all_messages_json())

# hours later, in another process
history = ModelMessagesTypeAdapter.validate_json(ticket.read_bytes())
results = DeferredToolResults()
for message in history:
    for part in message.parts:
        if part.part_kind == "tool-call" and part.tool_name == "refund":
            edited = part.args_as_dict() | {"amount": 12.5}
            results.approvals[part.tool_call_id] = ToolApproved(override_args=edited)
answer = agent.run_sync(
    message_history=history, deferred_tool_results=results, deps=shop
)
print(answer.output)
