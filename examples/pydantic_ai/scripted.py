"""A scripted model for pydantic-ai, as ScriptedModel is ours; in nobody's count."""

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def scripted(*replies: str | list[tuple[str, dict]]) -> FunctionModel:
    """Give the replies in order: a text, or calls."""
    left = list(replies)

    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(said, str):
            return ModelResponse(parts=[TextPart(said)])
        return ModelResponse(parts=[ToolCallPart(name, args) for name, args in said])

    return FunctionModel(reply)
