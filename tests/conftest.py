"""Markers of the whole test tree, and the guard that keeps its sockets on loopback."""

from __future__ import annotations

import pytest

from loopback import stay_on_loopback

__all__ = ["stay_on_loopback"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "conformance: one client suite on several API servers, a real one among them")
    config.addinivalue_line("markers", "e2e: drives Homeport with programs that others wrote")
