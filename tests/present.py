"""For fields that may be None: a test that expects a value says so, and fails there when none is found."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    assert value is not None, "expected a value, found None"
    return value
