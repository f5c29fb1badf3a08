def _is_key(schema: dict[str, Json]) -> bool:
    return not schema or schema.get("type") == "string"


def _list_of(items: list[dict[str, Json]], _dots: bool) -> dict[str, Json]:
    return {"type": "array", **({"items": items[0]} if items and items[0] else {})}


def _set_of(items: list[dict[str, Json]], dots: bool) -> dict[str, Json]:
    return {**_list_of(items, dots), "uniqueItems": True}


def _dict_of(items: list[dict[str, Json]], _dots: bool) -> dict[str, Json]:
    schema: dict[str, Json] = {"type": "object"}
    if items and "enum" in items[0]:
        schema["propertyNames"] = {"enum": items[0]["enum"]}
    if items and items[1]:
        schema["additionalProperties"] = items[1]
    return schema


def _tuple_of(items: list[dict[str, Json]], dots: bool) -> dict[str, Json]:
    if dots or not items:
        return _list_of(items, dots)
    count = len(items)
    bounds = {"minItems": count, "maxItems": count}
    return {"type": "array", "prefixItems": items, "items": False, **bounds}


def nullable(schema: dict[str, Json]) -> dict[str, Json]:
    """The same schema, null allowed as well."""
    return union_of([schema, {"type": "null"}])


def _optional_of(items: list[dict[str, Json]], _dots: bool) -> dict[str, Json]:
    return nullable(items[0])


def _union_of(items: list[dict[str, Json]], _dots: bool) -> dict[str, Json]:
    return union_of(items)


_MAKERS: dict[str, tuple[Any, str, Any]] = {
    "list": ((0, 1), "one type", _list_of),
    "set": ((0, 1), "one type", _set_of),
    "dict": ((0, 2), "a key and a value type", _dict_of),
    "tuple": (range(DEEPEST), "types", _tuple_of),
    "optional": ((1,), "one type in brackets", _optional_of),
    "union": (range(1, 100), "types in brackets", _union_of),
}


def union_of(arms: list[dict[str, Json]]) -> dict[str, Json]:
    """One schema for any of the arms: a type list where that says it all."""
    flat: list[dict[str, Json]] = []
    for arm in arms:
        inner = arm.get("anyOf") if set(arm) == {"anyOf"} else None
        flat += cast("list[dict[str, Json]]", inner) if inner else [arm]
    unique = [arm for index, arm in enumerate(flat) if arm not in flat[:index]]
    if {} in unique:
        return {}
    if len(unique) == 1:
        return unique[0]
    null = {"type": "null"}
    others = [arm for arm in unique if arm != null]
    if len(others) == 1 and null in unique:
        only = others[0]
        if "enum" in only:
            kinds = _kinds(only)
            typed = {"type": [*kinds, "null"]} if kinds else {}
            members: list[Json] = only["enum"]
            enum = members if None in members else [*members, None]
            return {**only, **typed, "enum": enum}
        if isinstance(only.get("type"), str) and only["type"] != "null":
            return {**only, "type": [only["type"], "null"]}
    if all(set(arm) == {"type"} for arm in unique):
        return {"type": list(dict.fromkeys(k for arm in unique for k in _kinds(arm)))}
    return {"anyOf": unique}


def _kinds(schema: Mapping[str, Json]) -> list[str]:
    kinds: Json = schema.get("type")
    if isinstance(kinds, str):
        return [kinds]
    return cast("list[str]", kinds) if isinstance(kinds, list) else []


def literal_of(members: list[Json]) -> dict[str, Json]:
    """`Literal["a", 3]`: an enum, with the type where all members share it."""
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    kinds = list(
        dict.fromkeys("null" if m is None else names[type(m)] for m in members)
    )
    return {"type": kinds[0] if len(kinds) == 1 else kinds, "enum": members}


