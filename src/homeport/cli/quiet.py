"""Commands that tell in sentences what they do, or run controllers on a copy of the objects: most of the log of that is
not for their users."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_log(level: int = logging.CRITICAL) -> Iterator[None]:
    """Only lines of this level and above; afterwards as before."""
    import structlog

    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(level))
    try:
        yield
    finally:
        structlog.configure(**before)
