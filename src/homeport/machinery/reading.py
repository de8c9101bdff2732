"""Whether a text can be read, asked of the parser itself: what is valid is said in one place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def reads(parse: Callable[[T], object], value: T, refusal: type[Exception] = ValueError) -> bool:
    """Whether `parse` accepts the value. `refusal`: the exception with which it refuses one."""
    try:
        parse(value)
    except refusal:
        return False
    return True
