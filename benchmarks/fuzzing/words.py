"""The words of each format: what mutators salt texts and trees with."""

from __future__ import annotations

JSON_WORDS = (
    *("{", "}", "[", "]", ",", ":", '"', "'", "\\", "\n", " ", "\t", "//", "/*", "*/"),
    *("#", "true", "false", "null", "True", "None", "NaN", "Infinity", "-", "0", "-0"),
    *("1e999", "1e-7", "1.0", "12345678901234567890", "9" * 5000, "00", "1.", ".5"),
    *('"a"', '"a":', '"a": 1,', "{}", "[]", '{"a": 1}', '""', '\\"', "\\u0041", "\\n"),
    *("\\ud800", "\\udc00", "\\ud83d\\ude00", "\\u", "\\x41", "“", "”", "’", "\ufeff"),
    *("\u2028", "\x00", "\x85", "é", "😀", "\u200b", "\ud800", "\udc80", "[" * 250),
    *('{"a":' * 250, "]" * 250, "}" * 250, ",}", ",]", "}{", "][", "`"),
    *("```", "```json"),
)
CALL_WORDS = (
    *('"tool"', '"tool": "search"', '{"tool": "search", "query": "q"}', '"as"'),
    *('"$literal": true', '"$value"', '"$for_each"', '"$max_items"', '"parameters"'),
    *('"arguments"', '"name"', '"function"', '"id"', '"type": "function"', '"input"'),
    *("<think>", "</think>", "<thinking>", "</thinking>", "<tool_call>"),
    "</tool_call>",
    *("[TOOL_CALLS]", "[ARGS]", "[CALL_ID]c1", "<|python_tag|>", "</s>", "<|eom_id|>"),
    *("<function=search>", "</function>", "<parameter=query>", "</parameter>"),
    *('<invoke name="search">', '<parameter name="query">', "</invoke>", "; "),
    *("<arg_key>query</arg_key>", "<arg_value>q</arg_value>", "<tool_call>search\n"),
    *("<｜tool▁call▁begin｜>search<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
    *("<|tool_call_begin|>functions.search:0", "<|tool_call_argument_begin|>"),
    *("<|tool_call_end|>", "<|channel|>commentary to=search<|message|>"),
    *("```tool_code", "\nsearch(", 'search(query="q", limit=1)', "\nprint(", "to="),
    *("q: ", "\nq:", "\na: ", "# Evaluate this", "<!--", "-->", "<|", "|>"),
    *("<!-- RESPONSE_START -->", "<!-- RESPONSE_END -->", "<!--RESPONSE_START-->"),
    *("<!-- RESULTS_START -->", "<!-- RESULTS_END -->", "<!-- RESPONSE"),
    *("{{ previous_result['a'] }}", "{{ results[0] }}", "PREVIOUS", "{{", "}}"),
    *('{"asset_id": "a1", "field_path": ["x", 0]}', '"asset://a1/x/0"'),
)
ENVELOPE_WORDS = (
    *('"receiver"', '"role"', '"plugin"', '"user"', '"content"', '"content_type"'),
    *('"command"', '"param"', '"params"', '"thoughts"', '"id"', '"sender"'),
    '{"receiver": {"role": "plugin", "name": "web"}, "content_type": "command", '
    '"content": {"command": "GOOGLE", "param": {"query": "q"}}}',
    '{"receiver": {"role": "user"}, "content": "hello"}',
    '{"receiver": {"role": "cerebrum"}, "content": "x"}',
)

TYPES = (
    *("string", "int", "float", "bool", "null", "Any", "object", "date", "bytes"),
    *("List[int]", "List[", "Dict[str, int]", "Dict[int, str]", "Union[str, null]"),
    *("Optional[List[node]]", "Tuple[int, ...]", "Tuple[int, str]", "Literal['a', 1]"),
    *("Literal[", "numpy.ndarray", "a.b.C", "node", "tree", "List['node']"),
    "int | str",
    *("Set[str]", "Union[]", "List[" * 50, "1", "...", "uuid", "Mapping", "é", ""),
)
NODE_WORDS = (
    *("type", "name", "description", "enum", "required", "optional", "default"),
    *("asset_ref_acceptable", "example", "examples", "nullable", "items", "item_enum"),
    *("format", "pattern", "minimum", "maximum", "min_length", "max_length", "title"),
    *("minLength", "maxItems", "_type_ref", "commands", "parameter", "parameters"),
    *("response", "command_name", "deprecated", "multiple_of", "x-type"),
    *("[a-", "(?=a)"),
    *TYPES,
)

SCHEMA_WORDS = (
    *("type", "properties", "items", "required", "enum", "const", "anyOf", "oneOf"),
    *("allOf", "not", "$ref", "$defs", "#/$defs/a", "#", "additionalProperties"),
    *("prefixItems", "minItems", "maxItems", "minLength", "maxLength", "pattern"),
    *("format", "minimum", "maximum", "multipleOf", "uniqueItems", "contains", "if"),
    *("then", "else", "dependentRequired", "patternProperties", "propertyNames"),
    *("x-type", "x-asset-ref", "x-formats", "annotation", "string"),
    *("integer", "number"),
    *("boolean", "array", "object", "null", "date", "date-time", "uuid", "a", "b"),
    *("5", "5.0", "1e400", "true", "[1]", '{"a": 1}', "2024-01-01", " 5 ", "(a+)+$"),
    *("node", "value", "schema", "{{ results[0] }}", "builtins.object", "http://x/y"),
)

EXPRESSIONS = (
    *("{{ previous_result }}", "{{ results[0]['a'][1:3] }}", "PREVIOUS", "asset://a/b"),
    *("{{ results[-1].a.b | default('x', true) | tojson(2) }}", "asset://a%2F/0/%30/"),
    "{{ first | map('a') | join(', ') }}",
    *("{{ a-b[::2] | length | int }}", "{{", "}}"),
    *("{{ (item) | replace('a', 'b') | upper | trim }}", "{{ item.a | round(2) }}"),
    *("{{ '{{' }}", "{{ results[9] }}", "{{ item | first | last | list | string }}"),
    *("{{ previous_result.__class__ }}", "{{ ''.__class__ }}", "{% if %}", "{{ vue }}"),
    *("<|asset://a/b|>", '<|{"asset_id": "a"}|>', "<|", "|>", "asset://", "a b", "%zz"),
    *("asset_id", "field_path", "arguments", "root", "here", "a", "b", "0"),
    *("-1", " | "),
    *("default(", "replace('', 'a')", "join", "[::-1]", "[0]", "['a']", ".a", "tojson"),
    *("| replace('a', 'aaaaaaaaaaaaaaaaaaaa') " * 8, "(" * 45, "\\u0041", "'", '"'),
)

YAML_WORDS = (
    *("\n", "\n  ", "\n    ", "- ", ": ", "- name: a\n"),
    *("  type: string\n", "~", "yes"),
    *("null", "[]", "{}", "[a, {b: c}]", "{type: int}", "&x a", "*x"),
    *("<<: *x", "!!str"),
    *("!!int z", "!!binary YQ==", "!!python/object:os.system", "5", "3.10"),
    *("0x1F", "1:30"),
    *("2024-01-01", ".nan", ".inf", "1e999", "0o7", "'", '"', "|", ">-"),
    *("#", "---", "..."),
    *("%YAML 1.1", "\t", "? ", "@", "`", "&a [*a]", "q"),
    "{_type_ref: q, z: {type: q}}",
    *("commands:", "parameter:", "parameters:", "response:", "type:"),
    "required: false",
    *("_type_ref: q", "enum:", "example:", "examples:", "effects: read", "tool_name:"),
    *("as_plugin: true", "config:", "info:", "title:", "description:", "default: 1"),
    *("nullable: true", "asset_ref_acceptable: true", "items:", "command_name: c"),
    *("List[q]", "Union[str, q]", "Dict[str, int]", "Literal['a', 1]", "Any", "a.b.C"),
    *("minimum: 1", "pattern: '['", "format: date", "time_limit: 5", "blocking: true"),
    *("failure_field: ok", "{q: x, a: {x: 1}}", "é", "\ufeff", "\x07", "\u2028", "😀"),
    *("version: 1", "steps:", "- tool: t", "arguments:", "for_each:", "max_items: 5"),
    *("literal: true", "on_error: retry", "as: here", "{{ params['a'] }}", "[" * 120),
)

STREAM_WORDS = (
    *("data: ", "data:", "\n\n", "\r\n\r\n", "\r", "\n", "event: error", "event: ping"),
    *(": comment", "id: 1", "retry: 5", "[DONE]", "data: [DONE]\n\n", "\ufeff"),
    *('"choices"', '"delta"', '"message"', '"content"', '"tool_calls"', '"function"'),
    *('"arguments"', '"index"', '"finish_reason"', '"stop"', '"length"', '"usage"'),
    *('"prompt_tokens"', '"reasoning_content"', '"error"', '"code"'),
    *('"refusal"', '"id"'),
    *('{"choices":[{"delta":{"content":"a"}}]}', '"\\ud83d"', '"\\ude00"', "²"),
    'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n',
    '{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]}',
    *JSON_WORDS[:40],
)

BUNDLE_WORDS = (
    *('["j", 1]', '["d", [["a", ["j", 1]]]]', '["l", []]', '["t", []]', '["p", 0]'),
    *('["p", -1]', '["x", "date", "2024-01-01"]', '["x", "uuid", "1"]', '"decimal"'),
    *('"float"', '"datetime"', '"time"', '"kind"', '"offset"', '"bytes"', '"dtype"'),
    *('"shape"', '"array"', '"table"', '"image"', '"text"', '"library"', '"pandas"'),
    *('"mode"', '"size"', '"parts"', '"tree"', '"|O"', '"<f8"', '"<U4"'),
    *('"V8"', '"M8"'),
    *('"RGB"', '"1"', '"P"', '"F"', "[0]", "[-1]", "[2, 3]", "[]", "0", "64", "1e3"),
    *("99999999999999999999", "null", "true", "{}", '"i4,O"', '"m8[25us]"'),
    *("\0", "\xff"),
    *JSON_WORDS[:20],
)

URL_WORDS = (
    *("http://", "https://", "HTTP://", "//", "/", "?", "#", "@", ":", "["),
    *("]", "[::1]"),
    *("[::ffff:10.0.0.1]", "[fe80::1%25eth0]", "127.0.0.1", "127.1", "0x7f000001", "0"),
    *("2130706433", "017700000001", "localhost", "inner", "a.local"),
    *("example.com", "."),
    *("..", "%2e%2e", "%00", "%0d%0a", "%", "%2f", "\\", "\t", "\n", " "),
    *("\u3002", "é"),
    *("ⓔxample.com", "xn--", "xn--a", "\u00ad", "\u200d", "ß", "K", "ı", ":80", ":443"),
    *(":0", ":65536", ":22", ":9000", "user:pass@", "file:", "gopher:", "javascript:"),
    *("a" * 70, "a." * 130, ";", "&", "=", "*", "_", "-", "~", "^", "|", "{", "}", '"'),
    *("10.0.0.1", "１", "。", "\u0660", "\ud800", "ﬁ", "／", "？", "＠", "\u2100"),
)
