"""A plugin for tests: the process takes itself for a version of the future."""

from __future__ import annotations

from homeport.app.kubernetes import version
from homeport.runtime.manager import Manager

VERSION = "99.0.0"


def install(manager: Manager) -> None:
    del manager
    version.__version__ = VERSION  # type: ignore[attr-defined]
