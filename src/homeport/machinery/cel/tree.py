"""A schema reduced to the nodes that have rules or lead to some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from homeport.machinery.cel.correlate import describes_all, map_keys
from homeport.machinery.cel.rule import Rule, RuleProblem
from homeport.machinery.cel.schema import MAX_REQUEST, Declared, declare

EXPRESSION_COST_LIMIT: Final = 10_000_000
SCHEMA_COST_LIMIT: Final = 100_000_000
_RULES: Final = "x-kubernetes-validations"

Schema = Mapping[str, Any]


class Node:
    """A place in objects where rules hold, there or below."""

    __slots__ = ("all_of", "closed", "declared", "items", "keys", "properties", "rules", "schema", "values")

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.declared: Declared | None = None
        self.rules: tuple[Rule, ...] = ()
        self.closed = False  # an object that is the very same as before needs no look at most rules
        self.properties: tuple[tuple[str, Node], ...] = ()
        self.items: Node | None = None
        self.values: Node | None = None
        self.all_of: tuple[Node, ...] = ()
        self.keys = map_keys(schema)

    @property
    def empty(self) -> bool:
        return not (self.rules or self.properties or self.items or self.values or self.all_of)


class _Place(NamedTuple):
    """Where in the schema the walk is."""

    path: str
    root: bool  # of a resource: its metadata is visible
    cardinality: int | None  # how often data of it can occur; None when nothing bounds it
    inherited: Declared | None  # its declaration, when the node above has one already
    uncorrelatable: str  # the list above whose items can't be matched with old ones


def build(schema: Schema, *, root: bool, path: str, problems: list[RuleProblem]) -> Node | None:
    """The tree for a schema, or None when it has no rules at all."""
    builder = _Builder(problems)
    made = builder.node(schema, schema, _Place(path, root, 1, None, ""))
    if builder.total > SCHEMA_COST_LIMIT:
        name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
        problems.append(RuleProblem(path, _excess(name, builder.total, SCHEMA_COST_LIMIT)))
    return made


class _Builder:
    def __init__(self, problems: list[RuleProblem]) -> None:
        self._problems = problems
        self.total = 0

    def node(self, validation: Schema, schema: Schema, place: _Place) -> Node | None:
        """`validation` holds the rules; it is the schema itself or what an allOf adds to it."""
        made = Node(schema)
        declared = place.inherited
        if validation.get(_RULES):
            declared = declared or declare(schema, root=place.root)
            made.declared = declared
            made.rules = self._rules(validation, schema, declared, place)
            made.closed = validation is schema and not place.root and describes_all(schema)
        self._children(made, validation, schema, declared, place)
        return None if made.empty else made

    def _rules(self, validation: Schema, schema: Schema, declared: Declared | None, place: _Place) -> tuple[Rule, ...]:
        where = f"{place.path}.{_RULES}"
        if declared is None:
            self._problems.append(
                RuleProblem(where, "rules can't be used here: the schema has no type that expressions can see")
            )
            return ()
        made: list[Rule] = []
        for index, entry in enumerate(validation[_RULES]):
            rule = Rule(entry, declared, schema)
            made.append(rule)
            at_path = f"{where}[{index}]"
            self._problems += [RuleProblem(f"{at_path}.{part}", text) for part, text in rule.problems]
            self._charge(rule, declared, place, at_path)
            if rule.uses_old and place.uncorrelatable:
                text = (
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within " + place.uncorrelatable
                )
                self._problems.append(RuleProblem(f"{at_path}.rule", text))
        return tuple(made)

    def _charge(self, rule: Rule, declared: Declared, place: _Place, path: str) -> None:
        times = place.cardinality
        if times is None:
            times = MAX_REQUEST // (declared.min_size + 1)
        cost = rule.cost * times
        self.total += cost + rule.message_cost
        if cost > EXPRESSION_COST_LIMIT:
            self._problems.append(
                RuleProblem(f"{path}.rule", _excess("estimated rule cost", cost, EXPRESSION_COST_LIMIT))
            )
        if rule.message_cost > EXPRESSION_COST_LIMIT:
            text = _excess("estimated messageExpression cost", rule.message_cost, EXPRESSION_COST_LIMIT)
            self._problems.append(RuleProblem(f"{path}.messageExpression", text))

    def _children(
        self, made: Node, validation: Schema, schema: Schema, declared: Declared | None, place: _Place
    ) -> None:
        cardinality = _times(place.cardinality, schema)
        found: list[tuple[str, Node]] = []
        for name, child in (validation.get("properties") or {}).items():
            own = (schema.get("properties") or {}).get(name)
            if own is None:
                continue
            known = declared.property(name) if declared is not None else None
            if known is not None and known.kind == "unknown":
                continue
            path = f"{place.path}.properties[{name}]"
            node = self.node(child, own, _below(place, own, path, cardinality, known))
            if node is not None:
                found.append((name, node))
        made.properties = tuple(found)
        element = declared.element if declared is not None else None
        items, own_items = validation.get("items"), schema.get("items")
        if isinstance(items, Mapping) and isinstance(own_items, Mapping):
            path = f"{place.path}.items"
            below = _below(place, own_items, path, cardinality, element)
            if not made.keys and not below.uncorrelatable:
                below = below._replace(uncorrelatable=place.path)
            made.items = self.node(items, own_items, below)
        values, own_values = validation.get("additionalProperties"), schema.get("additionalProperties")
        if isinstance(values, Mapping) and isinstance(own_values, Mapping):
            path = f"{place.path}.additionalProperties"
            made.values = self.node(values, own_values, _below(place, own_values, path, cardinality, element))
        nested = [
            self.node(each, schema, place._replace(path=f"{place.path}.allOf[{index}]", inherited=declared))
            for index, each in enumerate(validation.get("allOf") or ())
        ]
        made.all_of = tuple(each for each in nested if each is not None)


def _below(place: _Place, schema: Schema, path: str, cardinality: int | None, declared: Declared | None) -> _Place:
    embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    return _Place(path, embedded, cardinality, declared, place.uncorrelatable)


def _times(cardinality: int | None, schema: Schema) -> int | None:
    """How often a child of the schema can occur."""
    if cardinality is None:
        return None
    limit: int | None = 1
    if schema.get("type") == "object" and schema.get("additionalProperties") is not None:
        limit = schema.get("maxProperties")
    elif schema.get("type") == "array":
        limit = schema.get("maxItems")
    return None if limit is None else cardinality * max(limit, 0)


def _excess(what: str, cost: int, limit: int) -> str:
    factor = cost / limit
    if factor > 100:
        shown = "more than 100x"
    else:
        shown = f"{factor:.6f}x" if factor < 1.5 else f"{factor:.1f}x"
    return (
        f"{what} exceeds budget by factor of {shown} (try simplifying the rule, or adding maxItems, "
        "maxProperties, and maxLength where arrays, maps, and strings are declared)"
    )
