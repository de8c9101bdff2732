"""The rules of a whole schema: compiled once, then run against objects."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn

from homeport.machinery.cel.correlate import OldItems, unchanged
from homeport.machinery.cel.cost.price import TOTAL_BUDGET
from homeport.machinery.cel.errors import CelError, CostLimitExceeded
from homeport.machinery.cel.fieldpath import Path
from homeport.machinery.cel.rule import MAX_MESSAGE, Rule, RuleProblem
from homeport.machinery.cel.tree import Node, build
from homeport.machinery.cel.values import NONE, Optional

DEFAULT_PATH: Final = "spec.validation.openAPIV3Schema"


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
_NO_MORE: Final = "no further validation rules will be run"


class Violation(NamedTuple):
    """A rule that does not hold. `value` is None where it is not shown: for objects and lists."""

    path: str
    message: str
    reason: str
    value: Any


class Rules:
    """The compiled `x-kubernetes-validations` of a schema and of all schemas within it.

    Rules that don't compile are listed in `problems`; every object violates them.
    """

    def __init__(self, schema: Mapping[str, Any], *, root: bool = True, path: str = DEFAULT_PATH) -> None:
        self.problems: list[RuleProblem] = []
        self._tree = build(schema, root=root, path=path, problems=self.problems)

    def __bool__(self) -> bool:
        return self._tree is not None

    def validate(self, obj: object, old: object = MISSING) -> list[Violation]:
        """All violations of the object; `old` is what it replaces, if it replaces something."""
        if self._tree is None or obj is None:
            return []
        run = _Run()
        previous = None if old is MISSING else old
        pair = None if previous is None else _Pair(self._tree.schema, obj, previous)
        with contextlib.suppress(_Exhausted):
            run.visit(self._tree, obj, previous, Path(), pair, None)
        return run.violations


def compile_rules(schema: Mapping[str, Any], *, path: str = DEFAULT_PATH) -> tuple[Rules | None, list[RuleProblem]]:
    """The rules of a version's schema and what is wrong with them; None when there are no rules at all."""
    rules = Rules(schema, path=path)
    return (rules if rules or rules.problems else None), rules.problems


class _Pair(NamedTuple):
    """A value and the one it replaces: when they are the same, broken rules are let through."""

    schema: Mapping[str, Any]
    new: Any
    old: Any

    def same(self) -> bool:
        return unchanged(self.schema, self.new, self.old)


class _Exhausted(Exception):
    """The budget is used up."""


class _Run:
    """One validation: the violations so far and the budget that is left."""

    __slots__ = ("_budget", "violations")

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self._budget = TOTAL_BUDGET

    def visit(self, node: Node, value: Any, old: Any, path: Path, pair: _Pair | None, outer: _Pair | None) -> None:
        """`pair` is the nearest value that has an old one, `outer` the nearest above this node."""
        if node.rules:
            self._check(node, value, old, path, pair)
        for added in node.all_of:
            self.visit(added, value, old, path, outer, outer)
        if isinstance(value, dict):
            if node.properties or node.values is not None:
                self._visit_members(node, value, old, path, pair)
        elif node.items is not None and isinstance(value, list):
            self._visit_items(node.items, node.keys, value, old, path, pair)

    def _visit_members(self, node: Node, value: dict[str, Any], old: Any, path: Path, pair: _Pair | None) -> None:
        previous = old if isinstance(old, dict) else _EMPTY
        for name, child in node.properties:
            member = value.get(name)
            if member is not None:
                was = previous.get(name)
                inner = pair if was is None else _Pair(child.schema, member, was)
                self.visit(child, member, was, path.child(name), inner, pair)
        values = node.values
        if values is not None:
            for name, member in value.items():
                if member is not None:
                    was = previous.get(name)
                    inner = pair if was is None else _Pair(values.schema, member, was)
                    self.visit(values, member, was, path.key(name), inner, pair)

    def _visit_items(
        self, node: Node, keys: tuple[str, ...], value: list[Any], old: Any, path: Path, pair: _Pair | None
    ) -> None:
        previous = OldItems(keys, old)
        for index, item in enumerate(value):
            if item is not None:
                was = previous.get(item)
                inner = pair if was is None else _Pair(node.schema, item, was)
                self.visit(node, item, was, path.key(index), inner, pair)

    def _check(self, node: Node, value: Any, old: Any, path: Path, pair: _Pair | None) -> None:
        if self._budget <= 0:
            self._exhaust(node, path, f"validation failed due to running out of cost budget, {_NO_MORE}")
        for rule in node.rules:
            program = rule.program
            if program is None:
                if rule.broken:
                    self._invalid(node, path, f"rule compile error: {rule.broken}")
                continue
            if rule.uses_old:
                if old is None and not rule.optional_old:
                    continue
            elif old is value and node.closed:
                continue  # nothing changed, so what breaks the rule would be let through
            previous = _optional(node, old) if rule.optional_old else old
            holds = self._evaluate(node, rule, value, previous, path)
            if not holds:
                self._report(node, rule, value, previous, path, pair)

    def _evaluate(self, node: Node, rule: Rule, value: Any, old: Any, path: Path) -> bool:
        assert rule.program is not None
        try:
            result, cost = rule.program.run(value, old)
        except CostLimitExceeded as error:
            text = f"'{error}': {_NO_MORE} due to call cost exceeds limit for rule: {rule.label}"
            self._exhaust(node, path, text)
        except CelError as error:
            self._spend(node, path, error.cost)
            if error.reason.startswith("no such overload"):
                text = (
                    f"'{error}': call arguments did not match a supported operator, function or macro "
                    f"signature for rule: {rule.label}"
                )
            else:
                text = f"{error} evaluating rule: {rule.label}"
            self._invalid(node, path, text)
            return True
        self._spend(node, path, cost)
        return result is True

    def _report(self, node: Node, rule: Rule, value: Any, old: Any, path: Path, pair: _Pair | None) -> None:
        if not rule.uses_old and pair is not None and pair.same():
            return
        place = str(path)
        if rule.field_path:
            glue = "" if rule.field_path.startswith("[") or not place else "."
            place = f"{place}{glue}{rule.field_path}"
        message = self._message(node, rule, value, old, path) or rule.default_message
        shown = None if node.schema.get("type") in ("object", "array") else value
        self.violations.append(Violation(place, message, rule.reason, shown))

    def _message(self, node: Node, rule: Rule, value: Any, old: Any, path: Path) -> str:
        """What the rule's messageExpression says; nothing when it fails or says nothing usable."""
        if rule.message_program is None:
            return ""
        try:
            result, cost = rule.message_program.run(value, old)
        except CostLimitExceeded:
            text = f'{_NO_MORE} due to call cost exceeds limit for messageExpression: "{rule.label}"'
            self._exhaust(node, path, text)
        except CelError as error:
            self._spend(node, path, error.cost)
            return ""
        self._spend(node, path, cost)
        text = str(result).strip()
        return "" if len(text.encode()) > MAX_MESSAGE or "\n" in text else text

    def _spend(self, node: Node, path: Path, cost: int) -> None:
        if cost > self._budget:
            self._exhaust(node, path, f"validation failed due to running out of cost budget, {_NO_MORE}")
        self._budget -= cost

    def _invalid(self, node: Node, path: Path, message: str) -> None:
        shown = node.schema.get("type") or ""
        self.violations.append(Violation(str(path), message, "FieldValueInvalid", shown))

    def _exhaust(self, node: Node, path: Path, message: str) -> NoReturn:
        self._invalid(node, path, message)
        raise _Exhausted


_EMPTY: Final[dict[str, Any]] = {}


def _optional(node: Node, old: Any) -> Optional:
    if old is None:
        return NONE
    assert node.declared is not None
    return Optional(node.declared.convert(old))
