"""Label and field selectors: parsed once, matched often. Grammar and error texts are Kubernetes'."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from homeport.machinery.schema.name import label_key, label_value

Labels = Mapping[str, str]

_IN: Final = "in"
_NOT_IN: Final = "notin"
_EXISTS: Final = "exists"
_MISSING: Final = "!"
_GREATER: Final = ">"
_LESS: Final = "<"
_WORDS: Final = {_IN, _NOT_IN}
_BINARY: Final = ("in", "notin", "=", "==", "!=", ">", "<")
_BINARY_NAMES: Final = "in, notin, =, ==, !=, gt, lt"  # as the real parser calls them
_SYMBOLS: Final = "=!(),><"
_SPACE: Final = " \t\r\n"
_OPERATORS: Final = {"=", "==", "!", "!=", "(", ")", ",", ">", "<"}
_LABEL_OPERATORS: Final = {"In": _IN, "NotIn": _NOT_IN, "Exists": _EXISTS, "DoesNotExist": _MISSING}

_INTEGER_RE: Final = re.compile(r"[+-]?[0-9]+")


class SelectorError(ValueError):
    """The text is not a valid selector. The message says where, and what was expected."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label. `=`, `==` and `!=` keep their spelling, so that the text round-trips."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        operator = self.operator
        if operator in ("=", "==", _IN):
            return value is not None and value in self.values
        if operator in ("!=", _NOT_IN):
            return value is None or value not in self.values
        if operator == _EXISTS:
            return value is not None
        if operator == _MISSING:
            return value is None
        number = _integer(value)
        bound = int(self.values[0])
        return number is not None and (number > bound if operator == _GREATER else number < bound)

    def __str__(self) -> str:
        if self.operator == _EXISTS:
            return self.key
        if self.operator == _MISSING:
            return f"!{self.key}"
        joined = ",".join(sorted(self.values))
        if self.operator in _WORDS:
            return f"{self.key} {self.operator} ({joined})"
        return f"{self.key}{self.operator}{joined}"


@dataclass(frozen=True, slots=True)
class LabelSelector:
    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False  # a selector that is absent where one is needed selects no object

    @property
    def empty(self) -> bool:
        """True when it selects everything."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Labels) -> bool:
        if self.nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(str(requirement) for requirement in self.requirements)


EVERYTHING: Final = LabelSelector()
NOTHING: Final = LabelSelector(nothing=True)


def parse_labels(text: str) -> LabelSelector:
    """`app=web,tier in (a,b),!old,size>3`."""
    if not text:
        return EVERYTHING
    return LabelSelector(_sorted(_LabelParser(text).parse()))


def from_label_selector(obj: Mapping[str, Any] | None) -> LabelSelector:
    """From a metav1.LabelSelector: matchLabels and matchExpressions. None selects nothing, {} everything."""
    if obj is None:
        return NOTHING
    found = [_requirement(key, "=", (value,)) for key, value in (obj.get("matchLabels") or {}).items()]
    for expression in obj.get("matchExpressions") or ():
        written = expression.get("operator", "")
        operator = _LABEL_OPERATORS.get(written)
        if operator is None:
            raise SelectorError(f'"{written}" is not a valid label selector operator')
        found.append(_requirement(expression.get("key", ""), operator, tuple(expression.get("values") or ())))
    return LabelSelector(_sorted(found)) if found else EVERYTHING


def _sorted(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    return tuple(sorted(requirements, key=lambda requirement: requirement.key))


def _integer(text: str | None) -> int | None:
    if text is None or not _INTEGER_RE.fullmatch(text) or len(text) > 20:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def _requirement(key: str, operator: str, values: tuple[str, ...]) -> Requirement:
    """Checks what every requirement must hold, however it was written."""
    errors = []
    if problems := label_key(key):
        errors.append(f'key: Invalid value: "{key}": {"; ".join(problems)}')
    if text := _count_error(operator, values):
        errors.append(f"values: Invalid value: {_go_list(values)}: {text}")
    if operator in (_GREATER, _LESS):
        errors += [
            f"values[{i}]: Invalid value: \"{value}\": for 'Gt', 'Lt' operators, the value must be an integer"
            for i, value in enumerate(values)
            if _integer(value) is None
        ]
    for i, value in enumerate(values):
        if problems := label_value(value):
            errors.append(f'values[{i}][{key}]: Invalid value: "{value}": {"; ".join(problems)}')
    if errors:
        raise SelectorError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")
    return Requirement(key, operator, values)


def _count_error(operator: str, values: tuple[str, ...]) -> str:
    count = len(values)
    if operator in _WORDS and not count:
        return "for 'in', 'notin' operators, values set can't be empty"
    if operator in ("=", "==", "!=") and count != 1:
        return "exact-match compatibility requires one single value"
    if operator in (_EXISTS, _MISSING) and count:
        return "values set must be empty for exists and does not exist"
    if operator in (_GREATER, _LESS) and count != 1:
        return "for 'Gt', 'Lt' operators, exactly one value is required"
    return ""


def _go_list(values: Iterable[str]) -> str:
    return "[" + ",".join(f'"{value}"' for value in values) + "]"


_END: Final = ("end", "")
_Token = tuple[str, str]  # (kind, text); kind is "id", "end", "error" or the operator itself


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    position, end = 0, len(text)
    while position < end:
        char = text[position]
        if char in _SPACE:
            position += 1
            continue
        if char == "\0":
            break
        start = position
        if char in _SYMBOLS:
            position = start + (2 if text[start : start + 2] in _OPERATORS else 1)
            found.append((text[start:position], text[start:position]))
            continue
        while (
            position < end
            and text[position] not in _SYMBOLS
            and text[position] not in _SPACE
            and text[position] != "\0"
        ):
            position += 1
        word = text[start:position]
        found.append((word if word in _WORDS else "id", word))
    found.append(_END)
    return found


class _LabelParser:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._at = 0

    def _peek(self, *, words: bool = False) -> _Token:
        """`words`: `in` and `notin` are operators here; elsewhere they are names."""
        kind, text = self._tokens[min(self._at, len(self._tokens) - 1)]
        return ("id", text) if kind in _WORDS and not words else (kind, text)

    def _take(self, *, words: bool = False) -> _Token:
        token = self._peek(words=words)
        self._at += 1
        return token

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            kind, text = self._peek()
            if kind == "end":
                return found
            if kind not in ("id", "!"):
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._one())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, text = self._take()
            if kind == "end":
                return found
            if kind != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self._peek()
            if kind not in ("id", "!"):
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _one(self) -> Requirement:
        kind, key = self._take()
        absent = kind == "!"
        if absent:
            kind, key = self._take()
        if kind != "id":
            raise SelectorError(f"found '{key}', expected: identifier")
        if problems := label_key(key):
            raise SelectorError(f'<nil>: Invalid value: "{key}": {"; ".join(problems)}')
        # Kubernetes reads `!key` as "absent" even when an operator follows; the operator then fails as a separator.
        if absent or self._peek()[0] in ("end", ","):
            return _requirement(key, _MISSING if absent else _EXISTS, ())
        operator, text = self._take(words=True)
        if operator not in _BINARY:
            raise SelectorError(f"found '{text}', expected: {_BINARY_NAMES}")
        values = self._set() if operator in _WORDS else (self._exact(),)
        return _requirement(key, operator, tuple(sorted(set(values))))

    def _exact(self) -> str:
        if self._peek()[0] in ("end", ","):
            return ""
        kind, text = self._take()
        if kind != "id":
            raise SelectorError(f"found '{text}', expected: identifier")
        return text

    def _set(self) -> tuple[str, ...]:
        kind, text = self._take()
        if kind != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        kind, text = self._peek()
        if kind not in ("id", ",", ")"):
            raise SelectorError(f"found '{text}', expected: ',', ')' or identifier")
        values = [""]  # an empty place between commas is the empty value
        while True:
            kind, text = self._take()
            if kind == ")":
                return tuple(values)
            if kind == ",":
                values.append("")
            elif kind == "id" and not values[-1]:
                values[-1] = text
            else:
                raise SelectorError(f"found '{text}', expected: ',' or ')'")


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """Conditions `field=value` and `field!=value`."""

    terms: tuple[tuple[str, bool, str], ...] = ()  # (field, equal, value)

    @property
    def empty(self) -> bool:
        return not self.terms

    def matches(self, fields: Mapping[str, str]) -> bool:
        """An absent field counts as the empty text, as in Kubernetes."""
        return all((fields.get(name, "") == value) is equal for name, equal, value in self.terms)

    def names(self) -> set[str]:
        return {name for name, _, _ in self.terms}

    def require(self, name: str) -> str | None:
        for term, equal, value in self.terms:
            if term == name and equal:
                return value
        return None

    def rename(self, convert: Callable[[str], str]) -> FieldSelector:
        """The same conditions on other names, for kinds that know a field by an older one."""
        return FieldSelector(tuple((convert(name), equal, value) for name, equal, value in self.terms))

    def __str__(self) -> str:
        return ",".join(f"{name}{'=' if equal else '!='}{_escape(value)}" for name, equal, value in self.terms)


_OPERATOR: Final = re.compile(r"!=|==|=")


def parse_fields(text: str) -> FieldSelector:
    """`metadata.name=a,status.phase!=Running`; `\\`, `,` and `=` inside a value are escaped with a backslash."""
    terms = []
    for part in sorted(_split_terms(text)):
        if not part:
            continue
        found = _OPERATOR.search(part)
        if found is None:
            raise SelectorError(f"invalid selector: '{text}'; can't understand '{part}'")
        name, value = part[: found.start()], _unescape(part[found.end() :])
        if name or value:
            terms.append((name, found.group() != "!=", value))
    return FieldSelector(tuple(terms))


def _split_terms(text: str) -> list[str]:
    parts, start, position = [], 0, 0
    while position < len(text):
        if text[position] == "\\":
            position += 2
            continue
        if text[position] == ",":
            parts.append(text[start:position])
            start = position + 1
        position += 1
    parts.append(text[start:])
    return parts


def _unescape(value: str) -> str:
    if not any(char in value for char in "\\,="):
        return value
    out, position = [], 0
    while position < len(value):
        char = value[position]
        if char == "\\":
            escaped = value[position + 1 : position + 2]
            if not escaped or escaped not in "\\,=":
                raise SelectorError(f"invalid field selector: invalid escape sequence: \\{escaped}")
            out.append(escaped)
            position += 2
            continue
        if char in ",=":
            raise SelectorError(f"invalid field selector: unescaped character in value: {ord(char)}")
        out.append(char)
        position += 1
    return "".join(out)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
