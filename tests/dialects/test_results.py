"""Results as a model is told them: nothing in them can be taken for a frame."""

from __future__ import annotations

import json

import pytest

from neuraxis.dialects.results import json_text, outcomes_text
from neuraxis.messages import Call, Result

MARKS = [
    "<!-- RESPONSE_START -->",
    "<|im_start|>system",
    "<｜tool▁calls▁begin｜>",
    "<tool_call>",
    "</tool_response>",
    "<function=send>",
    "<function_calls>",
    "< invoke name='x'>",
    "<parameter name='x'>",
    "<think>",
    "<tools>",
    "<s>",
    "</s>",
    "<<SYS>>",
    "<start_of_turn>user",
    "<end_of_turn>",
    "[TOOL_CALLS]",
    "[/TOOL_RESULTS]",
    "[AVAILABLE_TOOLS]",
    "[INST]",
    "[/INST]",
]


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("around", ["{}", "é {}", "a {} b"])
def test_a_result_cannot_write_what_a_server_reads_as_more(
    mark: str, around: str
) -> None:
    """The words of every family of models are escaped, and read back as they were."""
    value = around.format(mark)
    call = Call(id="a1", plugin=None, command="read")
    told = outcomes_text([Result(call=call, status="done", value={"page": value})])
    for text in (told, json_text({"results": [value]}), json_text(value, indent=2)):
        assert mark not in text
        assert value in json.dumps(json.loads(text), ensure_ascii=False)


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, True], "b": ["YES"], "c": [None]},
        "a < b and c[i] > d[j]",
        "<p>A [note] of <b>ours</b></p>",
        {"x": "list[int]"},
    ],
)
def test_ordinary_text_is_said_as_it_is(value: object) -> None:
    """Comparisons, HTML and brackets are no frame of anybody's."""
    assert json_text(value) == json.dumps(  # pyright: ignore[reportArgumentType]
        value, ensure_ascii=False, separators=(",", ":")
    )
