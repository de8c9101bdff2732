"""Virtual time stands still while a store writes to disk: otherwise a slow disk would make minutes pass."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

from homeport.runtime.clock import VirtualLoop
from homeport.store.committer import Committer

_committers: weakref.WeakKeyDictionary[Committer, asyncio.AbstractEventLoop] = weakref.WeakKeyDictionary()


def wait_for_disks() -> None:
    """In every virtual event loop from now on."""
    begin = Committer.__init__

    def remember(self: Committer, make: Any, loop: asyncio.AbstractEventLoop, *others: Any) -> None:
        begin(self, make, loop, *others)
        _committers[self] = loop
        if isinstance(loop, VirtualLoop):
            loop.busy = lambda: _writing(loop)

    Committer.__init__ = remember  # type: ignore[method-assign,assignment]


def _writing(loop: VirtualLoop) -> bool:
    return any(each.busy for each, its in list(_committers.items()) if its is loop)
