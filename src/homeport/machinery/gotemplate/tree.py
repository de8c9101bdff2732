"""What a template is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from homeport.machinery.gotemplate.literal import Number


@dataclass(frozen=True, slots=True)
class Constant:
    value: bool | str


@dataclass(frozen=True, slots=True)
class Nil:
    pass


@dataclass(frozen=True, slots=True)
class Dot:
    pass


@dataclass(frozen=True, slots=True)
class Field:
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function, by its name."""

    name: str


@dataclass(frozen=True, slots=True)
class Chain:
    """Fields of what a parenthesis or a function gives."""

    of: Operand
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Placed:
    line: int  # of the template


@dataclass(frozen=True, slots=True)
class Command(_Placed):
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Pipeline(_Placed):
    commands: tuple[Command, ...]
    variables: tuple[str, ...] = ()
    declares: bool = False


Operand = Constant | Number | Nil | Dot | Field | Variable | Call | Chain | Pipeline


@dataclass(frozen=True, slots=True)
class Text(_Placed):
    text: str


@dataclass(frozen=True, slots=True)
class Print(_Placed):
    pipeline: Pipeline


@dataclass(frozen=True, slots=True)
class Branch(_Placed):
    """if or with."""

    kind: Literal["if", "with"]
    pipeline: Pipeline
    body: list[Node]
    otherwise: list[Node]


@dataclass(frozen=True, slots=True)
class Loop(_Placed):
    pipeline: Pipeline
    body: list[Node]
    otherwise: list[Node]


@dataclass(frozen=True, slots=True)
class Jump(_Placed):
    kind: Literal["break", "continue"]


@dataclass(frozen=True, slots=True)
class Include(_Placed):
    """Another template, with what becomes its dot."""

    name: str
    pipeline: Pipeline | None


Node = Text | Print | Branch | Loop | Jump | Include


@dataclass(slots=True)
class Tree:
    body: list[Node] = field(default_factory=list)
    defined: dict[str, list[Node]] = field(default_factory=dict)
    functions: set[str] = field(default_factory=set)  # all that it calls


def is_empty(nodes: list[Node]) -> bool:
    """Nothing but blanks: such a definition gives way to another one."""
    return all(isinstance(node, Text) and not node.text.strip() for node in nodes)
