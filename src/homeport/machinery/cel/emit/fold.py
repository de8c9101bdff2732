"""Macros to Python source: each becomes a function with a loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from homeport.machinery.cel import runtime
from homeport.machinery.cel.cost.price import LIST_BASE, PER_CALL_LIMIT
from homeport.machinery.cel.emit.expression import Code, EmitterCore
from homeport.machinery.cel.parse.syntax import Fold
from homeport.machinery.cel.schema import Declared
from homeport.machinery.cel.types import CelType
from homeport.machinery.cel.values import iterate, iterate_pairs


class FoldEmitter(EmitterCore):
    """Writes what binds variables."""

    def _writer(self, node: Any) -> Callable[[Any], Code]:
        return self._fold if isinstance(node, Fold) else super()._writer(node)

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
