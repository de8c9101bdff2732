"""Sets of fields. The form is that of `fieldsV1`: nested dicts whose keys are path steps.

A node `{}` is a field that is in the set; a node with a `.` is in the set and so are fields below it; a node with only
other keys is a way to fields below. The plain functions work on such tries; they share what is unchanged and never
change what they are given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from homeport.machinery.apply import element

Trie = dict[str, Any]
SELF: Final = "."
DEEPEST: Final = 200  # levels; the JSON encoder takes 254 for the whole object


def is_member(node: Trie) -> bool:
    return not node or SELF in node


def marked(node: Trie | None) -> Trie:
    """The node, itself in the set."""
    if not node or SELF in node:
        return {} if node is None else node
    return {SELF: {}, **node}


def ordered(trie: Trie, depth: int = 0) -> Trie:
    """The same set with its steps sorted. What lies too deep to be written down is owned as a whole."""
    if not trie:
        return trie
    if depth >= DEEPEST:
        return {}
    return {key: ordered(trie[key], depth + 1) for key in _sorted(trie)}


def _sorted(trie: Trie) -> list[str]:
    keys = sorted(trie)
    if keys[-1][0] in "kvi":  # numbers in their JSON sort as numbers
        keys.sort(key=element.order)
    return keys


def union(left: Trie, right: Trie) -> Trie:
    """Of two whole sets. (Nodes inside them join differently: an empty one is a member, not nothing.)"""
    if not right:
        return left
    if not left:
        return right
    result: Trie | None = None
    grown = False
    for key, node in right.items():
        present = left.get(key)
        joined = node if present is None else _join(present, node)
        if joined is not present:
            result = dict(left) if result is None else result
            result[key] = joined
            grown = grown or present is None
    if result is None:
        return left
    return {key: result[key] for key in _sorted(result)} if grown else result


def _join(left: Trie, right: Trie) -> Trie:
    if not right:
        return marked(left)
    return marked(right) if not left else union(left, right)


def difference(left: Trie, right: Trie) -> Trie:
    """What is in `left` and not in `right`. A field in `right` leaves the fields below it alone."""
    result: Trie | None = None
    for key in right if len(right) < len(left) else left:
        if key == SELF:
            continue
        node, other = left.get(key), right.get(key)
        if node is None or other is None:
            continue
        rest = _less(node, other)
        if rest is not node:
            result = dict(left) if result is None else result
            if rest is None:
                del result[key]
            else:
                result[key] = rest
    return left if result is None else result


def _less(node: Trie, other: Trie) -> Trie | None:
    below = difference(node, other) if node and other else node
    if is_member(node) and is_member(other):
        below = {key: value for key, value in below.items() if key != SELF}
        return below or None
    if below is node:
        return node
    # Nothing is left but the mark: a member without fields below is spelled {}.
    if not below or (SELF in below and len(below) == 1):
        return {} if is_member(node) else None
    return below


def recursive_difference(left: Trie, right: Trie) -> Trie:
    """What is in `left`, less every field in `right` and all that is below it."""
    result: Trie = {}
    for key, node in left.items():
        other = right.get(key)
        if other is None:
            result[key] = node
        elif not is_member(other):
            below = recursive_difference({k: v for k, v in node.items() if k != SELF}, other)
            if is_member(node):
                result[key] = {SELF: {}, **below} if below else {}
            elif below:
                result[key] = below
    return result


def intersection(left: Trie, right: Trie) -> Trie:
    result: Trie = {}
    for key in right if len(right) < len(left) else left:
        if key == SELF or key not in left or key not in right:
            continue
        node = _common(left[key], right[key])
        if node is not None:
            result[key] = node
    return result


def _common(left: Trie, right: Trie) -> Trie | None:
    below = intersection(left, right) if left and right else {}
    if is_member(left) and is_member(right):
        return {SELF: {}, **below} if below else {}
    return below or None


def has(trie: Trie, path: Iterable[str]) -> bool:
    node: Trie | None = trie
    for step in path:
        node = node.get(step) if node else None
        if node is None:
            return False
    return node is not trie and node is not None and is_member(node)


def paths(trie: Trie, prefix: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every field in the set: those of one level first, then what is below them."""
    keys = [key for key in ordered_keys(trie) if key != SELF]
    for key in keys:
        if is_member(trie[key]):
            yield (*prefix, key)
    for key in keys:
        yield from paths(trie[key], (*prefix, key))


def ordered_keys(trie: Trie) -> list[str]:
    return sorted(trie, key=element.order)


def parse(raw: object) -> Trie:
    """A set that somebody else wrote, with every step in its canonical spelling. Unknown kinds of steps are dropped."""
    if not isinstance(raw, Mapping):
        raise element.ElementError(f"fieldsV1 must be an object, not {type(raw).__name__}")
    result: Trie = {}
    for key, below in raw.items():
        if key == SELF:
            result[SELF] = {}
            continue
        step = element.parse(key)
        if step is not None:
            result[step] = parse(below) if below else {}
    return ordered(result)


def show_path(path: Iterable[str]) -> str:
    return "".join(element.show(step) for step in path)


@dataclass(frozen=True, slots=True)
class FieldSet:
    """A set of fields with its operations, for those who don't want to handle tries."""

    trie: Trie = field(default_factory=dict)

    @staticmethod
    def from_v1(raw: Mapping[str, Any] | None) -> FieldSet:
        trie = parse(raw or {})
        trie.pop(SELF, None)
        return FieldSet(trie)

    @staticmethod
    def of(*found: Iterable[str]) -> FieldSet:
        """From paths, each a sequence of steps (`("f:spec", "f:replicas")`)."""
        trie: Trie = {}
        for path in found:
            node: Trie = {}
            for step in reversed(tuple(path)):
                node = {step: node}
            trie = union(trie, node)
        return FieldSet(trie)

    def to_v1(self) -> Trie:
        return ordered(self.trie)

    @property
    def empty(self) -> bool:
        return not self.trie

    def union(self, other: FieldSet) -> FieldSet:
        return FieldSet(union(self.trie, other.trie))

    def difference(self, other: FieldSet) -> FieldSet:
        return FieldSet(difference(self.trie, other.trie))

    def intersection(self, other: FieldSet) -> FieldSet:
        return FieldSet(intersection(self.trie, other.trie))

    def has(self, path: Iterable[str]) -> bool:
        return has(self.trie, path)

    def paths(self) -> list[tuple[str, ...]]:
        return list(paths(self.trie))

    def leaves(self) -> list[tuple[str, ...]]:
        """The fields in the set with no field of the set below them."""
        found = self.paths()
        inner = {path[:end] for path in found for end in range(1, len(path))}
        return [path for path in found if path not in inner]

    def __len__(self) -> int:
        return len(self.paths())

    def __str__(self) -> str:
        return "\n".join(show_path(path) for path in self.paths())
