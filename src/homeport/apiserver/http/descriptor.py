"""How many connections this process can have open."""

from __future__ import annotations

import contextlib
import resource

# For the database, logs, and connections to hypervisors and workload clusters.
RESERVED = 256
_ENOUGH = 1 << 20  # more than this only makes other programs slow that close whatever could be open


def raise_limit() -> int:
    """Lets the process open as many files as the system allows it to; gives that number.

    The soft limit that a process starts with is often 1024, for the sake of programs that use select(). We don't.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # some systems promise more than they give
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft


def most_connections(files: int) -> int:
    return max(files - RESERVED, files // 2)
