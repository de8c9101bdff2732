"""The syntax tree. Macros are already expanded into `Fold` nodes, one kind per macro."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from homeport.machinery.cel.types import DYN, CelType

if TYPE_CHECKING:
    from homeport.machinery.cel.library.registry import Overload


class Node:
    """`pos` is the offset in the text, `type` is filled in by the checker."""

    __slots__ = ("pos", "type")

    def __init__(self, pos: int) -> None:
        self.pos = pos
        self.type: CelType = DYN

    def children(self) -> Iterator[Node]:
        return iter(())


class Literal(Node):
    __slots__ = ("value",)

    def __init__(self, pos: int, value: Any, type_: CelType) -> None:
        super().__init__(pos)
        self.value = value
        self.type = type_


class Ident(Node):
    """A variable, or after checking the name of a type (`constant` is then set)."""

    __slots__ = ("constant", "name")

    def __init__(self, pos: int, name: str) -> None:
        super().__init__(pos)
        self.name = name
        self.constant: CelType | None = None


class Select(Node):
    """`operand.field`, or `has(operand.field)` when it only tests for presence."""

    __slots__ = ("constant", "field", "operand", "test")

    def __init__(self, pos: int, operand: Node, field: str, *, test: bool = False) -> None:
        super().__init__(pos)
        self.operand = operand
        self.field = field
        self.test = test
        self.constant: CelType | None = None

    def children(self) -> Iterator[Node]:
        yield self.operand


class Call(Node):
    """A function or an operator. The checker fills in the overloads that may be meant."""

    __slots__ = ("args", "function", "overloads", "target")

    def __init__(self, pos: int, function: str, target: Node | None, args: list[Node]) -> None:
        super().__init__(pos)
        self.function = function
        self.target = target
        self.args = args
        self.overloads: tuple[Overload, ...] = ()

    def children(self) -> Iterator[Node]:
        if self.target is not None:
            yield self.target
        yield from self.args

    @property
    def operands(self) -> list[Node]:
        return self.args if self.target is None else [self.target, *self.args]


class ListNode(Node):
    __slots__ = ("items", "optional")

    def __init__(self, pos: int, items: list[Node], optional: frozenset[int]) -> None:
        super().__init__(pos)
        self.items = items
        self.optional = optional

    def children(self) -> Iterator[Node]:
        return iter(self.items)


class MapNode(Node):
    __slots__ = ("entries",)

    def __init__(self, pos: int, entries: list[tuple[Node, Node, bool]]) -> None:
        super().__init__(pos)
        self.entries = entries

    def children(self) -> Iterator[Node]:
        for key, value, _ in self.entries:
            yield key
            yield value


class Fold(Node):
    """A macro that binds variables.

    Kinds: all, exists, exists_one, map, filter, transformList, transformMap, transformMapEntry (over
    `source`), bind (`source` is the bound value), optMap and optFlatMap (over an optional).
    """

    __slots__ = ("body", "condition", "kind", "source", "variables")

    def __init__(
        self,
        pos: int,
        kind: str,
        source: Node,
        variables: tuple[str, ...],
        condition: Node | None,
        body: Node,
    ) -> None:
        super().__init__(pos)
        self.kind = kind
        self.source = source
        self.variables = variables
        self.condition = condition
        self.body = body

    def children(self) -> Iterator[Node]:
        yield self.source
        if self.condition is not None:
            yield self.condition
        yield self.body


def depth(root: Node, limit: int) -> int:
    """How deep the tree is; stops counting one above `limit`. No recursion: the tree is not yet trusted."""
    level, deepest = [root], 0
    while level and deepest <= limit:
        deepest += 1
        level = [child for node in level for child in node.children()]
    return deepest
