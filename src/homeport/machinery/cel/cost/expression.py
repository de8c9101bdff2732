"""The most an expression can cost, given how big the schema lets its data get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from homeport.machinery.cel.cost.bounds import ONE, UNKNOWN, ZERO, Bounds, fixed
from homeport.machinery.cel.cost.call import call_cost
from homeport.machinery.cel.cost.price import LIST_BASE, MAP_BASE
from homeport.machinery.cel.parse.syntax import Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select
from homeport.machinery.cel.schema import Declared
from homeport.machinery.cel.types import STRING, is_scalar

# keys of maps: their size is not reckoned with
_KEY: Final = Declared("scalar", STRING)
# a place that the schema does not describe
_NOWHERE: Final = Declared("unknown", STRING)


def estimate(root: Node, variables: Mapping[str, Declared]) -> int:
    """The worst case, in the units of the run-time cost."""
    return _Estimator(variables).cost(root).max


class _Variable(NamedTuple):
    place: Declared | None
    size: Bounds | None


class _Estimator:
    """`places` are the nodes of the schema that expressions read from."""

    def __init__(self, variables: Mapping[str, Declared]) -> None:
        self._self = variables["self"]
        self._scopes: list[dict[str, _Variable]] = [
            {name: _Variable(declared, None) for name, declared in variables.items()}
        ]
        self._places: dict[int, Declared | None] = {}
        self._sizes: dict[int, Bounds] = {}

    # --- sizes

    def size(self, node: Node) -> Bounds:
        return self._known_size(node) or UNKNOWN

    def _known_size(self, node: Node) -> Bounds | None:
        found = self._sizes.get(id(node))
        if found is not None:
            return found
        if isinstance(node, Literal):
            return fixed(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
        if isinstance(node, ListNode):
            return fixed(len(node.items))
        if isinstance(node, MapNode):
            return fixed(len(node.entries))
        place = self._place(node)
        if place is not None and place is not _NOWHERE:
            return Bounds(0, place.max_elements)
        if is_scalar(node.type):
            return ONE
        variable = self._variable(node.name) if isinstance(node, Ident) else None
        return variable.size if variable is not None else None

    def element_size(self, node: Node) -> Bounds | None:
        if not node.type.params or node.type.params[0].kind not in ("string", "bytes"):
            return None
        place = self._place(node)
        if place is None or place.element is None:
            return UNKNOWN
        return Bounds(0, place.element.max_elements)

    def _place(self, node: Node) -> Declared | None:
        if isinstance(node, Ident):
            variable = self._variable(node.name)
            return variable.place if variable is not None else self._self
        return self._places.get(id(node))

    def _variable(self, name: str) -> _Variable | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _inside(self, place: Declared | None, found: Declared | None) -> Declared:
        """A step down. From a value that comes from nowhere it leads, by convention, to `self`."""
        if place is None:
            return self._self
        return found if found is not None else _NOWHERE

    # --- costs

    def cost(self, node: Node) -> Bounds:
        if isinstance(node, Ident):
            return ONE
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, Fold):
            return self._fold(node)
        if isinstance(node, ListNode):
            return self._sum(node.items).plus(fixed(LIST_BASE))
        if isinstance(node, MapNode):
            return self._sum(list(node.children())).plus(fixed(MAP_BASE))
        return ZERO

    def _sum(self, nodes: list[Node]) -> Bounds:
        total = ZERO
        for node in nodes:
            total = total.plus(self.cost(node))
        return total

    def _select(self, node: Select) -> Bounds:
        if node.constant is not None:
            self._places[id(node)] = self._self
            return ONE
        cost = self.cost(node.operand)
        if node.test:
            return cost
        place = self._place(node.operand)
        self._places[id(node)] = self._inside(place, place.fields.get(node.field) if place else None)
        return cost.plus(ONE) if node.operand.type.kind in ("map", "struct") else cost

    def _call(self, node: Call) -> Bounds:
        if node.function == "dyn":
            cost = self.cost(node.args[0])
            self._copy_size(node, node.args[0])
            return cost.plus(ONE)
        if node.function in ("_&&_", "_||_"):
            costs = [self.cost(arg) for arg in node.args]
            return Bounds(costs[0].min, _total(costs).max)
        if node.function == "_?_:_":
            return self._conditional(node)
        operands = self._sum(node.operands)
        made = call_cost(node, self)
        self._index(node)
        if made.result is not None:
            self._sizes[id(node)] = made.result
        return operands.plus(made.cost)

    def _conditional(self, node: Call) -> Bounds:
        condition, chosen, other = (self.cost(arg) for arg in node.args)
        self._sizes[id(node)] = self.size(node.args[1]).union(self.size(node.args[2]))
        return condition.plus(chosen.union(other))

    def _index(self, node: Call) -> None:
        if node.function != "_[_]" or node.args[0].type.kind not in ("list", "map", "dyn"):
            return
        literal = node.args[0]
        if isinstance(literal, (ListNode, MapNode)):
            self._sizes[id(node)] = self._entry_size(literal)
        place = self._place(literal)
        self._places[id(node)] = self._inside(place, place.element if place else None)

    def _entry_size(self, literal: ListNode | MapNode) -> Bounds:
        values = literal.items if isinstance(literal, ListNode) else [value for _, value, _ in literal.entries]
        sizes = [self.size(value) for value in values]
        return Bounds(min((each.min for each in sizes), default=0), max((each.max for each in sizes), default=0))

    def _copy_size(self, to: Node, source: Node) -> None:
        size = self._known_size(source)
        if size is not None:
            self._sizes[id(to)] = size

    def _fold(self, node: Fold) -> Bounds:
        if node.kind == "bind":
            return self._bind(node)
        if node.kind in ("optMap", "optFlatMap"):
            return self._optional_map(node)
        source = self.cost(node.source)
        self._scopes.append(self._iteration(node))
        condition = ZERO if node.condition is None else self.cost(node.condition)
        body = self.cost(node.body)
        self._scopes.pop()
        once, step = _folding(node, condition, body)
        count = self.size(node.source)
        if node.kind not in ("all", "exists", "exists_one"):
            self._sizes[id(node)] = count
        return source.plus(fixed(once)).plus(count.times(step))

    def _iteration(self, node: Fold) -> dict[str, _Variable]:
        place = self._place(node.source)
        element = _Variable(self._inside(place, place.element if place else None), None)
        kind = node.source.type.kind
        if len(node.variables) == 1 and kind == "list":
            return {node.variables[0]: element}
        key = place if place is None else _KEY if place.kind == "map" else _NOWHERE
        first = _Variable(self._inside(key, key), None)
        return {node.variables[0]: first, node.variables[-1]: element if len(node.variables) == 2 else first}

    def _bind(self, node: Fold) -> Bounds:
        source = self.cost(node.source)
        variable = _Variable(self._place(node.source), self._known_size(node.source))
        self._scopes.append({node.variables[0]: variable})
        body = self.cost(node.body)
        self._copy_size(node, node.body)
        self._scopes.pop()
        return source.plus(body).plus(fixed(LIST_BASE))

    def _optional_map(self, node: Fold) -> Bounds:
        """Costs as if the optional were computed twice: to see whether it is there, and to take its value."""
        source = self.cost(node.source)
        self._scopes.append({node.variables[0]: _Variable(None, None)})
        body = self.cost(node.body)
        self._scopes.pop()
        wrap = 1 if node.kind == "optMap" else 0
        present = source.plus(body).plus(fixed(LIST_BASE + 1 + wrap))
        return source.plus(ONE).plus(present.union(ONE))


def _total(costs: list[Bounds]) -> Bounds:
    total = ZERO
    for cost in costs:
        total = total.plus(cost)
    return total


def _folding(node: Fold, condition: Bounds, body: Bounds) -> tuple[int, Bounds]:
    """What a macro costs once, and per item."""
    if node.kind == "all":
        return 1, Bounds(3, 3 + body.max)
    if node.kind == "exists":
        return 1, Bounds(4, 4 + body.max)
    if node.kind == "exists_one":
        return 2, body.plus(Bounds(1, 2))
    if node.kind == "transformMap":
        once, step = MAP_BASE + 1, body.plus(fixed(3))
    elif node.kind == "transformMapEntry":
        once, step = MAP_BASE + 1, body.plus(fixed(2))
    else:
        once, step = LIST_BASE + 1, body.plus(fixed(LIST_BASE + 2))
    if node.condition is None:
        return once, step
    return once, condition.plus(step.union(ONE))
