"""Words of the shell: quotes, variables and `$(...)`."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Awaitable, Callable, Mapping

from homeport.sim.machine.shell.token import parenthesis_end

_NAME = re.compile(r"[A-Za-z_]\w*|[0-9?@#*]")
_BRACED = re.compile(r"([A-Za-z_]\w*|[0-9?@#*])(?:(:?[-=+?])(.*))?", re.DOTALL)


def plain_name(word: str) -> str:
    """`/usr/local/bin/k0s` > `k0s`."""
    return posixpath.basename(word) or word


class Expander:
    def __init__(self, env: Mapping[str, str], capture: Callable[[str], Awaitable[str]]) -> None:
        self._env = env
        self._capture = capture

    async def fields(self, words: list[str]) -> list[str]:
        """Each word as the arguments it becomes: what comes out of a variable without quotes is split."""
        found: list[str] = []
        for word in words:
            found += await self._fields(word)
        return found

    async def text(self, word: str) -> str:
        """A word as one text."""
        return "".join([text for text, _ in await self._pieces(word)])

    async def document(self, body: str) -> str:
        """A here-document: variables count, quotes don't."""
        return "".join([text for text, _ in await self._double(body)])

    async def _fields(self, word: str) -> list[str]:
        fields: list[str] = []
        current: str | None = None
        for text, splits in await self._pieces(word):
            if not splits:
                current = (current or "") + text
                continue
            parts = text.split()
            if not parts:
                continue
            if text[0].isspace() and current is not None:
                fields.append(current)
                current = None
            current = (current or "") + parts[0]
            for part in parts[1:]:
                fields.append(current)
                current = part
            if text[-1].isspace():
                fields.append(current)
                current = None
        return fields if current is None else [*fields, current]

    async def _pieces(self, word: str) -> list[tuple[str, bool]]:
        """(text, may be split)."""
        found: list[tuple[str, bool]] = []
        position = 0
        while position < len(word):
            char = word[position]
            if char == "'":
                end = word.index("'", position + 1)
                found.append((word[position + 1 : end], False))
                position = end + 1
            elif char == '"':
                end = _double_end(word, position)
                found.append(("", False))
                found += [(text, False) for text, _ in await self._double(word[position + 1 : end])]
                position = end + 1
            elif char == "\\":
                if word[position + 1 : position + 2] != "\n":
                    found.append((word[position + 1 : position + 2], False))
                position += 2
            elif char in "$`":
                text, position, known = await self._variable(word, position)
                found.append((text, known))
            else:
                found.append((char, False))
                position += 1
        return found

    async def _double(self, text: str) -> list[tuple[str, bool]]:
        found: list[tuple[str, bool]] = []
        position = 0
        while position < len(text):
            char = text[position]
            if char == "\\" and text[position + 1 : position + 2] in ("$", "`", '"', "\\", "\n"):
                found.append(("" if text[position + 1] == "\n" else text[position + 1], False))
                position += 2
            elif char in "$`":
                value, position, _ = await self._variable(text, position)
                found.append((value, False))
            else:
                found.append((char, False))
                position += 1
        return found

    async def _variable(self, text: str, position: int) -> tuple[str, int, bool]:
        """The value of what begins at `at`, where the text goes on, and whether it was anything to expand."""
        if text[position] == "`":
            end = text.find("`", position + 1)
            return (
                (await self._capture(text[position + 1 : end]), end + 1, True)
                if end > 0
                else ("`", position + 1, False)
            )
        if text.startswith("$(", position):
            end = parenthesis_end(text, position + 2)
            return await self._capture(text[position + 2 : end]), end + 1, True
        if text.startswith("${", position) and "}" in text[position:]:
            end = text.index("}", position)
            return await self._braced(text[position + 2 : end]), end + 1, True
        found = _NAME.match(text, position + 1)
        if found is None:
            return "$", position + 1, False
        return self._env.get(found.group(), ""), found.end(), True

    async def _braced(self, inside: str) -> str:
        found = _BRACED.fullmatch(inside)
        if found is None:
            return ""
        name, operator, other = found.groups()
        value = self._env.get(name)
        unset = value is None or (bool(operator) and operator.startswith(":") and not value)
        if operator and operator[-1] == "+":
            return "" if unset else await self.text(other)
        if unset:
            return await self.text(other) if operator and operator[-1] in "-=" else ""
        return value or ""


def _double_end(word: str, position: int) -> int:
    position += 1
    while word[position] != '"':
        if word[position] == "\\":
            position += 2
        elif word.startswith("$(", position):
            position = parenthesis_end(word, position + 2) + 1
        else:
            position += 1
    return position
