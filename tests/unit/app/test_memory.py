"""Memory that a process keeps, measured in processes of their own: the settings last as long as the process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_GLIBC = "glibc" in str(getattr(os, "confstr", str)("CS_GNU_LIBC_VERSION"))
pytestmark = pytest.mark.skipif(not _GLIBC or sys.platform != "linux", reason="glibc only")

# How many of 400 buffers of TLS connections are in the heap, after earlier connections have ended.
_BUFFERS = """
import ctypes, sys
from homeport.app.memory import tune_allocator
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes = [ctypes.c_void_p]
if sys.argv[1] == "tuned":
    assert tune_allocator()
for each in [libc.malloc(256 * 1024) for _ in range(3)]:
    libc.free(each)
found = [libc.malloc(256 * 1024) for _ in range(400)]
(heap,) = [line.split()[0] for line in open("/proc/self/maps") if line.rstrip().endswith("[heap]")]
first, last = (int(each, 16) for each in heap.split("-"))
print(sum(first <= each < last for each in found))
"""


def said(script: str, *arguments: str) -> str:
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()


def test_buffers_of_connections_are_kept_out_of_the_heap() -> None:
    assert int(said(_BUFFERS, "plain")) > 300
    assert int(said(_BUFFERS, "tuned")) < 50


def test_free_memory_goes_back_to_the_system() -> None:
    assert said("from homeport.app.memory import release_memory; print(release_memory())") == "True"


# Whether a cycle that was made while the process runs is gone after a minute without other work.
_CYCLE = """
import asyncio, weakref
from homeport.app.memory import frugal
from homeport.runtime.clock import run_virtual

class Connection:
    pass

async def rest():
    async with frugal():
        made = Connection()
        made.itself = made
        freed = weakref.ref(made)
        del made
        assert freed() is not None
        await asyncio.sleep(61)
        print(freed() is None)

run_virtual(rest())
"""


def test_a_process_at_rest_frees_what_refers_to_itself() -> None:
    assert said(_CYCLE) == "True"
