"""Text to tokens: text outside of actions, and inside of them words, literals and marks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from homeport.machinery.gotemplate.error import TemplateError

SPACES: Final = " \t\r\n"
KEYWORDS: Final = frozenset(
    {"block", "break", "continue", "define", "else", "end", "if", "range", "nil", "template", "with"}
)
_SPACE_RUN: Final = re.compile(r"[ \t\r\n]+")
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\[^\n])*"')
_RAW: Final = re.compile(r"`[^`]*`")
_CHARACTER: Final = re.compile(r"'(?:[^'\\\n]|\\[^\n])*'")
_NUMBER: Final = re.compile(
    r"[+-]?(?:0[xX][0-9a-fA-F_]*(?:\.[0-9a-fA-F_]*)?(?:[pP][+-]?[0-9_]*)?|0[oO][0-7_]*(?:\.[0-7_]*)?"
    r"|0[bB][01_]*(?:\.[01_]*)?|[0-9_]*(?:\.[0-9_]*)?(?:[eE][+-]?[0-9_]*)?)i?"
)


class Token(NamedTuple):
    """kind: text, left, right, space, string, number, character, bool, field, variable, dot, word, keywords, marks."""

    kind: str
    text: str
    line: int


def tokens(source: str) -> list[Token]:
    """Raises TemplateError."""
    return list(_Lexer(source).run())


def is_word(character: str) -> bool:
    return character == "_" or character.isalpha() or character.isdecimal()


class _Lexer:
    def __init__(self, source: str) -> None:
        self._source = source
        self._position = 0
        self._line = 1

    def run(self) -> Iterator[Token]:
        while True:
            start = self._source.find("{{", self._position)
            text = self._source[self._position : start] if start >= 0 else self._source[self._position :]
            trims = start >= 0 and self._trims_before(start + 2)
            kept = text.rstrip(SPACES) if trims else text
            if kept:
                yield Token("text", kept, self._line)
            self._line += text.count("\n")
            if start < 0:
                yield Token("end of text", "", self._line)
                return
            self._position = start + 2
            if self._source.startswith("/*", self._position + (2 if trims else 0)):
                self._comment(self._position + (2 if trims else 0))
            else:
                yield Token("left", "{{", self._line)
                if trims:
                    self._advance(self._position + 2)
                yield from self._action()

    def _trims_before(self, position: int) -> bool:
        return self._source[position : position + 1] == "-" and self._source[position + 1 : position + 2] in tuple(
            SPACES
        )

    def _trims_behind(self, position: int) -> bool:
        return self._source[position : position + 1] in tuple(SPACES) and self._source.startswith("-}}", position + 1)

    def _advance(self, position: int) -> None:
        self._line += self._source.count("\n", self._position, position)
        self._position = position

    def _comment(self, start: int) -> None:
        end = self._source.find("*/", start + 2)
        if end < 0:
            raise TemplateError(self._line, "a comment is not closed")
        self._advance(end + 2)
        if not self._close():
            raise TemplateError(self._line, "a comment must end right before the '}}'")

    def _close(self) -> bool:
        """Past the end of an action, if it is here, and past the blanks that it trims."""
        if self._trims_behind(self._position):
            self._advance(self._position + 4)
            found = _SPACE_RUN.match(self._source, self._position)
            if found:
                self._advance(found.end())
            return True
        if self._source.startswith("}}", self._position):
            self._position += 2
            return True
        return False

    def _action(self) -> Iterator[Token]:
        depth = 0
        started = self._line
        while True:
            line = self._line
            if self._close():
                if depth:
                    raise TemplateError(line, "a parenthesis is not closed")
                yield Token("right", "}}", line)
                return
            if self._position >= len(self._source):
                raise TemplateError(started, "an action is not closed: '}}' is missing")
            token = self._token()
            depth += {"(": 1, ")": -1}.get(token.kind, 0)
            if depth < 0:
                raise TemplateError(line, "unexpected ')'")
            yield token

    def _token(self) -> Token:
        first = self._source[self._position]
        if first in SPACES:
            return self._space()
        if first in "=|()":
            return self._taken(first, self._position + 1)
        if first == ":":
            if not self._source.startswith(":=", self._position):
                raise TemplateError(self._line, "unexpected ':'; a variable is set with ':='")
            return self._taken(":=", self._position + 2)
        for kind, opening, pattern in (("string", '"', _STRING), ("string", "`", _RAW), ("character", "'", _CHARACTER)):
            if first == opening:
                found = pattern.match(self._source, self._position)
                if found is None:
                    raise TemplateError(self._line, f"a quote is not closed: {first} is missing")
                return self._taken(kind, found.end())
        after = self._source[self._position + 1 : self._position + 2]
        if first == "$" or (first == "." and not ("0" <= after <= "9")):
            return self._name(first)
        if first in "+-." or "0" <= first <= "9":
            return self._number()
        if is_word(first):
            return self._word()
        if first.isascii() and first.isprintable():
            return self._taken(first, self._position + 1)
        raise TemplateError(self._line, f"unexpected character {first!r}")

    def _space(self) -> Token:
        found = _SPACE_RUN.match(self._source, self._position)
        assert found is not None
        # The last blank belongs to a trimming end.
        end = found.end() - 1 if self._trims_behind(found.end() - 1) else found.end()
        return self._taken("space", end)

    def _name(self, first: str) -> Token:
        """A field or a variable; each field of a chain is a token of its own."""
        end = self._end_of_word(self._position + 1)
        self._check_end(end)
        kind = "variable" if first == "$" else "field" if end > self._position + 1 else "dot"
        return self._taken(kind, end)

    def _word(self) -> Token:
        end = self._end_of_word(self._position)
        self._check_end(end)
        word = self._source[self._position : end]
        kind = word if word in KEYWORDS else "bool" if word in ("true", "false") else "word"
        return self._taken(kind, end)

    def _number(self) -> Token:
        found = _NUMBER.match(self._source, self._position)
        assert found is not None
        end = found.end()
        if (
            end == self._position
            or is_word(self._source[end : end + 1] or " ")
            or self._source[end : end + 1] in tuple("+-")
        ):
            raise TemplateError(self._line, f"{self._source[self._position : end + 1]!r} can't be read as a number")
        return self._taken("number", end)

    def _end_of_word(self, position: int) -> int:
        while position < len(self._source) and is_word(self._source[position]):
            position += 1
        return position

    def _check_end(self, end: int) -> None:
        after = self._source[end : end + 1]
        if after and after not in SPACES and after not in ".,|:()" and not self._source.startswith("}}", end):
            raise TemplateError(
                self._line, f"unexpected character {after!r} behind {self._source[self._position : end]!r}"
            )

    def _taken(self, kind: str, end: int) -> Token:
        token = Token(kind, self._source[self._position : end], self._line)
        self._advance(end)
        return token
