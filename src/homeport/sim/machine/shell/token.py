"""The words and signs of shell scripts."""

from __future__ import annotations

import re
from dataclasses import dataclass

_OPERATOR = re.compile(r"&&|\|\||;;|[;|&()\n]")
_REDIRECT = re.compile(r"(\d?)(&>>?|<<-?|>>|>&|<&|>|<)")


class SyntaxProblem(ValueError):
    """Not a script, or one with more of the shell's language than is known here."""


@dataclass(slots=True)
class Token:
    kind: str  # word, op, redirect, end
    text: str
    fd: str = ""
    document: str | None = None
    quoted: bool = False


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    documents: list[Token] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char in " \t\r":
            position += 1
        elif text.startswith("\\\n", position):
            position += 2
        elif char == "#" and (position == 0 or text[position - 1] in " \t\n;"):
            end = text.find("\n", position)
            position = len(text) if end < 0 else end
        elif redirect := _REDIRECT.match(text, position):
            token = Token("redirect", redirect.group(2), redirect.group(1))
            found.append(token)
            position = redirect.end()
            if token.text.startswith("<<"):
                documents.append(token)
        elif operator := _OPERATOR.match(text, position):
            found.append(Token("op", operator.group()))
            position = operator.end()
            if operator.group() == "\n":
                position = _documents(text, position, documents, found)
        else:
            end = _word_end(text, position)
            found.append(Token("word", text[position:end], quoted=text[position] in "'\""))
            position = end
    if documents:
        raise SyntaxProblem("Syntax error: a here-document has no end")
    return [*found, Token("end", "end of file")]


def _documents(text: str, position: int, waiting: list[Token], found: list[Token]) -> int:
    """Here-documents begin on the line after the command that asks for them."""
    for token in waiting:
        word = found[next(i for i, each in enumerate(found) if each is token) + 1]
        mark = word.text.strip("'\"").replace("\\", "")
        lines: list[str] = []
        while True:
            if position >= len(text):
                raise SyntaxProblem(f"Syntax error: here-document without {mark}")
            end = text.find("\n", position)
            end = len(text) if end < 0 else end
            line = text[position:end].lstrip("\t") if token.text == "<<-" else text[position:end]
            position = end + 1
            if line == mark:
                break
            lines.append(line + "\n")
        token.document = "".join(lines)
        token.quoted = word.text[:1] in "'\"\\"
    waiting.clear()
    return position


def _word_end(text: str, position: int) -> int:
    while position < len(text):
        char = text[position]
        if char in " \t\r\n;|&()<>":
            return position
        if char == "\\":
            position += 2
        elif char == "'":
            position = _closing(text, position, "'") + 1
        elif char == '"':
            position = _double_end(text, position) + 1
        elif text.startswith("$(", position):
            position = parenthesis_end(text, position + 2) + 1
        elif char == "`":
            position = _closing(text, position, "`") + 1
        elif text.startswith("${", position):
            position = _closing(text, position + 1, "}") + 1
        else:
            position += 1
    return min(position, len(text))


def _closing(text: str, position: int, mark: str) -> int:
    end = text.find(mark, position + 1)
    if end < 0:
        raise SyntaxProblem("Syntax error: Unterminated quoted string")
    return end


def _double_end(text: str, position: int) -> int:
    position += 1
    while position < len(text) and text[position] != '"':
        if text[position] == "\\":
            position += 2
        elif text.startswith("$(", position):
            position = parenthesis_end(text, position + 2) + 1
        else:
            position += 1
    if position >= len(text):
        raise SyntaxProblem("Syntax error: Unterminated quoted string")
    return position


def parenthesis_end(text: str, position: int) -> int:
    """Where the parenthesis closes that was opened before `at`."""
    depth = 1
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 1
        elif char == "'":
            position = _closing(text, position, "'")
        elif char == '"':
            position = _double_end(text, position)
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if not depth:
                return position
        position += 1
    raise SyntaxProblem("Syntax error: a parenthesis is not closed")
