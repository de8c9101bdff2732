"""Paths inside volumes and profiles."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.apiserver.kinds.check import invalid
from homeport.client.errors import Cause


def no_backsteps(field: str, path: str) -> Iterator[Cause]:
    if ".." in path.split("/"):
        yield invalid(field, path, "must not contain '..'")


def descending(field: str, path: str) -> Iterator[Cause]:
    """A relative path that stays below where it starts."""
    if path.startswith("/"):
        yield invalid(field, path, "must be a relative path")
    yield from no_backsteps(field, path)


def unreserved(field: str, path: str) -> Iterator[Cause]:
    """And does not begin as the names that kubelets use themselves."""
    yield from descending(field, path)
    if path.startswith("..") and not path.startswith("../"):
        yield invalid(field, path, "must not start with '..'")
