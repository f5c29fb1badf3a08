"""Which replies hold calls: wrappers of servers are read, what is cited is not."""

from __future__ import annotations

import pytest

from neuraxis.dialects import find_dialect
from neuraxis.messages import Completion, Reply
from neuraxis.specs import CommandSpec, PluginSpec

X = {"query": "x"}
CALL = '{"name": "look", "arguments": {"query": "x"}}'
ITEM = '{"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}'


def _read(text: str) -> Reply:
    dialect = find_dialect("native")
    plugin = PluginSpec(name="p", commands=(CommandSpec(name="look"),))
    names = {"look": ("p", "look")}
    dialect.prompt([plugin], names)
    dialect.native_tools([plugin], names)
    whole = Completion(text=text, finish_reason="stop")
    return dialect.decode(whole, next_id=str)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ('{"functionCall": {"name": "look", "args": {"query": "x"}}}', [X]),
        (
            '[{"functionCall": {"name": "look", "args": {"query": "x"}}},'
            ' {"functionCall": {"name": "look", "args": {}}}]',
            [X, {}],
        ),
        (ITEM, [{}]),
        (f"[{ITEM}, {ITEM}]", [{}, {}]),
        (ITEM.replace('"name"', '"status": "completed", "name"'), [{}]),
        (
            "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>look\n"
            '```json\n{"query": "x"}\n```<｜tool_call_end｜><｜tool_calls_end｜>',
            [X],
        ),
        (
            '<｜tool_call_begin｜>look<｜tool_sep｜>{"query": "x"}<｜tool_call_end｜>'
            "<｜tool_call_begin｜>look<｜tool_sep｜>{}<｜tool_call_end｜>",
            [X, {}],
        ),
        (f"I look.\n<tool_call>\n```json\n{CALL}\n```\n</tool_call>", [X]),
        (f"```xml\n<tool_call>\n{CALL}\n</tool_call>\n```", [X]),
        (f"```\n[TOOL_CALLS] [{CALL}]\n```", [X]),
        (f"> <tool_call>look\n\nSo I do it:\n<tool_call>{CALL}</tool_call>", [X]),
        (f"The code:\n```python\ndef f():\n    ...\n```\n<tool_call>{CALL}", [X]),
        (f"The code:\n```python\nx = 1\n```\n```json\n{CALL}\n```", [X]),
        ("The code:\n```\ndef f():\n    ...\n```\n```\nlook(query='x')\n```", [X]),
        (f'> {{"name": "look", "arguments": {{"a": }}}}\n\n{CALL}', [X]),
        *((f'{{"{key}": [{CALL}]}}', [X]) for key in ("steps", "plan", "messages")),
        (f'{{"thought": "I look.", "action": {CALL}}}', [X]),
        # gpt-oss without its tokens, and an opening tag for the closing one
        (
            'analysisI look.assistantcommentary to=functions.look json{"query": "x"}',
            [X],
        ),
        ('commentary to=functions.look{"query": "x"}', [X]),
        (f"<tool_call>\n{CALL}\n<tool_call>", [X]),
        (f"I look: <tool_call>{CALL}</tool_call> and wait", [X]),
        # what a model imagines as the answer
        (f'<tool_call>{CALL}</tool_call>\n<tool_call>\n{{"found": 1}}', [X]),
        # a definition in front of a call of it
        (
            '{"name": "look", "parameters": {"type": "object", "properties": {}}}\n\n'
            f"So I look.\n\n{CALL}",
            [X],
        ),
    ],
)
def test_calls_in_other_wrappers_are_read(text: str, made: list[object]) -> None:
    """Of Gemini, of the Responses API, and in another spelling."""
    reply = _read(text)
    assert [(call.target, call.arguments) for call in reply.calls] == [
        ("look", arguments) for arguments in made
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The token [TOOL_CALLS] is only special where a server says so.",
        "Action: look at it again\nOwner: Bob",
        "Action: lock\nAction Input: number 12",
        # a card, whose entries follow one another
        "Severity: low\nAction: look\nOwner: Ada",
        "Ticket closed.\n\n**Action:** look\n**Next review:** Monday",
        'It may write `<|python_tag|>`, later `{"name": "...", "arguments": {...}}`.',
        '> <function_calls>\n> <invoke name="look">\n> <parameter name="a">b'
        "</parameter>\n> </invoke>\n> </function_calls>\n\nSo it looked.",
        'It wrote:\n> {"name": "look",\n> "arguments": {a b}}',
        "So:\n```python\ndef look(query):\n    return 1\n\nprint(look(query='x'))\n```",
        "So:\n```python\nclass A:\n    b = 1\nlook(query='x')\nlook()\n```\nDone.",
        f"So:\n```diff\n-{CALL}<tool_call>\n+{CALL}</tool_call>\n```\nIt parses.",
        f"An example of it:\n```\n<|im_start|>\n{CALL}\n```\nThat is all.",
        # definitions of tools, a record of a person, a function of a shell
        '[{"type": "function", "function": {"name": "look", "parameters":'
        ' {"type": "object", "properties": {"query": {"type": "string"}}}}}]',
        '```json\n{"name": "John Smith", "parameters": {"height": 180}}\n```',
        '```bash\nlook() { ls -1 "$@"; }\nlook src\n```',
        '"[TOOL_CALLS]look[ARGS]{\\"query\\": \\"x\\"}" is what it wrote.',
        "For example:\n```yaml\ntool: look\nquery: x\n```",
        "```yaml\nname: other\nquery: x\n```",
        f"Version 3 writes:\n```\n[TOOL_CALLS] [{CALL}]</s>\n```\nand version 11:\n\n"
        '```\n[TOOL_CALLS]look[ARGS]{"query": "x"}</s>\n```\nThat is shorter.',
    ],
)
def test_what_is_cited_is_words(text: str) -> None:
    """In a sentence, a quotation, a program, or a fence around a model's tokens."""
    reply = _read(text)
    assert (reply.calls, reply.errors, reply.left) == ((), (), ())


@pytest.mark.parametrize(
    "text",
    [
        "I use [TOOL_CALLS] look with the query x.",
        "Let me see. [TOOL_CALLS] find that for me\n",
        "```tool_code\ndef f():\n    pass\nlook(query='x')\n```",
        "```python\nimport os\nlook(query='x')\n```",
        "```yaml\nname: look\narguments:\n  query: x\n```",
        'Call: `{"name": "look", "arguments": {a b}}`',
        f'> {{"name": "look", "arguments": {{"a": "b}}\n\n{CALL}',
        ITEM.replace('"{}"', '"query x"'),
        '[{"functionCall": {"name": "look", "args": {}}}, {"text": "x"}]',
        # a call's token, and no name behind it
        '<tool_call>\n{"arguments": {"query": "x"}}\n</tool_call>',
        '<tool_call>{"query": "x"}</tool_call>',
        '<tool_call>{"name": null, "arguments": {}}</tool_call>',
        '[TOOL_CALLS][{"arguments": {"query": "x"}}]',
        '<tool_call>["look"]</tool_call>',
        "<tool_call>{}</tool_call>",
        "<tool_call></tool_call>",
        f'<tool_call>{CALL}</tool_call><tool_call>{{"arguments": {{}}}}</tool_call>',
        # ReAct without its second line, or with one that is no JSON
        "Thought: I look.\nAction: look\nAction Input: number 12",
        "Action: look\nAction Input: 12",
        "Action: look",
        "Action: look\nInput: x",
        "Action: look\n\nObservation: it is there",
        "**Action:** `look`\n\nI wait.",
        'Action: look({"query": "x"})',
        'Action: look\n{"query": "x"}',
        # YAML
        "```yaml\n- tool: look\n  query: x\n```",
        "```yml\ncalls:\n  - name: look\n    query: x\n```",
        "I look.\n```yaml\nlook:\n  query: x\n```",
        "tool: look\nquery: x",
        ITEM.replace('"function_call"', '"call"'),
    ],
)
def test_what_is_not_clearly_words_is_told(text: str) -> None:
    """Nothing of it runs, and the model hears why."""
    reply = _read(text)
    assert not reply.calls
    assert reply.errors
