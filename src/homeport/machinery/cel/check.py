"""Resolves names and overloads, and gives every node its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from homeport.machinery.cel import types as t
from homeport.machinery.cel.errors import CelError
from homeport.machinery.cel.library import FUNCTIONS, NAMESPACES
from homeport.machinery.cel.library.registry import Overload
from homeport.machinery.cel.names import is_reserved
from homeport.machinery.cel.parse.lexer import error_at
from homeport.machinery.cel.parse.syntax import Call, Fold, Ident, ListNode, Literal, MapNode, Node, Select
from homeport.machinery.cel.types import CelType
from homeport.machinery.cel.unify import Bindings, most_general

_OPERATORS: Final = frozenset(("_&&_", "_||_"))
_CONTAINERS: Final = frozenset(("list", "map", "dyn", "param", "error"))


def check(text: str, root: Node, variables: Mapping[str, CelType]) -> CelType:
    """The type of the whole expression. Fills in the types of all nodes."""
    checker = _Checker(text, variables)
    checker.visit(root)
    checker.settle(root)
    return root.type


class _Checker:
    def __init__(self, text: str, variables: Mapping[str, CelType]) -> None:
        self._text = text
        self._scopes: list[dict[str, CelType]] = [dict(variables)]
        self._bindings = Bindings()

    def settle(self, root: Node) -> None:
        """Replaces type variables by what they turned out to be; those left free are dynamic."""
        pending = [root]
        while pending:
            node = pending.pop()
            node.type = self._bindings.resolve(node.type, free_is_dyn=True)
            pending.extend(node.children())

    def visit(self, node: Node) -> None:
        if isinstance(node, Select):
            self._select(node)
        elif isinstance(node, Call):
            self._call(node)
        elif isinstance(node, Ident):
            self._ident(node)
        elif isinstance(node, Fold):
            self._fold(node)
        elif isinstance(node, ListNode):
            self._list(node)
        elif isinstance(node, MapNode):
            self._map(node)

    def _fail(self, node: Node, message: str) -> CelError:
        return error_at(self._text, node.pos, message)

    def _lookup(self, name: str) -> CelType | None:
        for scope in reversed(self._scopes):
            if name in scope:
                return scope[name]
        return None

    def _mismatch(self, node: Node, expected: CelType, found: CelType) -> CelError:
        expected, found = (self._bindings.resolve(each, free_is_dyn=True) for each in (expected, found))
        return self._fail(node, f"expected type '{expected}' but found '{found}'")

    def _require(self, node: Node, expected: CelType) -> None:
        if not self._bindings.assignable(expected, node.type):
            raise self._mismatch(node, expected, node.type)

    def _ident(self, node: Ident) -> None:
        found = self._lookup(node.name)
        if found is not None:
            node.type = found
        elif node.name in t.NAMED_TYPES:
            node.constant = t.NAMED_TYPES[node.name]
            node.type = t.type_of(node.constant)
        else:
            raise self._fail(node, f"undeclared reference to '{node.name}'")

    def _select(self, node: Select) -> None:
        qualified = None if node.test else _qualified(node)
        if qualified is not None and qualified in t.NAMED_TYPES and self._lookup(_root(node)) is None:
            node.constant = t.NAMED_TYPES[qualified]
            node.type = t.type_of(node.constant)
            return
        result = self._field(node, node.operand, node.field)
        node.type = t.BOOL if node.test else result

    def _field(self, node: Node, operand: Node, field: str, *, optional: bool = False) -> CelType:
        self.visit(operand)
        holder = self._bindings.resolve(operand.type)
        unwrapped = holder.params[0] if holder.is_optional else holder
        if unwrapped.kind == "map":
            result = unwrapped.params[1]
        elif unwrapped.kind == "struct":
            result = self._declared_field(node, unwrapped, field)
        elif unwrapped.kind == "param":
            self._bindings.assignable(t.DYN, unwrapped)
            result = t.DYN
        elif unwrapped.is_dyn:
            result = t.DYN
        else:
            raise self._fail(node, f"type '{unwrapped}' does not support field selection")
        result = self._bindings.resolve(result)
        return t.optional_of(result) if optional or holder.is_optional else result

    def _declared_field(self, node: Node, holder: CelType, field: str) -> CelType:
        declared = holder.declared
        if declared is not None:
            found = declared.fields.get(field)
            if found is None and is_reserved(field):
                found = declared.fields.get(f"__{field}__")
            if found is not None:
                return found.type
        raise self._fail(node, f"undefined field '{field}'")

    def _call(self, node: Call) -> None:
        if node.function == "_?._":
            name = node.args[1]
            assert isinstance(name, Literal)
            node.type = self._field(node, node.args[0], name.value, optional=True)
            node.overloads = FUNCTIONS["_?._"]
            return
        if node.target is not None and not self._namespaced(node):
            self.visit(node.target)
        for arg in node.args:
            self.visit(arg)
        overloads = FUNCTIONS.get(node.function)
        if overloads is None:
            raise self._fail(node, f"undeclared reference to '{node.function}'")
        if node.function in _OPERATORS:
            for arg in node.args:
                self._require(arg, t.BOOL)
            node.overloads, node.type = overloads, t.BOOL
            return
        self._resolve(node, overloads)

    def _namespaced(self, node: Call) -> bool:
        """Turns `lists.range(3)` into a call of the function `lists.range`."""
        assert node.target is not None
        prefix = _qualified(node.target)
        if prefix is None or prefix.partition(".")[0] not in NAMESPACES:
            return False
        name = f"{prefix}.{node.function}"
        if name not in FUNCTIONS:
            return False
        node.function, node.target = name, None
        return True

    def _resolve(self, node: Call, overloads: tuple[Overload, ...]) -> None:
        actual = [each.type for each in node.operands]
        matching: list[Overload] = []
        result: CelType | None = None
        for overload in overloads:
            if overload.member is not (node.target is not None) or len(overload.args) != len(actual):
                continue
            returned, *expected = self._bindings.instantiate((overload.result, *overload.args), overload.params)
            if not self._bindings.all_assignable(actual, expected):
                continue
            matching.append(overload)
            returned = self._bindings.resolve(returned)
            if result is None:
                result = returned
            elif not result.is_dyn and returned != result:
                result = t.DYN
        if result is None:
            raise self._no_overload(node, actual)
        node.overloads, node.type = tuple(matching), result

    def _no_overload(self, node: Call, actual: list[CelType]) -> CelError:
        shown = [str(self._bindings.resolve(each, free_is_dyn=True)) for each in actual]
        signature = f"({', '.join(shown)})" if node.target is None else f"{shown[0]}.({', '.join(shown[1:])})"
        return self._fail(node, f"found no matching overload for '{node.function}' applied to '{signature}'")

    def _join(self, node: Node, previous: CelType | None, current: CelType) -> CelType:
        if previous is None:
            return current
        if self._bindings.assignable(previous, current):
            return most_general(previous, current)
        return t.DYN

    def _entry(self, node: Node, *, optional: bool) -> CelType:
        self.visit(node)
        if not optional:
            return node.type
        resolved = self._bindings.resolve(node.type)
        if resolved.is_optional:
            return resolved.params[0]
        if resolved.is_dyn:
            return resolved
        raise self._mismatch(node, t.optional_of(resolved), resolved)

    def _list(self, node: ListNode) -> None:
        element: CelType | None = None
        for index, item in enumerate(node.items):
            element = self._join(item, element, self._entry(item, optional=index in node.optional))
        node.type = t.list_of(element or self._bindings.fresh())

    def _map(self, node: MapNode) -> None:
        key_type: CelType | None = None
        value_type: CelType | None = None
        for key, value, optional in node.entries:
            self.visit(key)
            key_type = self._join(key, key_type, key.type)
            value_type = self._join(value, value_type, self._entry(value, optional=optional))
        node.type = t.map_of(key_type or self._bindings.fresh(), value_type or self._bindings.fresh())

    def _fold(self, node: Fold) -> None:
        self.visit(node.source)
        scope = self._bound(node)
        self._scopes.append(scope)
        if node.condition is not None:
            self.visit(node.condition)
            self._require(node.condition, t.BOOL)
        self.visit(node.body)
        node.type = self._fold_type(node, scope)
        self._scopes.pop()

    def _bound(self, node: Fold) -> dict[str, CelType]:
        """The types of the variables of a macro."""
        source = self._bindings.resolve(node.source.type)
        if node.kind == "bind":
            return {node.variables[0]: source}
        if node.kind in ("optMap", "optFlatMap"):
            maybe = t.optional_of(self._bindings.fresh())
            if not self._bindings.assignable(source, maybe):
                raise self._mismatch(node.source, t.optional_of(t.DYN), source)
            return {node.variables[0]: self._bindings.resolve(maybe).params[0]}
        if source.kind not in _CONTAINERS:
            raise self._fail(
                node.source,
                f"expression of type '{source}' cannot be range of a comprehension (must be list, map, or dynamic)",
            )
        if source.kind == "list":
            kinds = [source.params[0]] if len(node.variables) == 1 else [t.INT, source.params[0]]
        elif source.kind == "map":
            kinds = list(source.params[: len(node.variables)])
        else:
            self._bindings.assignable(t.DYN, source)
            kinds = [t.DYN] * len(node.variables)
        return dict(zip(node.variables, kinds, strict=True))

    def _fold_type(self, node: Fold, scope: dict[str, CelType]) -> CelType:
        body = node.body.type
        if node.kind in ("all", "exists", "exists_one"):
            self._require(node.body, t.BOOL)
            return t.BOOL
        if node.kind in ("map", "filter", "transformList"):
            return t.list_of(body)
        if node.kind == "transformMap":
            return t.map_of(scope[node.variables[0]], body)
        if node.kind == "transformMapEntry":
            entry = t.map_of(self._bindings.fresh(), self._bindings.fresh())
            self._require(node.body, entry)
            return self._bindings.resolve(entry)
        if node.kind == "optMap":
            return t.optional_of(body)
        if node.kind == "optFlatMap":
            self._require(node.body, t.optional_of(self._bindings.fresh()))
        return body


def _qualified(node: Node) -> str | None:
    """`a.b.c` as one name, when that is all the node is."""
    names: list[str] = []
    while isinstance(node, Select) and not node.test:
        names.append(node.field)
        node = node.operand
    if not isinstance(node, Ident):
        return None
    return ".".join([node.name, *reversed(names)])


def _root(node: Node) -> str:
    while isinstance(node, Select):
        node = node.operand
    return node.name if isinstance(node, Ident) else ""
