# --- types of the file ---------------------------------------------------------


def collect_types(
    tree: Json, *, problems: list[NotationProblem] | None = None
) -> TypeTable:
    """Every `_type_ref` of a file, wherever it stands (rule B36).

    `tree` is the whole file, one command, or one node. A name that is defined twice,
    or that is a builtin type's, is an error; the first definition holds.
    """
    found: dict[str, Json] = {}
    noted: list[NotationProblem] = [] if problems is None else problems

    def define(name: Any, body: Json, path: Path) -> None:
        if not isinstance(name, str) or not name.strip():
            message = "_type_ref: expected a name, written as text"
        elif builtin(name) is not None:
            message = f"_type_ref {name!r}: this is the name of a builtin type"
        elif name in found and found[name] is not body:
            message = f"_type_ref {name!r}: defined twice in this file"
        else:
            found[name] = body
            return
        noted.append(NotationProblem(path=path, message=message))

    def visit(node: Json, path: Path, depth: int) -> None:
        if not isinstance(node, Mapping) or depth > DEEPEST:
            return
        body: Json = cast("Mapping[str, Json]", node).get("type")
        at = (*path, "type")
        if isinstance(body, Mapping):
            fields = cast("Mapping[str, Json]", body)
            if "_type_ref" in fields:
                define(fields["_type_ref"], fields, (*at, "_type_ref"))
            for key, value in fields.items():
                visit(value, (*at, key), depth + 1)
        elif isinstance(body, list):
            items = cast("list[Json]", body)
            for index, item in enumerate(items):
                if isinstance(item, Mapping) and "_type_ref" in item:
                    name = cast("Mapping[str, Json]", item)["_type_ref"]
                    define(name, items, (*at, index, "_type_ref"))
                visit(item, (*at, index), depth + 1)

    def command(node: Json, path: Path) -> None:
        if not isinstance(node, Mapping):
            return
        given = cast("Mapping[str, Json]", node)
        for key in ("parameter", "parameters", "response"):
            part: Json = given.get(key)
            if isinstance(part, list):
                for index, item in enumerate(cast("list[Json]", part)):
                    visit(item, (*path, key, index), 0)
            else:
                visit(part, (*path, key), 0)
        if "type" in given and not {"parameter", "parameters", "command_name"} & set(
            given
        ):
            visit(given, path, 0)

    if isinstance(tree, list):
        for index, item in enumerate(cast("list[Json]", tree)):
            command(item, (index,))
    elif isinstance(tree, Mapping):
        given = cast("Mapping[str, Json]", tree)
        commands: Json = given.get("commands")
        if isinstance(commands, list):
            for index, item in enumerate(cast("list[Json]", commands)):
                command(item, ("commands", index))
        else:
            command(given, ())
    return TypeTable(found)


