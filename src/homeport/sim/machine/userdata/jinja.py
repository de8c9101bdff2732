"""The templates that user data may be: `## template: jinja`. A small part of Jinja2, which is all that such data uses.

Expressions with names, literals, comparisons, `and`/`or`/`not`, filters; the blocks if, for, set and raw; comments.
A name that instance data does not have becomes CI_MISSING_JINJA_VAR/<name>, as with cloud-init.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MISSING = "CI_MISSING_JINJA_VAR/"
_PIECE = re.compile(r"(\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\})", re.DOTALL)
_RAW = re.compile(r"\{%-?\s*raw\s*-?%\}(.*?)\{%-?\s*endraw\s*-?%\}", re.DOTALL)
_TOKEN = re.compile(
    r"""\s*(?:("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(\d+(?:\.\d+)?)|([A-Za-z_]\w*)|(==|!=|<=|>=|[<>.\[\]()|,~+]))"""
)


class TemplateError(ValueError):
    """The template can't be rendered."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A name that nothing is known of. It may be asked for more names, and is false."""

    name: str

    def __str__(self) -> str:
        return MISSING + self.name

    def __bool__(self) -> bool:
        return False


def render(text: str, names: Mapping[str, Any]) -> str:
    """Raises TemplateError for what is not a template, or uses more of Jinja2 than is known here."""
    kept: list[str] = []

    def keep(match: re.Match[str]) -> str:
        kept.append(match.group(1))
        return f"\x00{len(kept) - 1}\x00"

    pieces = _PIECE.split(_RAW.sub(keep, text))
    out: list[str] = []
    rest = _Blocks(pieces).run(0, dict(names), out, ())
    if rest != len(pieces):
        raise TemplateError(f"unexpected {pieces[rest]}")
    return re.sub(r"\x00(\d+)\x00", lambda m: kept[int(m.group(1))], "".join(out))


class _Blocks:
    """Walks over the pieces; blocks nest by recursion."""

    def __init__(self, pieces: Sequence[str]) -> None:
        self._pieces = list(pieces)
        for i, piece in enumerate(self._pieces):
            self._trim(i, piece)

    def _trim(self, i: int, piece: str) -> None:
        """`{%-` and `-%}` eat white space; a newline after a block never counts."""
        if not piece.startswith(("{{", "{%", "{#")) or i % 2 == 0:
            return
        if piece[2] == "-":
            self._pieces[i - 1] = self._pieces[i - 1].rstrip()
        if piece[-3] == "-":
            self._pieces[i + 1] = self._pieces[i + 1].lstrip()
        elif not piece.startswith("{{"):
            self._pieces[i + 1] = self._pieces[i + 1].removeprefix("\n")

    def run(self, position: int, names: dict[str, Any], out: list[str] | None, stop: tuple[str, ...]) -> int:
        """Renders until a block whose word is in `stop`; gives its index. `out` None: only looks for the end."""
        while position < len(self._pieces):
            piece = self._pieces[position]
            if position % 2 == 0:
                if out is not None:
                    out.append(piece)
            elif piece.startswith("{{"):
                if out is not None:
                    value = evaluate(_inside(piece), names)
                    out.append("" if value is None else str(value))
            elif piece.startswith("{%"):
                word, _, rest = _inside(piece).partition(" ")
                if word in stop:
                    return position
                position = self._block(word, rest.strip(), position, names, out)
            position += 1
        if stop:
            raise TemplateError(f"{stop[-1]} is missing")
        return position

    def _block(self, word: str, rest: str, position: int, names: dict[str, Any], out: list[str] | None) -> int:
        if word == "if":
            return self._if(rest, position, names, out)
        if word == "for":
            return self._for(rest, position, names, out)
        if word == "set":
            name, sep, value = rest.partition("=")
            if not sep:
                raise TemplateError(f"set {rest}: only `set NAME = VALUE` is known")
            if out is not None:
                names[name.strip()] = evaluate(value.strip(), names)
            return position
        raise TemplateError(f"unknown block {word!r}")

    def _if(self, test: str, position: int, names: dict[str, Any], out: list[str] | None) -> int:
        done = out is None
        while True:
            chosen = not done and bool(evaluate(test, names))
            position = self.run(position + 1, names, out if chosen else None, ("elif", "else", "endif"))
            done = done or chosen
            word, _, test = _inside(self._pieces[position]).partition(" ")
            if word == "endif":
                return position
            test = test if word == "elif" else "true"

    def _for(self, rest: str, position: int, names: dict[str, Any], out: list[str] | None) -> int:
        name, sep, expression = rest.partition(" in ")
        if not sep:
            raise TemplateError(f"for {rest}: only `for NAME in VALUES` is known")
        values = evaluate(expression, names) if out is not None else ()
        end = self.run(position + 1, dict(names), None, ("endfor",))
        for value in values or ():
            self.run(position + 1, {**names, name.strip(): value}, out, ("endfor",))
        return end


def _inside(piece: str) -> str:
    return piece[2:-2].strip("-").strip()


# -- expressions ---------------------------------------------------------------------------------------------------


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    tokens: list[str] = []
    position = 0
    text = text.strip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise TemplateError(f"can't read {text!r}")
        tokens.append(match.group(match.lastindex or 0))
        position = match.end()
    parser = _Expression(tokens, names)
    value = parser.either()
    if parser.position != len(tokens):
        raise TemplateError(f"can't read {text!r}")
    return value


class _Expression:
    def __init__(self, tokens: list[str], names: Mapping[str, Any]) -> None:
        self._tokens = tokens
        self._names = names
        self.position = 0

    def _peek(self) -> str:
        return self._tokens[self.position] if self.position < len(self._tokens) else ""

    def _accept(self, *wanted: str) -> str:
        found = self._peek()
        if found and found in wanted:
            self.position += 1
            return found
        return ""

    def _expect(self, wanted: str) -> None:
        if not self._accept(wanted):
            raise TemplateError(f"{wanted!r} is missing")

    def either(self) -> Any:
        value = self._both()
        while self._accept("or"):
            other = self._both()
            value = value or other
        return value

    def _both(self) -> Any:
        value = self._negated()
        while self._accept("and"):
            other = self._negated()
            value = value and other
        return value

    def _negated(self) -> Any:
        if self._accept("not"):
            return not self._negated()
        return self._compared()

    def _compared(self) -> Any:
        value = self._joined()
        if self._accept("is"):
            return self._tested(value)
        operator = self._accept("==", "!=", "<", ">", "<=", ">=", "in")
        if not operator:
            return value
        other = self._joined()
        try:
            return _COMPARE[operator](value, other)
        except TypeError as wrong:
            raise TemplateError(str(wrong)) from wrong

    def _tested(self, value: Any) -> bool:
        negative = bool(self._accept("not"))
        known = {
            "defined": not isinstance(value, Missing),
            "undefined": isinstance(value, Missing),
            "none": value is None,
        }
        word = self._peek()
        self.position += 1
        if word not in known:
            raise TemplateError(f"unknown test {word!r}")
        return known[word] != negative

    def _joined(self) -> Any:
        value = self._filtered()
        while operator := self._accept("~", "+"):
            other = self._filtered()
            try:
                value = f"{value}{other}" if operator == "~" else value + other
            except TypeError as wrong:
                raise TemplateError(str(wrong)) from wrong
        return value

    def _filtered(self) -> Any:
        value = self._postfixed()
        while self._accept("|"):
            name = self._peek()
            self.position += 1
            arguments = self._arguments() if self._accept("(") else []
            if name not in _FILTERS:
                raise TemplateError(f"no filter named {name!r}")
            try:
                value = _FILTERS[name](value, *arguments)
            except (TypeError, ValueError) as wrong:
                raise TemplateError(f"filter {name}: {wrong}") from wrong
        return value

    def _arguments(self) -> list[Any]:
        found: list[Any] = []
        while not self._accept(")"):
            found.append(self.either())
            if not self._accept(","):
                self._expect(")")
                break
        return found

    def _postfixed(self) -> Any:
        value = self._primary()
        while True:
            if self._accept("."):
                value = _member(value, self._peek())
                self.position += 1
            elif self._accept("["):
                value = _member(value, self.either())
                self._expect("]")
            else:
                return value

    def _primary(self) -> Any:
        word = self._peek()
        self.position += 1
        if word == "(":
            value = self.either()
            self._expect(")")
            return value
        if word[:1] in ("'", '"'):
            return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m.group(1), m.group(1)), word[1:-1])
        if word[:1].isdigit():
            return float(word) if "." in word else int(word)
        if word in _CONSTANTS:
            return _CONSTANTS[word]
        if not (word[:1].isalpha() or word[:1] == "_"):
            raise TemplateError(f"unexpected {word or 'end'!r}")
        return self._names[word] if word in self._names else Missing(word)


def _member(value: Any, key: Any) -> Any:
    if isinstance(value, Mapping):
        if key in value:
            return value[key]
    elif isinstance(value, list | tuple | str):
        index = int(key) if isinstance(key, int) or str(key).isdigit() else len(value)
        if index < len(value):
            return value[index]
    return Missing(str(key))


def _default(value: Any, other: Any = "", boolean: bool = False) -> Any:
    return other if isinstance(value, Missing) or (boolean and not value) else value


_CONSTANTS: dict[str, Any] = {"true": True, "True": True, "false": False, "False": False, "none": None, "None": None}
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    ">": lambda a, b: bool(a > b),
    "<=": lambda a, b: bool(a <= b),
    ">=": lambda a, b: bool(a >= b),
    "in": lambda a, b: bool(a in b),
}
_FILTERS: dict[str, Callable[..., Any]] = {
    "default": _default,
    "d": _default,
    "lower": lambda v: str(v).lower(),
    "upper": lambda v: str(v).upper(),
    "trim": lambda v: str(v).strip(),
    "replace": lambda v, old, new: str(v).replace(old, new),
    "int": lambda v: int(v),
    "string": str,
    "length": len,
    "first": lambda v: v[0],
    "last": lambda v: v[-1],
    "join": lambda v, by="": by.join(str(each) for each in v),
    "split": lambda v, by=None: str(v).split(by),
}
