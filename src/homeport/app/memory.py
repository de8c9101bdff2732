"""Memory of a process that runs for months and holds thousands of connections."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import sys
from collections.abc import AsyncIterator

_RELEASE_SECONDS = 60.0
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt, in malloc.h
_LARGE_BYTES = 128 * 1024
_SPARE_BYTES = 32 * 1024 * 1024


@contextlib.asynccontextmanager
async def frugal() -> AsyncIterator[None]:
    """For the time of the work, once everything is imported: wastes little, and gives free memory back."""
    tune_allocator()
    tune_garbage_collection()
    releasing = asyncio.create_task(_release_regularly(), name="memory")
    try:
        yield
    finally:
        releasing.cancel()
        await asyncio.gather(releasing, return_exceptions=True)


def tune_garbage_collection() -> None:
    """A request makes thousands of small objects that die by themselves; looking for cycles among them every 700
    allocations took a tenth of the processor. What is here now stays for good and need not be looked at again."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


def tune_allocator() -> bool:
    """Every TLS connection has a buffer of 256 KiB, of which a watch uses a few pages. In memory of its own from the
    system the rest costs nothing. Left alone, glibc puts such blocks into the heap as soon as the first of them was
    freed, where they take pages that were used before. False: the C library has no such setting."""
    call = _libc("mallopt")
    # Setting the first makes the second small, which would return memory to the system and fetch it all the time.
    return call is not None and bool(call(_M_MMAP_THRESHOLD, _LARGE_BYTES) and call(_M_TRIM_THRESHOLD, _SPARE_BYTES))


def release_memory() -> bool:
    """Give free memory back to the system where the C library keeps it (glibc). False: there is no such call."""
    call = _libc("malloc_trim")
    if call is None:
        return False
    call(ctypes.c_size_t(0))
    return True


def _libc(name: str) -> ctypes._NamedFuncPointer | None:
    if sys.platform != "linux":
        return None
    try:
        found: ctypes._NamedFuncPointer = getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):
        return None
    return found


async def _release_regularly() -> None:
    while True:
        await asyncio.sleep(_RELEASE_SECONDS)
        # A process at rest makes so few objects that the collector would not start for hours: what was made for ended
        # connections, and refers to itself, would stay until then with all that libraries hold for it.
        gc.collect(0)
        # In a thread: with much to give back it takes some milliseconds.
        await asyncio.to_thread(release_memory)
