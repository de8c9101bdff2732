"""The OData of v4 lists: `$filter`, `$orderby` and `$select` over the values that the list shows.

Filters know comparisons, and/or/not, parentheses, `in`, paths with slashes, any/all, enum literals with their type
(`Prism.Config.TaskStatus'RUNNING'`), and a handful of functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

Scope = Mapping[str, Any]  # the entity under "", and variables of any/all
Value = Callable[[Scope], Any]
Test = Callable[[Scope], bool]

_TOKEN: Final = re.compile(
    r"""\s*(?:
      (?P<text>(?:[A-Za-z_][\w.]*)?'(?:[^']|'')*')
    | (?P<time>\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)?)
    | (?P<uuid>[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12})
    | (?P<number>-?\d+(?:\.\d+)?)
    | (?P<word>[A-Za-z_$][\w$]*(?:/[A-Za-z_$][\w$]*)*)
    | (?P<mark>[(),:])
    )""",
    re.VERBOSE,
)
_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "eq": lambda a, b: bool(a == b),
    "ne": lambda a, b: bool(a != b),
    "gt": lambda a, b: bool(a > b),
    "ge": lambda a, b: bool(a >= b),
    "lt": lambda a, b: bool(a < b),
    "le": lambda a, b: bool(a <= b),
}
_TESTS: Final[dict[str, Callable[[str, str], bool]]] = {
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": lambda text, part: part in text,
}
_CHANGES: Final[dict[str, Callable[[str], Any]]] = {
    "tolower": str.lower,
    "toupper": str.upper,
    "trim": str.strip,
    "length": len,
}
_DEEPEST: Final = 60


class ODataError(ValueError):
    """What is wrong with an expression, for the caller to read."""


class Filter:
    """A parsed `$filter`. `fields` are the first steps of all paths in it, to be checked against the entity."""

    def __init__(self, text: str) -> None:
        parser = _Parser(text)
        self._test = parser.parse()
        self.fields = frozenset(parser.fields)
        self.equals = parser.equals
        self.among = parser.among
        self.contains = parser.contains

    def matches(self, entity: Mapping[str, Any]) -> bool:
        return self._test({"": entity})


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0
        self._variables: list[str] = []
        self._depth = 0
        self.fields: set[str] = set()
        # What must hold whatever else does: parts that nothing but `and` joins to the rest.
        self.equals: dict[str, Any] = {}  # name eq 'x'
        self.among: dict[str, set[Any]] = {}  # name eq 'x' or name eq 'y'
        self.contains: dict[str, Any] = {}  # tags/any(t: t/key eq 'x'), under tags/key

    def parse(self) -> Test:
        test = self._or()
        if self._position < len(self._tokens):
            raise ODataError(f"unexpected {self._tokens[self._position][1]!r}")
        return test

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._position] if self._position < len(self._tokens) else ("end", "")

    def _next(self) -> tuple[str, str]:
        token = self._peek()
        self._position += 1
        return token

    def _take(self, word: str) -> bool:
        if self._peek() in (("word", word), ("mark", word)):
            self._position += 1
            return True
        return False

    def _expect(self, mark: str) -> None:
        if not self._take(mark):
            raise ODataError(f"expected {mark!r}, found {self._peek()[1] or 'the end'!r}")

    def _or(self) -> Test:
        parts = [self._and()]
        if self._depth == 0:
            self.among = {name: {value} for name, value in self.equals.items()}
        while self._take("or"):
            if self._depth == 0:
                self.equals = {}
            parts.append(self._and())
            if self._depth == 0:
                self.among = {
                    name: held | {self.equals[name]} for name, held in self.among.items() if name in self.equals
                }
                self.equals, self.contains = {}, {}
        return parts[0] if len(parts) == 1 else lambda scope: any(part(scope) for part in parts)

    def _and(self) -> Test:
        parts = [self._not()]
        while self._take("and"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else lambda scope: all(part(scope) for part in parts)

    def _not(self) -> Test:
        if self._take("not"):
            test = self._inside(self._not)
            return lambda scope: not test(scope)
        if self._take("("):
            test = self._inside(self._or)
            self._expect(")")
            return test
        return self._comparison()

    def _inside(self, parse: Callable[[], Test]) -> Test:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise ODataError("the expression is nested too deeply")
        try:
            return parse()
        finally:
            self._depth -= 1

    def _comparison(self) -> Test:
        kind, word = self._peek()
        if kind == "word" and word in _TESTS:
            return self._function(_TESTS[self._next()[1]])
        if kind == "word" and word.endswith(("/any", "/all")):
            return self._quantified()
        left = self._operand()
        if self._take("in"):
            return self._among(left)
        operator = self._peek()[1]
        if operator not in _COMPARE:
            if kind == "word":
                return lambda scope: left(scope) is True
            raise ODataError(f"expected an operator such as eq, found {operator or 'the end'!r}")
        self._next()
        right = self._operand()
        if operator == "eq" and kind == "word" and "/" not in word and not self._depth:
            self.equals[word] = right({"": {}})
        return _compared(_COMPARE[operator], left, right, operator)

    def _function(self, test: Callable[[str, str], bool]) -> Test:
        self._expect("(")
        text = self._operand()
        self._expect(",")
        part = self._operand()
        self._expect(")")

        def call(scope: Scope) -> bool:
            a, b = text(scope), part(scope)
            return isinstance(a, str) and isinstance(b, str) and test(a, b)

        return call

    def _quantified(self) -> Test:
        path, _, quantifier = self._next()[1].rpartition("/")
        items = self._path(path)
        self._expect("(")
        kind, variable = self._next()
        if kind != "word":
            raise ODataError(f"{quantifier} needs a variable, such as any(a:a/extId eq '...')")
        self._expect(":")
        self._variables.append(variable)
        start = self._position
        test = self._inside(self._or)
        self._variables.pop()
        if quantifier == "any" and not self._depth:
            self._note(path, variable, self._tokens[start : self._position])
        self._expect(")")
        combine = any if quantifier == "any" else all
        return lambda scope: combine(test({**scope, variable: item}) for item in items(scope) or ())

    def _note(self, path: str, variable: str, tokens: list[tuple[str, str]]) -> None:
        if len(tokens) == 3 and tokens[1] == ("word", "eq") and tokens[2][0] == "text":
            step = tokens[0][1].removeprefix(variable)
            self.contains[f"{path}{step}"] = _literal(tokens[2][1])

    def _among(self, left: Value) -> Test:
        self._expect("(")
        choices = [self._operand()]
        while self._take(","):
            choices.append(self._operand())
        self._expect(")")
        return lambda scope: left(scope) in [choice(scope) for choice in choices]

    def _operand(self) -> Value:
        kind, text = self._next()
        if kind == "text":
            literal = _literal(text)
            return lambda scope: literal
        if kind in ("time", "uuid"):
            return lambda scope: text
        if kind == "number":
            number = float(text) if "." in text else int(text)
            return lambda scope: number
        if kind != "word":
            raise ODataError(f"expected a field or a value, found {text or 'the end'!r}")
        if text in ("true", "false", "null"):
            constant = {"true": True, "false": False, "null": None}[text]
            return lambda scope: constant
        if text in _CHANGES:
            return self._changed(_CHANGES[text])
        return self._path(text)

    def _changed(self, change: Callable[[str], Any]) -> Value:
        self._expect("(")
        inner = self._operand()
        self._expect(")")

        def call(scope: Scope) -> Any:
            value = inner(scope)
            return change(value) if isinstance(value, str) else None

        return call

    def _path(self, text: str) -> Value:
        first, *rest = text.split("/")
        if first in self._variables:
            return lambda scope: walk(scope.get(first), rest)
        self.fields.add(first)
        steps = [first, *rest]
        return lambda scope: walk(scope.get(""), steps)


def _literal(text: str) -> str:
    return text[text.index("'") + 1 : -1].replace("''", "'")


def _compared(compare: Callable[[Any, Any], bool], left: Value, right: Value, operator: str) -> Test:
    def test(scope: Scope) -> bool:
        a, b = left(scope), right(scope)
        try:
            if a is None or b is None:
                return compare(a, b) if operator in ("eq", "ne") else False
            return compare(a, b)
        except TypeError:  # a number against a text
            return False

    return test


def walk(value: object, steps: list[str]) -> Any:
    for step in steps:
        if not isinstance(value, Mapping):
            return None
        value = value.get(step)
    return value


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    text = text.strip()
    if not text:
        raise ODataError("the filter is empty")
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None or match.end() == at:
            raise ODataError(f"can't be read from {text[at : at + 20]!r} on")
        kind = match.lastgroup or ""
        found.append((kind, match.group(kind)))
        at = match.end()
    return found


def parse_order(text: str) -> list[tuple[list[str], bool]]:
    """Paths, and whether each is descending."""
    order = []
    for part in text.split(","):
        words = part.split()
        if not words or len(words) > 2 or (len(words) == 2 and words[1] not in ("asc", "desc")):
            raise ODataError(f"{part.strip()!r} is not a valid order: expected a field, then asc or desc")
        order.append((words[0].split("/"), words[1:] == ["desc"]))
    return order


def ordered(items: list[dict[str, Any]], order: list[tuple[list[str], bool]]) -> list[dict[str, Any]]:
    for steps, descending in reversed(order):
        items = sorted(items, key=lambda item: _rank(walk(item, steps)), reverse=descending)
    return items


def _rank(value: Any) -> tuple[int, Any]:
    """Any two values can be compared: nothing first, then numbers, then texts."""
    if isinstance(value, bool | int | float):
        return 1, value
    return (2, value) if isinstance(value, str) else (0, 0)
