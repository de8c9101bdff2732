"""Pages with every kind and field of an API group, made from the definitions; gen_reference.py writes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Schema = Mapping[str, Any]
_COMMON = ("apiVersion", "kind", "metadata")
_HEAD = """\
# Fields of {group}

`make gen` writes this page from the types. `kubectl explain KIND.FIELD` shows the same. A field ending in `[]` is a
list, one ending in `{{}}` a map with keys of your choice. Fields in **bold** are required where their parent is set.
"""


def pages(definitions: Sequence[Schema]) -> dict[str, str]:
    """File name > content, one for each group."""
    groups: dict[str, list[Schema]] = defaultdict(list)
    for each in definitions:
        groups[each["spec"]["group"]].append(each)
    return {f"fields-{group}.md": page(group, kinds) for group, kinds in sorted(groups.items())}


def page(group: str, kinds: Sequence[Schema]) -> str:
    by_name = {each["spec"]["names"]["kind"]: each for each in kinds}
    parts = [_HEAD.format(group=group)]
    parts += [section(by_name[name], by_name) for name in sorted(by_name)]
    return "\n".join(parts)


def section(definition: Schema, others: Mapping[str, Schema]) -> str:
    spec = definition["spec"]
    name = spec["names"]["kind"]
    short = ", ".join(f"`{each}`" for each in spec["names"].get("shortNames") or ())
    versions = ", ".join(each["name"] for each in spec["versions"] if each["served"])
    schema = stored(definition)
    about = [f"{text(schema)}\n" if text(schema) else ""]
    facts = ["Namespaced" if spec["scope"] == "Namespaced" else "Cluster-scoped", f"Versions: {versions}"]
    facts += [f"Short names: {short}"] if short else []
    about.append(". ".join(facts) + ".\n")
    return "\n".join([f"## {name}\n", *(each for each in about if each), table(name, schema, others)])


def stored(definition: Schema) -> Schema:
    (found,) = [each for each in definition["spec"]["versions"] if each["storage"]]
    schema: Schema = found["schema"]["openAPIV3Schema"]
    return schema


def table(name: str, schema: Schema, others: Mapping[str, Schema]) -> str:
    base = name.removesuffix("Template")
    same = others.get(base) if base != name else None
    rows = []
    for path, required, field in fields(schema, ""):
        inside = path.startswith("spec.template.spec.")
        if same is not None and inside and path.removeprefix("spec.template.") in _paths(same):
            continue  # said once, of the kind that the template is for
        rows.append(row(path, required, field))
        if same is not None and path == "spec.template.spec":
            rows.append(f"| `spec.template.spec.*` | | the fields of `spec` of [{base}](#{base.lower()}) |")
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows, ""])


def _paths(definition: Schema) -> set[str]:
    return {path for path, _, _ in fields(stored(definition), "")}


def fields(schema: Schema, above: str) -> Iterator[tuple[str, bool, Schema]]:
    """Every field below a schema, depth first: path, whether it is required, its schema."""
    required = schema.get("required") or ()
    for name, field in (schema.get("properties") or {}).items():
        if not above and name in _COMMON:
            continue
        path = f"{above}.{name}" if above else name
        mark, inner = _inner(field)
        yield path + mark, name in required, field
        yield from fields(inner, path + mark)


def _inner(field: Schema) -> tuple[str, Schema]:
    """What is below a field, and how its path is marked: lists and maps have their elements there."""
    mark = ""
    while True:
        if isinstance(field.get("items"), Mapping):
            mark, field = f"{mark}[]", field["items"]
        elif isinstance(field.get("additionalProperties"), Mapping):
            mark, field = f"{mark}{{}}", field["additionalProperties"]
        else:
            return mark, field


def row(path: str, required: bool, field: Schema) -> str:
    name = f"**`{path}`**" if required else f"`{path}`"
    notes = [text(field)]
    if "enum" in field:
        notes.append("One of " + ", ".join(f"`{each}`" for each in field["enum"]) + ".")
    if "default" in field and field["default"] not in ({}, []):
        notes.append(f"Default: `{field['default']}`.")
    return f"| {name} | {kind_of(field)} | {' '.join(each for each in notes if each)} |"


def kind_of(field: Schema) -> str:
    if field.get("x-kubernetes-int-or-string"):
        return "integer or string"
    kind = str(field.get("type", "any"))
    return f"{kind}, {field['format']}" if kind == "string" and "format" in field else kind


def text(schema: Schema) -> str:
    return " ".join(str(schema.get("description", "")).split()).replace("|", "\\|").replace("<", "&lt;")
