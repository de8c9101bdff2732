"""The tree, carried out on a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.machinery.gotemplate.budget import LARGEST, Budget
from homeport.machinery.gotemplate.error import CallError, TemplateError
from homeport.machinery.gotemplate.evaluate import Evaluation
from homeport.machinery.gotemplate.function import Function
from homeport.machinery.gotemplate.printer import shown
from homeport.machinery.gotemplate.tree import Branch, Include, Jump, Loop, Node, Print, Text, Tree
from homeport.machinery.gotemplate.value import INTEGERS, MISSING, UNSIGNED, kind_of, octets, truth, type_of

_DEEPEST = 100  # templates that include each other


class _Break(Exception):
    pass


class _Continue(Exception):
    pass


def execute(tree: Tree, functions: Mapping[str, Function], data: object, *, limit: int, strict: bool) -> str:
    """Raises TemplateError."""
    run = _Run(tree, functions, limit or LARGEST, strict)
    try:
        run.execute(data)
    except RecursionError:
        raise TemplateError(run.line, "templates or values are nested too deeply") from None
    except CallError as wrong:
        raise TemplateError(run.line, str(wrong)) from None
    try:
        return b"".join(run.out).decode()
    except UnicodeDecodeError:
        raise TemplateError(run.line, "the text is not UTF-8: a character was cut into pieces") from None


class _Run:
    def __init__(self, tree: Tree, functions: Mapping[str, Function], limit: int, strict: bool) -> None:
        self.out: list[bytes] = []
        self.line = 1
        self._tree = tree
        self._functions = functions
        self._limit = limit
        self._strict = strict
        self._budget = Budget()
        self._size = 0
        self._depth = 0

    def execute(self, data: Any) -> None:
        self._template(self._tree.body, MISSING if data is None else data)

    def _template(self, nodes: list[Node], data: Any) -> None:
        self._nodes(nodes, data, Evaluation(self._functions, self._budget, data, strict=self._strict))

    def _nodes(self, nodes: list[Node], dot: Any, values: Evaluation) -> None:
        for node in nodes:
            self.line = node.line
            self._budget.step()
            if isinstance(node, Text):
                self._emit(node.text)
            elif isinstance(node, Print):
                value = values.pipeline(node.pipeline, dot)
                if not node.pipeline.variables:
                    self._emit("<no value>" if value is MISSING else shown(value))
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
            self._budget.spend(value)
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
        body = self._tree.defined.get(node.name)
        if body is None:
            raise CallError(f"undefined template {node.name!r}")
        data = values.pipeline(node.pipeline, dot) if node.pipeline is not None else MISSING
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CallError(f"templates include each other more than {_DEEPEST} times")
        self._template(body, data)
        self._depth -= 1


def _jump(node: Jump) -> None:
    raise _Break if node.kind == "break" else _Continue
