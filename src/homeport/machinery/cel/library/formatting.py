"""`'%s is %d'.format([...])`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any, Final

from homeport.machinery.cel.compare import type_of_value
from homeport.machinery.cel.errors import EvaluationError
from homeport.machinery.cel.library import clock
from homeport.machinery.cel.library.convert import double_to_string, to_string
from homeport.machinery.cel.values import Duration, ObjectValue, Timestamp, Uint, iterate, iterate_pairs

DEFAULT_PRECISION: Final = 6
MAX_PRECISION: Final = 1000
_SUPERSCRIPT: Final = str.maketrans("0123456789-+", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺")
_SPECIAL_DOUBLES: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}

# the kinds of types a clause takes, and how it says that another is not among them
CLAUSES: Final[dict[str, tuple[frozenset[str], str]]] = {
    "s": (
        frozenset(
            ["bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration", "type", "null", "list", "map"]
        ),
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
        "durations, and timestamps",
    ),
    "d": (frozenset(("int", "uint")), "decimal clause can only be used on integers"),
    "f": (frozenset(("double", "string")), "fixed-point clause can only be used on doubles"),
    "e": (frozenset(("double", "string")), "scientific clause can only be used on doubles"),
    "b": (frozenset(("int", "uint", "bool")), "only integers and bools can be formatted as binary"),
    "x": (
        frozenset(("int", "uint", "string", "bytes")),
        "only integers, byte buffers, and strings can be formatted as hex",
    ),
    "o": (frozenset(("int", "uint")), "octal clause can only be used on integers"),
}


class Clause:
    """One `%...` of a format string, or the text before the next one."""

    __slots__ = ("precision", "text", "verb")

    def __init__(self, text: str, verb: str = "", precision: int | None = None) -> None:
        self.text = text
        self.verb = verb
        self.precision = precision


def clauses(pattern: str) -> Iterator[Clause]:
    """Takes a format string apart."""
    position = 0
    while position < len(pattern):
        mark = pattern.find("%", position)
        if mark < 0:
            yield Clause(pattern[position:])
            return
        if mark > position:
            yield Clause(pattern[position:mark])
        if pattern.startswith("%%", mark):
            yield Clause("%")
            position = mark + 2
            continue
        precision, position = _precision(pattern, mark + 1)
        verb = pattern[position : position + 1]
        if not verb:
            raise EvaluationError("unexpected end of string")
        if verb.lower() not in CLAUSES or (verb.isupper() and verb != "X"):
            raise EvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')
        yield Clause("", verb, precision)
        position += 1


def _precision(pattern: str, position: int) -> tuple[int | None, int]:
    if not pattern.startswith(".", position):
        return None, position
    start = position = position + 1
    while position < len(pattern) and pattern[position] in "0123456789":
        position += 1
    digits = pattern[start:position]
    if not digits or len(digits) > 4 or int(digits) > MAX_PRECISION:
        raise EvaluationError("could not parse formatting clause: error while parsing precision")
    return int(digits), position


def format_string(pattern: str, args: list[Any]) -> str:
    parts: list[str] = []
    used = 0
    for clause in clauses(pattern):
        if not clause.verb:
            parts.append(clause.text)
            continue
        if used >= len(args):
            raise EvaluationError(f"index {used} out of range")
        parts.append(_render(clause, args[used]))
        used += 1
    return "".join(parts)


def _render(clause: Clause, value: Any) -> str:
    kind = type_of_value(value).kind
    verb = clause.verb.lower()
    accepted, complaint = CLAUSES[verb]
    if kind not in accepted or (kind == "string" and verb in "fe" and value not in _SPECIAL_DOUBLES):
        raise EvaluationError(f"error during formatting: {complaint}, was given {type_of_value(value).name}")
    return _VERBS[verb](value, clause)


def _string(value: Any, clause: Clause) -> str:
    if value is None:
        return "null"
    if isinstance(value, (list, dict, ObjectValue)):
        return _nested(value)
    return to_string(value)


def _nested(value: Any) -> str:
    """A value inside a list or a map: written as it would be in an expression."""
    kind = type_of_value(value).kind
    if kind == "list":
        return f"[{', '.join(_nested(item) for item in iterate(value))}]"
    if kind == "map":
        pairs = sorted((_nested(key), _nested(item)) for key, item in iterate_pairs(value))
        return "{" + ", ".join(f"{key}:{item}" for key, item in pairs) + "}"
    if isinstance(value, Timestamp):
        return f'timestamp("{clock.format_timestamp(value)}")'
    if isinstance(value, Duration):
        return f'duration("{clock.format_duration(value)}")'
    if isinstance(value, float):
        return f"{value:.6f}" if math.isfinite(value) else f'"{double_to_string(value)}"'
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return "b" + json.dumps(to_string(value), ensure_ascii=False)
    return _string(value, Clause(""))


def _decimal(value: Any, clause: Clause) -> str:
    return str(int(value))


def _double(value: Any) -> float:
    return _SPECIAL_DOUBLES[value] if isinstance(value, str) else float(value)


def _fixed(value: Any, clause: Clause) -> str:
    number = _double(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "∞" if number > 0 else "-∞"
    precision = DEFAULT_PRECISION if clause.precision is None else clause.precision
    return f"{number:,.{precision}f}"


def _scientific(value: Any, clause: Clause) -> str:
    number = _double(value)
    if not math.isfinite(number):
        return _fixed(value, clause)
    precision = DEFAULT_PRECISION if clause.precision is None else clause.precision
    mantissa, _, exponent = f"{number:.{precision}e}".partition("e")
    # at least two digits of exponent, raised, without a plus
    power = int(exponent)
    raised = f"{'-' if power < 0 else ''}{abs(power):02d}".translate(_SUPERSCRIPT)
    return f"{mantissa}×10{raised}"


def _binary(value: Any, clause: Clause) -> str:
    return f"{int(value):b}"


def _hex(value: Any, clause: Clause) -> str:
    if isinstance(value, (int, Uint)):
        text = f"{int(value):x}"
    else:
        text = (value.encode() if isinstance(value, str) else value).hex()
    return text.upper() if clause.verb == "X" else text


def _octal(value: Any, clause: Clause) -> str:
    return f"{int(value):o}"


_VERBS: Final[dict[str, Callable[[Any, Clause], str]]] = {
    "s": _string,
    "d": _decimal,
    "f": _fixed,
    "e": _scientific,
    "b": _binary,
    "x": _hex,
    "o": _octal,
}
