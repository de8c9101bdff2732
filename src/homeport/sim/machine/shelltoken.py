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
    at = 0
    while at < len(text):
        char = text[at]
        if char in " \t\r":
            at += 1
        elif text.startswith("\\\n", at):
            at += 2
        elif char == "#" and (at == 0 or text[at - 1] in " \t\n;"):
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        elif redirect := _REDIRECT.match(text, at):
            token = Token("redirect", redirect.group(2), redirect.group(1))
            found.append(token)
            at = redirect.end()
            if token.text.startswith("<<"):
                documents.append(token)
        elif operator := _OPERATOR.match(text, at):
            found.append(Token("op", operator.group()))
            at = operator.end()
            if operator.group() == "\n":
                at = _documents(text, at, documents, found)
        else:
            end = _word_end(text, at)
            found.append(Token("word", text[at:end], quoted=text[at] in "'\""))
            at = end
    if documents:
        raise SyntaxProblem("Syntax error: a here-document has no end")
    return [*found, Token("end", "end of file")]


def _documents(text: str, at: int, waiting: list[Token], found: list[Token]) -> int:
    """Here-documents begin on the line after the command that asks for them."""
    for token in waiting:
        word = found[next(i for i, each in enumerate(found) if each is token) + 1]
        mark = word.text.strip("'\"").replace("\\", "")
        lines: list[str] = []
        while True:
            if at >= len(text):
                raise SyntaxProblem(f"Syntax error: here-document without {mark}")
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            line = text[at:end].lstrip("\t") if token.text == "<<-" else text[at:end]
            at = end + 1
            if line == mark:
                break
            lines.append(line + "\n")
        token.document = "".join(lines)
        token.quoted = word.text[:1] in "'\"\\"
    waiting.clear()
    return at


def _word_end(text: str, at: int) -> int:
    while at < len(text):
        char = text[at]
        if char in " \t\r\n;|&()<>":
            return at
        if char == "\\":
            at += 2
        elif char == "'":
            at = _closing(text, at, "'") + 1
        elif char == '"':
            at = _double_end(text, at) + 1
        elif text.startswith("$(", at):
            at = parenthesis_end(text, at + 2) + 1
        elif char == "`":
            at = _closing(text, at, "`") + 1
        elif text.startswith("${", at):
            at = _closing(text, at + 1, "}") + 1
        else:
            at += 1
    return min(at, len(text))


def _closing(text: str, at: int, mark: str) -> int:
    end = text.find(mark, at + 1)
    if end < 0:
        raise SyntaxProblem("Syntax error: Unterminated quoted string")
    return end


def _double_end(text: str, at: int) -> int:
    at += 1
    while at < len(text) and text[at] != '"':
        if text[at] == "\\":
            at += 2
        elif text.startswith("$(", at):
            at = parenthesis_end(text, at + 2) + 1
        else:
            at += 1
    if at >= len(text):
        raise SyntaxProblem("Syntax error: Unterminated quoted string")
    return at


def parenthesis_end(text: str, at: int) -> int:
    """Where the parenthesis closes that was opened before `at`."""
    depth = 1
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == "'":
            at = _closing(text, at, "'")
        elif char == '"':
            at = _double_end(text, at)
        elif char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if not depth:
                return at
        at += 1
    raise SyntaxProblem("Syntax error: a parenthesis is not closed")
