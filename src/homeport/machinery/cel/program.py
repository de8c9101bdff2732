"""Compiled expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from homeport.machinery.cel.check import check
from homeport.machinery.cel.cost.price import PER_CALL_LIMIT, Meter
from homeport.machinery.cel.emit.expression import Code
from homeport.machinery.cel.emit.operators import Emitter
from homeport.machinery.cel.errors import CelError, CostLimitExceeded, EvaluationError
from homeport.machinery.cel.parse.literals import check_literals
from homeport.machinery.cel.parse.parser import parse
from homeport.machinery.cel.parse.syntax import Ident, Node
from homeport.machinery.cel.runtime import explained
from homeport.machinery.cel.schema import Declared
from homeport.machinery.cel.types import CelType

Run = Callable[..., tuple[Any, int]]


class Program:
    """An expression, ready to run. `type` is the type of its result."""

    def __init__(
        self,
        expression: str,
        variables: Mapping[str, CelType],
        raw: Mapping[str, Declared] | None = None,
        *,
        bind: bool = True,
    ) -> None:
        """Variables named in `raw` are given as JSON that the schema describes. `bind`: see parse."""
        self.expression = expression
        self._raw = dict(raw or {})
        self.root: Node = parse(expression, bind=bind)
        self.names = tuple(variables)
        self.used = _used(self.root) & frozenset(variables)
        self.type = _with_room(lambda: check(expression, self.root, variables))
        check_literals(expression, self.root)
        self._fast: Run = _with_room(lambda: self._build(exact=False))
        self._exact: Run | None = None

    def evaluate(self, bindings: Mapping[str, Any] | None = None) -> Any:
        """The value for these variables. Raises CelError when there is none."""
        given = bindings or {}
        missing = self.used - given.keys()
        if missing:
            raise EvaluationError(f"no such attribute(s): {', '.join(sorted(missing))}")
        return self.run(*(given.get(name) for name in self.names))[0]

    def run(self, *values: object) -> tuple[Any, int]:
        """The value and what it cost, for values in the order of the declared variables."""
        try:
            result, cost = self._fast(*values)
        except CostLimitExceeded:
            raise
        except Exception:
            return self._run_exactly(values)
        if cost > PER_CALL_LIMIT:
            raise CostLimitExceeded
        return result, cost

    def _run_exactly(self, values: tuple[Any, ...]) -> tuple[Any, int]:
        if self._exact is None:
            self._exact = _with_room(lambda: self._build(exact=True))
        meter = Meter()
        try:
            result = self._exact(meter.charge, *values)
        except CelError as error:
            error.cost = meter.used
            raise
        except Exception as error:
            wrapped = explained(error)
            wrapped.cost = meter.used
            raise wrapped from error
        return result, meter.used

    def _build(self, *, exact: bool) -> Run:
        emitter = Emitter(exact=exact)
        params = [f"p{index}" for index in range(len(self.names))]
        for param, name in zip(params, self.names, strict=True):
            emitter.declare(name, _variable(emitter, param, self._raw.get(name)))
        body = emitter.value(self.root).source
        lines = [f"def run({', '.join(['charge', *params] if exact else params)}):"]
        lines.append(f"    charge({emitter.cost})" if exact else f"    c = {max(emitter.cost, 1)}")
        lines += [f"    {line}" for line in emitter.prelude]
        # the cost starts at 1 at least, as being above zero makes it usable as a condition
        total = "c" if emitter.cost else "c - 1"
        lines.append(f"    return {body}" if exact else f"    return {body}, {total}")
        # the text holds nothing of the expression but literals in their Python spelling
        exec("\n".join(lines), emitter.namespace)  # noqa: S102
        run: Run = emitter.namespace["run"]
        return run


T = TypeVar("T")


def _with_room(work: Callable[[], T]) -> T:
    """Does work that follows a deep tree down; when the caller's stack is too full for it, on a new one."""
    try:
        return work()
    except RecursionError:
        pass
    with ThreadPoolExecutor(max_workers=1) as fresh:
        try:
            return fresh.submit(work).result()
        except RecursionError as error:
            raise CelError("expression is nested too deeply") from error


def _variable(emitter: Emitter, param: str, declared: Declared | None) -> Code:
    if declared is None:
        return Code(param)
    if declared.kind == "scalar":
        return Code(param if declared.plain else f"{emitter.bind(declared.convert)}({param})")
    return Code(param, declared)


def _used(root: Node) -> frozenset[str]:
    found: set[str] = set()
    pending = [root]
    while pending:
        node = pending.pop()
        if isinstance(node, Ident):
            found.add(node.name)
        pending.extend(node.children())
    return frozenset(found)


def compile(expression: str, variables: Mapping[str, CelType] | None = None) -> Program:
    """Compiles an expression over variables of the given types (`DYN` for JSON without a schema)."""
    if variables and "authorizer" in variables:
        raise CelError("authorizer is not supported: authorization checks can't be used in this expression")
    return Program(expression, variables or {})
