"""Imports aiohttp without what takes longest in it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_WHERE = ("SSL_CERT_FILE", "SSL_CERT_DIR")


def import_aiohttp() -> None:
    """aiohttp reads the system's certificate authorities while it is imported, in more time than all else together.

    Our clients bring contexts of their own (tls.py); the one that aiohttp keeps for others trusts nobody after
    this. Only the first import counts: for the start of a program.
    """
    if "aiohttp" not in sys.modules:
        with _no_authorities():
            import aiohttp  # noqa: F401


@contextmanager
def _no_authorities() -> Iterator[None]:
    before = {name: os.environ.get(name) for name in _WHERE}
    os.environ.update(dict.fromkeys(_WHERE, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
