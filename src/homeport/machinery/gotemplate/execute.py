"""The tree, carried out on a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from homeport.machinery.gotemplate.budget import LARGEST, Budget
from homeport.machinery.gotemplate.error import CallError, PlacedError, TemplateError
from homeport.machinery.gotemplate.evaluate import Evaluation
from homeport.machinery.gotemplate.function import Function
from homeport.machinery.gotemplate.printer import shown
from homeport.machinery.gotemplate.tree import Branch, Include, Jump, Loop, Node, Print, Text, Tree
from homeport.machinery.gotemplate.value import (
    INTEGERS,
    MISSING,
    UNSIGNED,
    Struct,
    kind_of,
    octets,
    text_of,
    truth,
    type_of,
)

_DEEPEST = 100  # templates that include each other


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Definition:
    """A template with a name: the file it stands in, and its nodes."""

    name: str
    file: str
    body: list[Node]


def execute(tree: Tree, functions: Mapping[str, Function], data: object, *, limit: int, strict: bool) -> str:
    """Raises TemplateError."""
    known = {name: Definition(name, "", body) for name, body in tree.defined.items()}
    run = Run(known, functions, Budget(), limit=limit or LARGEST, strict=strict)
    try:
        run.write(Definition("", "", tree.body), MISSING if data is None else data)
    except RecursionError:
        raise TemplateError(run.line, "templates or values are nested too deeply") from None
    except CallError as wrong:
        raise TemplateError(run.line, str(wrong)) from None
    try:
        return b"".join(run.out).decode()
    except UnicodeDecodeError:
        raise TemplateError(run.line, "the text is not UTF-8: a character was cut into pieces") from None


class Run:
    """Templates that know each other by their names, carried out with one budget.

    `place` and `line` are where the run is; after an error, where it happened.
    """

    def __init__(
        self,
        templates: Mapping[str, Definition],
        functions: Mapping[str, Function],
        budget: Budget,
        *,
        limit: int = LARGEST,
        strict: bool = False,
        zero: bool = False,
    ) -> None:
        self.out: list[bytes] = []
        self.line = 1
        self.place = Definition("", "", [])
        self.templates = templates
        self._functions = functions
        self._limit = limit
        self._strict = strict
        self._zero = zero
        self._budget = budget
        self._size = 0
        self._depth = 0

    def text(self, definition: Definition, data: Any) -> str:
        """The text of one template by itself. Raises PlacedError."""
        outer, self.out = self.out, []
        line, depth = self.line, self._depth
        try:
            self.enter()
            self.write(definition, MISSING if data is None else data)
            self._depth -= 1
        except CallError as wrong:
            raise PlacedError(self.place.file, self.line, str(wrong)) from None
        except RecursionError:
            raise PlacedError(self.place.file, self.line, "templates or values are nested too deeply") from None
        text = text_of(b"".join(self.out))
        self.out, self.line, self._depth = outer, line, depth
        return text

    def write(self, definition: Definition, data: Any) -> None:
        place, self.place = self.place, definition
        values = Evaluation(self._functions, self._budget, data, strict=self._strict, zero=self._zero)
        self._nodes(definition.body, data, values)
        self.place = place

    def enter(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CallError(f"templates include each other more than {_DEEPEST} times")

    def _nodes(self, nodes: list[Node], dot: Any, values: Evaluation) -> None:
        for node in nodes:
            self.line = node.line
            self._budget.step()
            if isinstance(node, Text):
                self._emit(node.text)
            elif isinstance(node, Print):
                value = values.pipeline(node.pipeline, dot)
                if not node.pipeline.variables:
                    self._emit("<no value>" if value is MISSING else _printed(value))
            elif isinstance(node, Branch):
                self._branch(node, dot, values)
            elif isinstance(node, Loop):
                self._loop(node, dot, values)
            elif isinstance(node, Include):
                self._include(node, dot, values)
            else:
                _jump(node)

    def _emit(self, text: str) -> None:
        raw = octets(text)
        self._size += len(raw)
        if self._size > self._limit:
            raise CallError(f"the text becomes larger than {self._limit} bytes")
        self.out.append(raw)

    def _branch(self, node: Branch, dot: Any, values: Evaluation) -> None:
        mark = values.mark()
        value = values.pipeline(node.pipeline, dot)
        if truth(value):
            self._nodes(node.body, value if node.kind == "with" else dot, values)
        else:
            self._nodes(node.otherwise, dot, values)
        values.forget(mark)

    def _loop(self, node: Loop, dot: Any, values: Evaluation) -> None:
        outer = values.mark()
        items = self._items(node, values.pipeline(node.pipeline, dot))
        mark = values.mark()
        for key, item in items:
            self._budget.step()
            values.turn(node.pipeline, key, item)
            try:
                self._nodes(node.body, item, values)
            except _Break:
                break
            except _Continue:
                pass
            finally:
                values.forget(mark)
        if not items:
            self._nodes(node.otherwise, dot, values)
        values.forget(outer)

    def _items(self, node: Loop, value: Any) -> list[tuple[Any, Any]]:
        if value is MISSING:
            return []
        if isinstance(value, dict):
            self._budget.glance(value)
            return [(key, value[key]) for key in sorted(value, key=octets)]
        if isinstance(value, list):
            return list(enumerate(value))
        kind = kind_of(value)
        if kind in INTEGERS or kind in UNSIGNED:
            if len(node.pipeline.variables) > 1:
                raise CallError("range over a number sets one variable only")
            if value > LARGEST:
                raise CallError(f"range can't go over {int(value)} numbers: it does not come to an end")
            return [(MISSING, type(value)(i)) for i in range(value)]
        raise CallError(f"range can't go over a value of type {type_of(value)}: it needs a list, a map or an int")

    def _include(self, node: Include, dot: Any, values: Evaluation) -> None:
        definition = self.templates.get(node.name)
        if definition is None:
            raise CallError(f"undefined template {node.name!r}")
        data = values.pipeline(node.pipeline, dot) if node.pipeline is not None else MISSING
        self.enter()
        self.write(definition, data)
        self._depth -= 1


def _printed(value: Any) -> str:
    """An action prints a struct with a String method by that; functions see its fields."""
    return str(value) if isinstance(value, Struct) and value.method("String") is not None else shown(value)


def _jump(node: Jump) -> None:
    raise _Break if node.kind == "break" else _Continue
