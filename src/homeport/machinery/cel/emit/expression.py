"""Checked trees to Python source.

Two versions can be emitted. The fast one lets any error of the language escape as whatever Python raises;
its answers are right whenever it raises nothing. When it does raise, the exact version decides: there errors
have their proper text, and `&&`, `||`, `all` and `exists` absorb them.

Costs are added up in the local variable `c`, once per branch, as the sum is known while compiling.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from homeport.machinery.cel import runtime
from homeport.machinery.cel.constants import is_constant
from homeport.machinery.cel.cost.price import LIST_BASE, MAP_BASE
from homeport.machinery.cel.parse.syntax import Ident, ListNode, Literal, MapNode, Node, Select
from homeport.machinery.cel.schema import Declared
from homeport.machinery.cel.values import has, select

# how deep one Python expression may get before a part of it moves into a function of its own
_MAX_DEPTH: Final = 24


class Code(NamedTuple):
    """An expression in Python. With `raw` its value is JSON as that node of a schema describes it."""

    source: str
    raw: Declared | None = None
    depth: int = 0


class EmitterCore:
    """Everything but macros and calls."""

    def __init__(self, *, exact: bool) -> None:
        self.exact = exact
        self.namespace: dict[str, Any] = {"limit": runtime.limit}
        self.cost = 0
        self._bound: dict[int, str] = {}
        self._kept: list[Any] = []
        self._scopes: list[dict[str, Code]] = [{}]
        self._prelude: list[str] = []
        self._count = 0

    # --- names and costs

    def bind(self, value: object) -> str:
        """A global name for an object the code needs."""
        name = self._bound.get(id(value))
        if name is None:
            name = f"k{len(self._bound)}"
            self._bound[id(value)] = name
            self._kept.append(value)  # its id must stay taken
            self.namespace[name] = value
        return name

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def charge(self, amount: str) -> str:
        """An expression that adds to the cost and is true."""
        # `c` comes last: the amount may be computed by code that itself adds to it
        return f"charge({amount})" if self.exact else f"(c := {amount} + c)"

    def declare(self, name: str, code: Code) -> None:
        """A variable of the whole expression."""
        self._scopes[0][name] = code

    def charged(self, cost: int, source: str) -> str:
        return f"({self.charge(str(cost))} and {source})" if cost else source

    @contextmanager
    def branch(self) -> Iterator[list[int]]:
        """Costs of a part that may not be reached: they end up in the list."""
        outer, self.cost = self.cost, 0
        found: list[int] = []
        try:
            yield found
        finally:
            found.append(self.cost)
            self.cost = outer

    def branched(self, emit: Callable[[], Code]) -> Code:
        with self.branch() as cost:
            code = emit()
        return code._replace(source=self.charged(cost[0], code.source))

    @property
    def prelude(self) -> list[str]:
        """Functions that have to stand in front of the expression."""
        return self._prelude

    # --- expressions

    def emit(self, node: Node) -> Code:
        code = self._writer(node)(node)
        if code.depth < _MAX_DEPTH:
            return code
        name = self.fresh("s")
        self._function(name, "", [f"return {code.source}"], [])
        return Code(f"{name}()", code.raw)

    def _writer(self, node: Any) -> Callable[[Any], Code]:
        """Who writes such a node. Returned and not called here: deep trees are short of stack."""
        return functools.partial(_WRITERS[type(node)], self)

    def _literal(self, node: Literal) -> Code:
        return Code(self.literal(node.value))

    def value(self, node: Node) -> Code:
        """The expression as a value of the language, whatever it came from."""
        return self.converted(self.emit(node))

    def converted(self, code: Code) -> Code:
        if code.raw is None or code.raw.plain:
            return code
        return Code(f"{self.bind(code.raw.convert)}({code.source})", None, code.depth + 1)

    def condition(self, node: Node) -> Code:
        code = self.value(node)
        if node.type.kind == "bool":
            return code
        return Code(f"{self.bind(runtime.as_bool)}({code.source})", None, code.depth + 1)

    def literal(self, value: object) -> str:
        if value is None or type(value) in (bool, str, bytes):
            return repr(value)
        if type(value) is int:
            return repr(value) if value >= 0 else f"({value!r})"
        name = self.fresh("n")
        self.namespace[name] = value
        return name

    def _ident(self, node: Ident) -> Code:
        if node.constant is not None:
            return Code(self.bind(node.constant))
        self.cost += 1
        for scope in reversed(self._scopes):
            if node.name in scope:
                return scope[node.name]
        raise KeyError(node.name)

    def _select(self, node: Select) -> Code:
        if node.constant is not None:
            return Code(self.bind(node.constant))
        operand = self.emit(node.operand)
        if not node.test:
            self.cost += 1
        if operand.raw is not None and operand.raw.kind == "object":
            return self._field(node, operand, operand.raw)
        if operand.raw is not None and operand.raw.kind == "map":
            return self._entry(node, operand, operand.raw)
        operand = self.converted(operand)
        field, depth = repr(node.field), operand.depth + 1
        if node.test:
            return Code(f"{self.bind(has)}({operand.source}, {field})", None, depth)
        if self.exact or node.operand.type.is_optional:
            return Code(f"{self.bind(select)}({operand.source}, {field})", None, depth)
        return Code(f"{operand.source}[{field}]", None, depth)

    def _field(self, node: Select, operand: Code, holder: Declared) -> Code:
        child, name = holder.field(node.field), repr(holder.raw_name(node.field))
        source, depth = operand.source, operand.depth + 1
        if node.test:
            found = f"({source}.get({name}) is not None)" if child.nullable else f"({name} in {source})"
            return Code(found, None, depth)
        if self.exact or child.nullable:
            getter = self.bind(runtime.field)
            return self._read(Code(f"{getter}({source}, {name})", child, depth))
        return self._read(Code(f"{source}[{name}]", child, depth))

    def _entry(self, node: Select, operand: Code, holder: Declared) -> Code:
        source, name, depth = operand.source, repr(node.field), operand.depth + 1
        if node.test:
            return Code(f"({name} in {source})", None, depth)
        if self.exact:
            return self._read(Code(f"{self.bind(runtime.entry)}({source}, {name})", holder.element, depth))
        return self._read(Code(f"{source}[{name}]", holder.element, depth))

    def _read(self, code: Code) -> Code:
        """Scalars are converted on the spot; objects and lists stay raw until someone needs a value."""
        if code.raw is not None and code.raw.kind == "scalar":
            return self.converted(code)._replace(raw=None)
        return code

    def _list(self, node: ListNode) -> Code:
        items = [self.value(item) for item in node.items]
        if not is_constant(node):
            self.cost += LIST_BASE
        depth = max((item.depth for item in items), default=0) + 1
        written = ", ".join(
            f"*{self.bind(runtime.spread)}({item.source})" if index in node.optional else item.source
            for index, item in enumerate(items)
        )
        return Code(f"[{written}]", None, depth)

    def _map(self, node: MapNode) -> Code:
        if not is_constant(node):
            self.cost += MAP_BASE
        keys = [self.value(key) for key, _, _ in node.entries]
        values = [self.value(value) for _, value, _ in node.entries]
        depth = max((code.depth for code in (*keys, *values)), default=0)
        names = {key.value for key, _, _ in node.entries if isinstance(key, Literal) and type(key.value) is str}
        if len(names) == len(keys) and not any(optional for *_, optional in node.entries):
            written = (f"{key.source}: {value.source}" for key, value in zip(keys, values, strict=True))
            return Code(f"{{{', '.join(written)}}}", None, depth + 1)
        pairs = (
            f"({key.source}, {value.source}, {optional})"
            for key, value, (*_, optional) in zip(keys, values, node.entries, strict=True)
        )
        return Code(f"{self.bind(runtime.make_map)}([{', '.join(pairs)}])", None, depth + 2)

    def _function(self, name: str, params: str, body: list[str], nested: list[str]) -> None:
        """Puts a function in front of the code that is being written."""
        lines = [f"def {name}({params}):"]
        if not self.exact:
            lines.append("    nonlocal c")
        lines += [f"    {line}" for line in (*nested, *body)]
        self._prelude += lines


_WRITERS: Final[dict[type[Node], Callable[..., Code]]] = {
    Select: EmitterCore._select,
    Ident: EmitterCore._ident,
    Literal: EmitterCore._literal,
    ListNode: EmitterCore._list,
    MapNode: EmitterCore._map,
}
