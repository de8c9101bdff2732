"""The process of one errand: reads an Order from standard input, and writes an Outcome to standard output."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import structlog

from homeport.client.errors import ApiError
from homeport.client.wire.quick import import_aiohttp
from homeport.dashboard.errand.order import Order, Outcome

_MOST_MEMORY = 3 * 1024**3
_NICE = 5  # the controllers of the plane come first


def main() -> None:
    order = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=Order)
    os.nice(_NICE)
    with contextlib.suppress(ValueError, OSError):  # a lower limit is set already
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    # What the rehearsed controllers log is not about the plane.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    import_aiohttp()
    sys.stdout.buffer.write(msgspec.msgpack.encode(do(order)))


def do(order: Order) -> Outcome:
    from homeport.app.machine.record import NoLog
    from homeport.app.rehearsal.copy import NotReadable
    from homeport.app.rehearsal.preflight import Refused
    from homeport.app.tree.read import NoCluster
    from homeport.dashboard.errand.plan import TooLarge
    from homeport.infra.error import ProviderError
    from homeport.machinery.yaml import YamlError

    try:
        return Outcome(result=msgspec.to_builtins(_ERRANDS[order.errand](order)))
    except (ApiError, NotReadable, Refused, TooLarge, ProviderError, YamlError, NoCluster, NoLog) as error:
        return Outcome(problem=str(error))


def _plan(order: Order) -> Any:
    from homeport.dashboard.errand.plan import plan

    return plan(order)


def with_client(order: Order, work: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
    """Does the work with the user's own connection."""
    from homeport.client.http import HttpClient

    async def call() -> Any:
        async with HttpClient(order.config) as client:
            return await work(client)

    return asyncio.run(call())


def _logs(order: Order) -> Any:
    from homeport.dashboard.errand.record import logged

    return with_client(order, lambda client: logged(client, order.options))


_ERRANDS: dict[str, Callable[[Order], Any]] = {"plan": _plan, "logs": _logs}

if __name__ == "__main__":
    main()
