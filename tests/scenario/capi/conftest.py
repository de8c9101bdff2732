"""What every scenario must leave in order, and certificates of another time."""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
from collections.abc import Iterator
from typing import Any

import pytest

_NO_CHECK_TIME = 0x200000  # X509_V_FLAG_NO_CHECK_TIME of OpenSSL


@pytest.fixture(autouse=True)
def certificates_of_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """OpenSSL knows no time but the real one, where certificates made in virtual time may be from the future."""
    wrap = ssl.SSLContext.wrap_bio

    def wrap_at_any_time(context: ssl.SSLContext, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        context.verify_flags = ssl.VerifyFlags(context.verify_flags | _NO_CHECK_TIME)
        return wrap(context, *args, **kwargs)

    monkeypatch.setattr(ssl.SSLContext, "wrap_bio", wrap_at_any_time)


@pytest.fixture
def idle_connections_age(monkeypatch: pytest.MonkeyPatch) -> None:
    """aiohttp closes idle connections by the real time: in virtual time they would stay for ever."""
    monkeypatch.setattr("aiohttp.connector.monotonic", lambda: asyncio.get_running_loop().time())


@pytest.fixture(autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Tasks that were forgotten, and failures that nobody looked at, are told to this logger alone."""
    said: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger("asyncio")
    logger.addHandler(handler)
    try:
        yield
        gc.collect()
    finally:
        logger.removeHandler(handler)
    assert not said, "\n".join(said[:5])
