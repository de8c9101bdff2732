"""Calls and operators to Python source."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from homeport.machinery.cel import compare, runtime
from homeport.machinery.cel.constants import constant_value, is_conversion
from homeport.machinery.cel.cost import price
from homeport.machinery.cel.emit.expression import Code
from homeport.machinery.cel.emit.fold import FoldEmitter
from homeport.machinery.cel.library import arithmetic, regex
from homeport.machinery.cel.library.registry import Dispatch
from homeport.machinery.cel.parse.lexer import INT_MAX, INT_MIN
from homeport.machinery.cel.parse.syntax import Call, ListNode, Literal, Node
from homeport.machinery.cel.types import CelType

# kinds whose Python values compare and order as the language wants it, when both sides have the same kind
_NATIVE: Final = frozenset(("string", "int", "uint", "bool", "bytes"))
_EQUATABLE: Final = _NATIVE | {"double", "timestamp", "duration"}
_INTEGERS: Final = frozenset(("int", "uint"))
_CHECKED_INT: Final = {"add_int64": "+", "subtract_int64": "-", "multiply_int64": "*"}
_RELATIONS: Final = {
    "_<_": ("<", compare.less),
    "_<=_": ("<=", compare.less_equal),
    "_>_": (">", compare.greater),
    "_>=_": (">=", compare.greater_equal),
}


class Emitter(FoldEmitter):
    def _writer(self, node: Any) -> Callable[[Any], Code]:
        if not isinstance(node, Call):
            return super()._writer(node)
        if is_conversion(node):
            return self._conversion
        special = _SPECIAL.get(node.function)
        if special is not None:
            return functools.partial(special, self)
        if len(node.overloads) == 1 and node.overloads[0].id in _CHECKED_INT and not _any_dyn(node):
            return self._checked
        return self._general

    def _conversion(self, node: Call) -> Code:
        return Code(self.literal(constant_value(node)))

    # --- logic

    def _logical(self, node: Call) -> Code:
        word = "and" if node.function == "_&&_" else "or"
        terms = [self.condition(node.args[0])]
        terms += [self.branched(functools.partial(self.condition, arg)) for arg in node.args[1:]]
        depth = max(term.depth for term in terms) + 1
        if not self.exact:
            return Code(f"({f' {word} '.join(term.source for term in terms)})", None, depth)
        chosen = runtime.logical_and if word == "and" else runtime.logical_or
        thunks = ", ".join(f"lambda: {term.source}" for term in terms)
        return Code(f"{self.bind(chosen)}({thunks})", None, depth)

    def _not(self, node: Call) -> Code:
        operand = self.condition(node.args[0])
        self.cost += 1
        return Code(f"(not {operand.source})", None, operand.depth + 1)

    def _conditional(self, node: Call) -> Code:
        condition = self.condition(node.args[0])
        chosen = self.branched(lambda: self.emit(node.args[1]))
        other = self.branched(lambda: self.emit(node.args[2]))
        raw = chosen.raw
        if raw is not other.raw:
            chosen, other, raw = self.converted(chosen), self.converted(other), None
        depth = max(condition.depth, chosen.depth, other.depth) + 1
        return Code(f"({chosen.source} if {condition.source} else {other.source})", raw, depth)

    # --- comparison

    def _equality(self, node: Call) -> Code:
        left_node, right_node = node.args
        left, right = self.emit(left_node), self.emit(right_node)
        depth = max(left.depth, right.depth) + 1
        same = node.function == "_==_"
        for literal, other in ((left_node, right), (right_node, left)):
            if isinstance(literal, Literal) and literal.value is None:
                self.cost += 1
                return Code(f"({other.source} {'is' if same else 'is not'} None)", None, depth)
        kinds = (left_node.type.kind, right_node.type.kind)
        raw_alike = left.raw is not None and left.raw is right.raw and left.raw.plain
        if raw_alike or (kinds[0] == kinds[1] and kinds[0] in _EQUATABLE):
            operator = "==" if same else "!="
            return self._priced_pair(node, left, right, price.equality, lambda a, b: f"({a} {operator} {b})", depth)
        prefix = "" if same else "not "
        function = self.bind(compare.equals)
        left, right = self.converted(left), self.converted(right)
        return self._priced_pair(
            node, left, right, price.equality, lambda a, b: f"({prefix}{function}({a}, {b}))", depth + 1
        )

    def _relation(self, node: Call) -> Code:
        left_node, right_node = node.args
        left, right = self.value(left_node), self.value(right_node)
        depth = max(left.depth, right.depth) + 1
        operator, function = _RELATIONS[node.function]
        kinds = (left_node.type.kind, right_node.type.kind)
        native = kinds[0] == kinds[1] and kinds[0] in _NATIVE
        if native or (kinds[0] in _INTEGERS and kinds[1] in _INTEGERS):
            return self._priced_pair(node, left, right, price.equality, lambda a, b: f"({a} {operator} {b})", depth)
        name = self.bind(function)
        return self._priced_pair(node, left, right, price.equality, lambda a, b: f"{name}({a}, {b})", depth + 1)

    def _priced_pair(
        self,
        node: Call,
        left: Code,
        right: Code,
        cost: price.Price,
        write: Callable[[str, str], str],
        depth: int,
    ) -> Code:
        """A binary operation; its cost is known now when one side is a scalar or written out."""
        known = _known_size(node.args)
        if known is not None:
            self.cost += price.tenth(known)
            return Code(write(left.source, right.source), None, depth)
        a, b = self.fresh("t"), self.fresh("t")
        amount = f"{self.bind(cost)}({a} := {left.source}, {b} := {right.source})"
        return Code(f"({self.charge(amount)} and {write(a, b)})", None, depth + 2)

    # --- arithmetic

    def _checked(self, node: Call) -> Code:
        left, right = self.value(node.args[0]), self.value(node.args[1])
        self.cost += 1
        name, operator = self.fresh("t"), _CHECKED_INT[node.overloads[0].id]
        total = f"({name} := {left.source} {operator} {right.source})"
        source = f"({name} if {INT_MIN} <= {total} <= {INT_MAX} else {self.bind(arithmetic.overflow)}())"
        return Code(source, None, max(left.depth, right.depth) + 2)

    def _add(self, node: Call) -> Code:
        if len(node.overloads) == 1 and not _any_dyn(node):
            if node.overloads[0].id in _CHECKED_INT:
                return self._checked(node)
            if node.overloads[0].id in ("add_string", "add_bytes"):
                left, right = self.value(node.args[0]), self.value(node.args[1])
                a, b = self.fresh("t"), self.fresh("t")
                amount = f"{self.bind(price.concatenation)}({a} := {left.source}, {b} := {right.source})"
                depth = max(left.depth, right.depth) + 3
                return Code(f"({self.charge(amount)} and {a} + {b})", None, depth)
        return self._general(node)

    # --- containers

    def _in(self, node: Call) -> Code:
        needle_node, holder_node = node.args
        if isinstance(holder_node, ListNode) and not holder_node.items:
            return Code("False")
        needle = self.value(needle_node)
        constants = _constants(needle_node.type, holder_node)
        if constants is not None:
            return Code(f"({needle.source} in {self.bind(constants)})", None, needle.depth + 1)
        holder = self.emit(holder_node)
        depth = max(needle.depth, holder.depth) + 1
        kind = needle_node.type.kind
        if holder.raw is not None and holder.raw.kind == "map" and kind == "string":
            self.cost += 1
            return Code(f"({needle.source} in {holder.source})", None, depth)
        if holder.raw is not None and holder.raw.kind == "list":
            element = holder.raw.element
            assert element is not None
            name = self.fresh("t")
            if element.plain and kind in _NATIVE and element.type.kind == kind:
                charge = self.charge(f"len({name} := {holder.source})")
                return Code(f"({charge} and {needle.source} in {name})", None, depth + 2)
        value = self.converted(holder)
        a, b = self.fresh("t"), self.fresh("t")
        amount = f"{self.bind(_membership)}({a} := {needle.source}, {b} := {value.source})"
        return Code(f"({self.charge(amount)} and {self.bind(compare.contains)}({a}, {b}))", None, depth + 3)

    def _index(self, node: Call) -> Code:
        holder_node, key_node = node.args
        holder, key = self.emit(holder_node), self.value(key_node)
        if holder.raw is None or holder.raw.kind not in ("list", "map") or key_node.type.is_dyn:
            return self._apply(node, [self.converted(holder), key])
        self.cost += 1
        depth = max(holder.depth, key.depth) + 1
        if holder.raw.kind == "list":
            plain = isinstance(key_node, Literal) and key_node.value >= 0 and not self.exact
            getter = self.bind(runtime.list_item)
        else:
            plain, getter = not self.exact, self.bind(runtime.entry)
        source = f"{holder.source}[{key.source}]" if plain else f"{getter}({holder.source}, {key.source})"
        return self._read(Code(source, holder.raw.element, depth))

    def _size(self, node: Call) -> Code:
        operand_node = node.operands[0]
        if operand_node.type.kind not in ("list", "map", "string", "bytes"):
            return self._general(node)
        operand = self.emit(operand_node)
        self.cost += 1
        return Code(f"len({operand.source})", None, operand.depth + 1)

    # --- functions

    def _or_value(self, node: Call) -> Code:
        assert node.target is not None
        optional = self.value(node.target)
        other = self.branched(lambda: self.value(node.args[0]))
        name = self.fresh("t")
        present = f"{self.bind(runtime.is_present)}({name} := {optional.source})"
        taken = f"{name}.value" if node.function == "orValue" else name
        depth = max(optional.depth, other.depth) + 2
        return Code(f"({taken} if {present} else {other.source})", None, depth)

    def _matches(self, node: Call) -> Code:
        text_node, pattern_node = node.operands
        if not isinstance(pattern_node, Literal) or text_node.type.kind != "string":
            return self._general(node)
        text = self.value(text_node)
        found = self.bind(regex.compiled(pattern_node.value).found)
        factor = price.quarter(len(pattern_node.value))
        name = self.fresh("t")
        charge = self.charge(f"(len({name} := {text.source}) + 10) // 10 * {factor}")
        return Code(f"({charge} and {found}({name}))", None, text.depth + 3)

    def _affix(self, node: Call) -> Code:
        text_node, part_node = node.operands
        if text_node.type.kind != "string" or not isinstance(part_node, Literal):
            return self._general(node)
        text, part = self.value(text_node), self.value(part_node)
        self.cost += price.tenth(len(part_node.value))
        name = "startswith" if node.function == "startsWith" else "endswith"
        return Code(f"{text.source}.{name}({part.source})", None, text.depth + 1)

    def _dyn(self, node: Call) -> Code:
        self.cost += 1
        return self.value(node.args[0])._replace(raw=None)

    def _general(self, node: Call) -> Code:
        return self._apply(node, [self.value(arg) for arg in node.operands])

    def _apply(self, node: Call, args: list[Code]) -> Code:
        """Any other function: its only implementation, or the one that the values choose."""
        if len(node.overloads) == 1 and not _any_dyn(node):
            function = self.bind(node.overloads[0].impl)
        else:
            function = self.bind(Dispatch(node.function, node.overloads))
        depth = max((arg.depth for arg in args), default=0) + 1
        cost = price.PRICES.get(node.function)
        if cost is None or not args:
            self.cost += 1
            return Code(f"{function}({', '.join(arg.source for arg in args)})", None, depth)
        names = [self.fresh("t") for _ in args]
        written = ", ".join(f"{name} := {arg.source}" for name, arg in zip(names, args, strict=True))
        amount = f"{self.bind(cost)}({written})"
        return Code(f"({self.charge(amount)} and {function}({', '.join(names)}))", None, depth + 2)


def _membership(needle: object, holder: object) -> int:
    return compare.size_of(holder) if isinstance(holder, list) else 1


def _any_dyn(node: Call) -> bool:
    """Whether the types of the arguments leave open what will come."""
    overload = node.overloads[0]
    return any(
        actual.type.is_dyn and expected.kind not in ("dyn", "param")
        for actual, expected in zip(node.operands, overload.args, strict=False)
    )


def _known_size(nodes: list[Node]) -> int | None:
    """The size of the smaller operand, if it is known."""
    sizes: list[int] = []
    for node in nodes:
        if isinstance(node, Literal):
            sizes.append(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
        elif node.type.kind in ("int", "uint", "bool", "double", "timestamp", "duration"):
            sizes.append(1)
    return min(sizes) if sizes else None


def _constants(needle: CelType, holder: Node) -> frozenset[object] | None:
    """The items of a list that is written out, when they can be looked up in a set."""
    if not isinstance(holder, ListNode) or holder.optional or needle.kind not in ("string", "int"):
        return None
    values = [item.value for item in holder.items if isinstance(item, Literal) and item.type == needle]
    return frozenset(values) if len(values) == len(holder.items) else None


_SPECIAL: Final[dict[str, Callable[..., Code]]] = {
    "_&&_": Emitter._logical,
    "_||_": Emitter._logical,
    "!_": Emitter._not,
    "_?_:_": Emitter._conditional,
    "_==_": Emitter._equality,
    "_!=_": Emitter._equality,
    "_+_": Emitter._add,
    "_<_": Emitter._relation,
    "_<=_": Emitter._relation,
    "_>_": Emitter._relation,
    "_>=_": Emitter._relation,
    "@in": Emitter._in,
    "_[_]": Emitter._index,
    "size": Emitter._size,
    "or": Emitter._or_value,
    "orValue": Emitter._or_value,
    "matches": Emitter._matches,
    "startsWith": Emitter._affix,
    "endsWith": Emitter._affix,
    "dyn": Emitter._dyn,
}
