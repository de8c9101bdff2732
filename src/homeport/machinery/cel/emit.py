"""Checked trees to Python source.

Two versions can be emitted. The fast one lets any error of the language escape as whatever Python raises;
its answers are right whenever it raises nothing. When it does raise, the exact version decides: there errors
have their proper text, and `&&`, `||`, `all` and `exists` absorb them.

Costs are added up in the local variable `c`, once per branch, as the sum is known while compiling.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from homeport.machinery.cel import runtime
from homeport.machinery.cel.constants import is_constant
from homeport.machinery.cel.price import LIST_BASE, MAP_BASE, PER_CALL_LIMIT
from homeport.machinery.cel.schema import Declared
from homeport.machinery.cel.syntax import Fold, Ident, ListNode, Literal, MapNode, Node, Select
from homeport.machinery.cel.types import CelType
from homeport.machinery.cel.values import has, iterate, iterate_pairs, select

# how deep one Python expression may get before a part of it moves into a function of its own
_MAX_DEPTH: Final = 24


class Code(NamedTuple):
    """An expression in Python. With `raw` its value is JSON as that node of a schema describes it."""

    source: str
    raw: Declared | None = None
    depth: int = 0


class EmitterCore:
    """Everything but calls."""

    def __init__(self, *, exact: bool) -> None:
        self.exact = exact
        self.namespace: dict[str, Any] = {"limit": runtime.limit, "CelError": runtime.CelError}
        self.cost = 0
        self._bound: dict[int, str] = {}
        self._kept: list[Any] = []
        self._scopes: list[dict[str, Code]] = [{}]
        self._prelude: list[str] = []
        self._count = 0

    # --- names and costs

    def bind(self, value: Any) -> str:
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

    def literal(self, value: Any) -> str:
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
            f"*{self.bind(runtime.spread)}({item.source})" if at in node.optional else item.source
            for at, item in enumerate(items)
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

    # --- macros

    def _function(self, name: str, params: str, body: list[str], nested: list[str]) -> None:
        """Puts a function in front of the code that is being written."""
        lines = [f"def {name}({params}):"]
        if not self.exact:
            lines.append("    nonlocal c")
        lines += [f"    {line}" for line in (*nested, *body)]
        self._prelude += lines

    @contextmanager
    def _scope(self, variables: Mapping[str, Code]) -> Iterator[list[str]]:
        """A function body with variables of its own; functions it needs go into the list."""
        outer, self._prelude = self._prelude, []
        self._scopes.append(dict(variables))
        nested = self._prelude
        try:
            yield nested
        finally:
            self._scopes.pop()
            self._prelude = outer

    def _fold(self, node: Fold) -> Code:
        if node.kind == "bind":
            return self._bind_variable(node)
        if node.kind in ("optMap", "optFlatMap"):
            return self._optional_map(node)
        return self._loop(node)

    def _bind_variable(self, node: Fold) -> Code:
        with self.branch() as source_cost:
            source = self.emit(node.source)
        self.cost += source_cost[0]
        name, variable = self.fresh("f"), self.fresh("v")
        # exactly, a bound expression is evaluated when it is first used, so that it may fail unused
        bound = Code(f"{variable}()" if self.exact else variable, source.raw)
        with self._scope({node.variables[0]: bound}) as nested:
            body = self.emit(node.body)
            lines = [f"return {body.source}"]
        self._function(name, variable, lines, nested)
        argument = f"{self.bind(runtime.Lazy)}(lambda: {source.source})" if self.exact else source.source
        return Code(f"{name}({argument})", body.raw, source.depth + 1)

    def _optional_map(self, node: Fold) -> Code:
        source = self.value(node.source)
        self.cost += 2
        name, variable = self.fresh("f"), self.fresh("v")
        with self._scope({node.variables[0]: Code(f"{variable}.value")}) as nested:
            made = self.branched(lambda: self.value(node.body))
            wrapped = f"{self.bind(runtime.Optional)}({made.source})" if node.kind == "optMap" else made.source
            none = self.bind(runtime.NONE)
            present = f"{self.bind(runtime.is_present)}({variable})"
            lines = [f"return {wrapped} if {present} else {none}"]
        self._function(name, variable, lines, nested)
        return Code(f"{name}({source.source})", None, source.depth + 1)

    def _loop(self, node: Fold) -> Code:
        source = self.emit(node.source)
        target, bound, items = self._iteration(node, source)
        name = self.fresh("f")
        result: Declared | None = None
        with self._scope(bound) as nested, self.branch() as cost:
            if node.kind == "filter" and source.raw is not None and source.raw.kind == "list":
                assert source.raw.element is not None
                if source.raw.element.kind != "scalar":
                    result = source.raw.element.as_list
            lines = self._loop_body(node, result)
        self.cost += _FIXED_COSTS.get(node.kind, 1)
        step = cost[0] + _STEP_COSTS.get(node.kind, 0)
        head = self._add_cost(step)
        guard = [] if self.exact else [f"if c > {PER_CALL_LIMIT}: limit()"]
        before, inside, after = lines
        body = [*before, f"for {target} in r:", *(f"    {line}" for line in (head, *guard, *inside)), *after]
        self._function(name, "r", body, nested)
        return Code(f"{name}({items})", result, source.depth + 1)

    def _iteration(self, node: Fold, source: Code) -> tuple[str, dict[str, Code], str]:
        """The loop's variables in Python, what they stand for, and the iterable."""
        names = [self.fresh("x") for _ in node.variables]
        raw = source.raw
        target = ", ".join(names)
        if raw is None or raw.kind not in ("list", "map"):
            codes = {variable: Code(name) for variable, name in zip(node.variables, names, strict=True)}
            code = self.converted(source)
            return target, codes, self._iterable(node, code.source, node.source.type)
        element = raw.element
        assert element is not None
        scalar = element.kind == "scalar"
        item = Code(names[-1], None if scalar else element)
        convert = None if not scalar or element.plain else self.bind(element.convert)
        if len(names) == 2:
            pairs = f"enumerate({source.source})" if raw.kind == "list" else f"{source.source}.items()"
            if convert:
                pairs = f"{self.bind(runtime.convert_pairs)}({pairs}, {convert})"
            return target, {node.variables[0]: Code(names[0]), node.variables[1]: item}, pairs
        if raw.kind == "map":
            return target, {node.variables[0]: Code(names[0])}, source.source
        items = f"map({convert}, {source.source})" if convert else source.source
        return target, {node.variables[0]: item}, items

    def _iterable(self, node: Fold, source: str, of: CelType) -> str:
        if of.kind == "list":
            return f"enumerate({source})" if len(node.variables) == 2 else source
        return f"{self.bind(iterate_pairs if len(node.variables) == 2 else iterate)}({source})"

    def _loop_body(self, node: Fold, result: Declared | None) -> tuple[list[str], list[str], list[str]]:
        if node.kind in ("all", "exists"):
            return self._quantifier(node)
        if node.kind == "exists_one":
            condition = self.condition(node.body).source
            return ["n = 0"], [f"if {condition}:", f"    {self._add_cost(2)}", "    n += 1"], ["return n == 1"]
        guards: list[str] = []
        if node.condition is not None:
            guards = [f"if not {self.condition(node.condition).source}: continue"]
        emit = self.emit if result is not None else self.value
        with self.branch() as cost:
            body = emit(node.body)
        guards.append(self._add_cost(cost[0] + _ITEM_COSTS[node.kind]))
        if node.kind == "transformMap":
            key = self._scopes[-1][node.variables[0]].source
            return ["m = {}"], [*guards, f"{self.bind(runtime.insert)}(m, {key}, {body.source})"], ["return m"]
        if node.kind == "transformMapEntry":
            return ["m = {}"], [*guards, f"{self.bind(runtime.insert_all)}(m, {body.source})"], ["return m"]
        return ["l = []"], [*guards, f"l.append({body.source})"], ["return l"]

    def _add_cost(self, cost: int) -> str:
        """A statement that adds to the cost."""
        return f"charge({cost})" if self.exact else f"c += {cost}"

    def _quantifier(self, node: Fold) -> tuple[list[str], list[str], list[str]]:
        condition = self.condition(node.body).source
        go_on = node.kind == "all"
        test = f"if not {condition}: return False" if node.kind == "all" else f"if {condition}: return True"
        if not self.exact:
            return [], [test], [f"return {go_on}"]
        absorb = self.bind(runtime.absorb)
        return (
            ["e = None"],
            ["try:", f"    {test}", "except Exception as error:", f"    e = e or {absorb}(error)"],
            ["if e is not None: raise e", f"return {go_on}"],
        )


_WRITERS: Final[dict[type[Node], Callable[..., Code]]] = {
    Select: EmitterCore._select,
    Ident: EmitterCore._ident,
    Literal: EmitterCore._literal,
    Fold: EmitterCore._fold,
    ListNode: EmitterCore._list,
    MapNode: EmitterCore._map,
}

# cost of a macro on top of its parts: once, for every item, and for every item that ends up in the result
_FIXED_COSTS: Final = {"exists_one": 2}
_STEP_COSTS: Final = {"all": 3, "exists": 4}
_ITEM_COSTS: Final = {
    "map": LIST_BASE + 2,
    "filter": LIST_BASE + 2,
    "transformList": LIST_BASE + 2,
    "transformMap": 3,
    "transformMapEntry": 2,
}
