"""Text to a tree: pieces of text and actions, actions to pipelines of commands."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.machinery.gotemplate.error import TemplateError

_COMMENT = re.compile(r"\{\{(- )?/\*.*?\*/( -)?\}\}", re.DOTALL)
_TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<string>"(?:[^"\\\n]|\\.)*"|`[^`]*`)
    |(?P<character>'(?:[^'\\]|\\.)')
    |(?P<number>[+-]?(?:0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+|[0-9][0-9_]*(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?))
    |(?P<variable>\$[A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)
    |(?P<field>(?:\.[A-Za-z_][A-Za-z0-9_]*)+)
    |(?P<dot>\.)
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<mark>:=|=|\||\(|\)|,)""",
    re.VERBOSE,
)
_NESTED = ("define", "template", "block")


@dataclass(frozen=True, slots=True)
class Operand:
    """kind: literal, nil, dot, field, variable, function or pipeline; `path` are the fields taken from it."""

    kind: str
    value: Any = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pipeline:
    line: int
    commands: tuple[tuple[Operand, ...], ...]
    variables: tuple[str, ...] = ()
    declares: bool = False


@dataclass(slots=True)
class Node:
    """kind: text, print, if, with, range, break or continue."""

    kind: str
    line: int
    text: str = ""
    pipeline: Pipeline | None = None
    body: list[Node] = field(default_factory=list)
    otherwise: list[Node] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Piece:
    line: int
    text: str
    action: bool


def parse(source: str) -> list[Node]:
    """Raises TemplateError."""
    return _Parser(_pieces(source)).whole()


def _pieces(source: str) -> list[_Piece]:
    """Text and actions by turns; blanks next to a trimming mark are gone."""
    pieces: list[_Piece] = []
    position, trim = 0, False
    while True:
        start = source.find("{{", position)
        text = source[position:] if start < 0 else source[position:start]
        line = source.count("\n", 0, position) + 1
        if trim:
            text = text.lstrip(" \t\r\n")
        trims_before = start >= 0 and bool(re.match(r"\{\{-\s", source[start:]))
        if trims_before:
            text = text.rstrip(" \t\r\n")
        if text:
            pieces.append(_Piece(line, text, action=False))
        if start < 0:
            return pieces
        line = source.count("\n", 0, start) + 1
        comment = _COMMENT.match(source, start)
        end = comment.end() if comment else _end_of_action(source, start, line)
        inner = source[start + 2 : end - 2]
        trim = bool(re.search(r"\s-$", inner))
        if comment is None:
            inner = inner[1:] if trims_before else inner
            inner = inner[:-1] if trim else inner
            pieces.append(_Piece(line, inner, action=True))
        position = end


def _end_of_action(source: str, start: int, line: int) -> int:
    """Behind the }} that ends the action; those inside of strings don't."""
    position = start + 2
    while position < len(source):
        if source.startswith("}}", position):
            return position + 2
        quote = source[position]
        if quote in "\"`'":
            found = _TOKEN.match(source, position)
            if found is None or found.lastgroup not in ("string", "character"):
                raise TemplateError(line, "a quote is not closed")
            position = found.end()
        else:
            position += 1
    raise TemplateError(line, "an action is not closed: '}}' is missing")


class _Parser:
    def __init__(self, pieces: Sequence[_Piece]) -> None:
        self._pieces = pieces
        self._position = 0

    def whole(self) -> list[Node]:
        nodes, stop, line = self._until(loops=0)
        if stop:
            raise TemplateError(line, f"{{{{{stop}}}}} without a beginning")
        return nodes

    def _until(self, loops: int) -> tuple[list[Node], str, int]:
        """Nodes up to an end or else that belongs to somebody above; what it was and where."""
        nodes: list[Node] = []
        while self._position < len(self._pieces):
            piece = self._pieces[self._position]
            self._position += 1
            if not piece.action:
                nodes.append(Node("text", piece.line, piece.text))
                continue
            word, _, rest = piece.text.strip().partition(" ")
            if word == "end" or word == "else":
                return nodes, piece.text.strip(), piece.line
            if word in ("if", "with", "range"):
                nodes.append(self._branch(word, rest, piece.line, loops + (word == "range")))
            elif word in ("break", "continue"):
                if not loops:
                    raise TemplateError(piece.line, f"{word} outside of a range")
                nodes.append(Node(word, piece.line))
            elif word in _NESTED:
                raise TemplateError(piece.line, f"{word} is not supported: write its content in place")
            else:
                nodes.append(Node("print", piece.line, pipeline=_Pipelines(piece.text, piece.line).whole()))
        return nodes, "", 0

    def _branch(self, kind: str, condition: str, line: int, loops: int) -> Node:
        node = Node(kind, line, pipeline=_Pipelines(condition, line).whole())
        node.body, stop, where = self._until(loops)
        if stop.startswith("else"):
            chained = stop.removeprefix("else").strip()
            if chained:
                word, _, rest = chained.partition(" ")
                if word not in ("if", "with") or kind == "range":
                    raise TemplateError(where, f"{{{{{stop}}}}} can't follow {kind}")
                node.otherwise = [self._branch(word, rest, where, loops)]
                return node  # the chained branch has taken the end
            node.otherwise, stop, where = self._until(loops - (kind == "range"))
        if not stop:
            raise TemplateError(line, f"{kind} is not closed: '{{{{end}}}}' is missing")
        if stop != "end":
            raise TemplateError(where, f"unexpected {{{{{stop}}}}}")
        return node


class _Pipelines:
    """One action's inside."""

    def __init__(self, text: str, line: int) -> None:
        self._line = line
        self._tokens = _tokens(text, line)
        self._position = 0

    def whole(self) -> Pipeline:
        if not self._tokens:
            raise TemplateError(self._line, "an action is empty")
        made = self._pipeline()
        if self._position < len(self._tokens):
            raise TemplateError(self._line, f"unexpected {self._tokens[self._position][1]!r}")
        return made

    def _pipeline(self) -> Pipeline:
        variables, declares = self._declaration()
        commands = [self._command()]
        while self._take("|"):
            commands.append(self._command())
        return Pipeline(self._line, tuple(commands), variables, declares)

    def _declaration(self) -> tuple[tuple[str, ...], bool]:
        names: list[str] = []
        position = self._position
        while position < len(self._tokens) and self._tokens[position][0] == "variable":
            names.append(self._tokens[position][1])
            position += 1
            mark = self._tokens[position][1] if position < len(self._tokens) else ""
            if mark in (":=", "="):
                self._position = position + 1
                return tuple(names), mark == ":="
            if mark != ",":
                break
            position += 1
        return (), False

    def _command(self) -> tuple[Operand, ...]:
        operands: list[Operand] = []
        while self._position < len(self._tokens) and self._tokens[self._position][1] not in ("|", ")"):
            operands.append(self._operand())
        if not operands:
            raise TemplateError(self._line, "a command is missing")
        if len(operands) > 1 and operands[0].kind != "function":
            raise TemplateError(self._line, "only functions take arguments")
        return tuple(operands)

    def _operand(self) -> Operand:
        kind, text = self._tokens[self._position]
        self._position += 1
        if kind == "mark":
            if text != "(":
                raise TemplateError(self._line, f"unexpected {text!r}")
            inner = self._pipeline()
            if not self._take(")"):
                raise TemplateError(self._line, "a parenthesis is not closed")
            return Operand("pipeline", inner, self._path())
        if kind == "field":
            return Operand("field", path=tuple(text[1:].split(".")))
        if kind == "variable":
            name, *path = text.split(".")
            return Operand("variable", name, tuple(path))
        if kind == "dot":
            return Operand("dot")
        if kind == "word":
            words = {"true": Operand("literal", True), "false": Operand("literal", False), "nil": Operand("nil")}
            return words.get(text) or Operand("function", text)
        return Operand("literal", _literal(kind, text, self._line))

    def _path(self) -> tuple[str, ...]:
        if self._position < len(self._tokens) and self._tokens[self._position][0] == "field":
            text = self._tokens[self._position][1]
            self._position += 1
            return tuple(text[1:].split("."))
        return ()

    def _take(self, mark: str) -> bool:
        if self._position < len(self._tokens) and self._tokens[self._position] == ("mark", mark):
            self._position += 1
            return True
        return False


def _tokens(text: str, line: int) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise TemplateError(line, f"can't be read at {text[position : position + 20]!r}")
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match.group()))
        position = match.end()
    return found


def _literal(kind: str, text: str, line: int) -> Any:
    try:
        if kind == "string":
            return text[1:-1] if text[0] == "`" else json.loads(text)
        if kind == "character":
            return ord(json.loads(f'"{text[1:-1]}"'))
        return float(text) if re.fullmatch(r"[+-]?[0-9_]*(\.|[eE]|[0-9.]*[eE]).*", text) else int(text, 0)
    except (ValueError, TypeError):
        raise TemplateError(line, f"{text} can't be read") from None
