"""The key that the reconcile we are called in is about, and whether it is still ours."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

from homeport.client.protocol import Key
from homeport.runtime.lease import LeaseLost

_in_work: ContextVar[Key | None] = ContextVar("key in work", default=None)
_still_ours: ContextVar[Callable[[], bool] | None] = ContextVar("whether it is still ours", default=None)


def key_in_work() -> Key | None:
    """None outside of a reconcile."""
    return _in_work.get()


def check_shard() -> None:
    """Raises LeaseLost in a reconcile whose object has meanwhile got into the shard of another replica."""
    ours = _still_ours.get()
    if ours is not None and not ours():
        raise LeaseLost(f"{_in_work.get()} now belongs to another replica: its cluster changed")


@contextlib.contextmanager
def working_on(key: Key, ours: Callable[[], bool] | None) -> Iterator[None]:
    """`ours` None: no other replica can take the key over."""
    token, share = _in_work.set(key), _still_ours.set(ours)
    try:
        yield
    finally:
        _in_work.reset(token)
        _still_ours.reset(share)
