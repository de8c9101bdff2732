"""How much work a JSON schema is for given values. A chart brings the schema, and the validator can't be stopped.

References that branch double the work with every level: thirty of them take minutes, sixty take years. So the same
steps are counted here first, without checking anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final
from urllib.parse import unquote, urldefrag, urljoin

_MOST_STEPS: Final = 300_000
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_SAME_VALUE: Final = ("not", "if", "then", "else")
_SAME_VALUE_LISTS: Final = ("allOf", "anyOf", "oneOf")
_EACH_VALUE: Final = ("additionalProperties", "unevaluatedProperties")
_EACH_ITEM: Final = ("items", "additionalItems", "contains", "unevaluatedItems")

Step = tuple[Any, Any, str]  # schema, value, the address that its references start from


class EndlessSchema(ValueError):
    pass


def check_cost(schema: Any, value: Any) -> None:
    """Raises EndlessSchema."""
    places = _Places(schema)
    left: list[Step] = [(schema, value, "")]
    steps = 0
    while left:
        found, part, base = left.pop()
        if not isinstance(found, dict):
            continue
        more = list(_steps(found, part, places.base(found, base), places))
        steps += 1 + len(more)
        if steps > _MOST_STEPS:
            raise EndlessSchema(
                f"checking the values takes more than {_MOST_STEPS} steps: its references lead back to themselves, or "
                "branch too often"
            )
        left += more


def _steps(schema: dict[str, Any], value: Any, base: str, places: _Places) -> Iterator[Step]:
    for key in _REFERENCES:
        if isinstance(schema.get(key), str):
            yield from places.find(schema[key], value, base)
    for below in _same(schema):
        yield below, value, base
    if isinstance(value, dict):
        yield from ((below, part, base) for below, part in _properties(schema, value))
    elif isinstance(value, list):
        yield from ((below, part, base) for below, part in _items(schema, value))


def _same(schema: dict[str, Any]) -> Iterator[Any]:
    """What applies to the value itself."""
    yield from (schema[key] for key in _SAME_VALUE if key in schema)
    for key in _SAME_VALUE_LISTS:
        yield from _list(schema.get(key))
    for key in ("dependentSchemas", "dependencies"):
        yield from _dict(schema.get(key)).values()


def _properties(schema: dict[str, Any], value: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    known = _dict(schema.get("properties"))
    patterns = list(_dict(schema.get("patternProperties")).values())
    others = [schema[key] for key in _EACH_VALUE if key in schema]
    for name, part in value.items():
        if name in known:
            yield known[name], part
        yield from ((below, part) for below in (*patterns, *others))
        if "propertyNames" in schema:
            yield schema["propertyNames"], name


def _items(schema: dict[str, Any], value: list[Any]) -> Iterator[tuple[Any, Any]]:
    for key in ("prefixItems", "items"):
        yield from zip(_list(schema.get(key)), value, strict=False)
    for key in _EACH_ITEM:
        if isinstance(schema.get(key), dict):
            yield from ((schema[key], part) for part in value)


class _Places:
    """The parts of a schema that references may name."""

    def __init__(self, schema: Any) -> None:
        self._known: dict[str, list[Any]] = {"": [schema]}  # several if a name is used twice: all of them count
        self._bases: dict[int, str] = {}
        self._index(schema)

    def base(self, schema: dict[str, Any], given: str) -> str:
        return self._bases.get(id(schema), given)

    def find(self, reference: str, value: Any, base: str) -> Iterable[Step]:
        """Nothing for what is not in the schema: the validator refuses it."""
        whole = base + reference if reference.startswith("#") else urljoin(base, reference)
        address, fragment = urldefrag(whole)
        found = [*self._known.get(whole, ())] if fragment else []
        if fragment.startswith("/") or not fragment:
            found += [_pointed(each, unquote(fragment)) for each in self._known.get(address, ())]
        return [(each, value, address) for each in found]

    def _index(self, schema: Any) -> None:
        left: list[tuple[Any, str]] = [(schema, "")]
        while left:
            found, base = left.pop()
            if isinstance(found, dict):
                base = self._named(found, base)
                left += [(below, base) for below in found.values()]
            elif isinstance(found, list):
                left += [(below, base) for below in found]

    def _named(self, schema: dict[str, Any], base: str) -> str:
        for key in ("$id", "id"):
            if isinstance(schema.get(key), str):
                base = urldefrag(urljoin(base, schema[key]))[0]
                self._known.setdefault(base, []).append(schema)
                break
        self._bases[id(schema)] = base
        for key in ("$anchor", "$dynamicAnchor"):
            if isinstance(schema.get(key), str):
                self._known.setdefault(f"{base}#{schema[key]}", []).append(schema)
        return base


def _pointed(schema: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(schema, list):
            schema = schema[int(name)] if name.isdigit() and int(name) < len(schema) else None
        else:
            schema = schema.get(name) if isinstance(schema, dict) else None
    return schema


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
