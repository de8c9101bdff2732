from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import Any

from homeport.api.meta import Resource
from homeport.builtin.install import install
from homeport.runtime.controller import Controller
from homeport.runtime.informer import Informer, metadata_only
from homeport.runtime.testing import Plane, plane, versions, virtual
from unit.runtime.runtime_sample import WIDGETS, Sizes, Widget, widget

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")


def everything(p: Plane) -> None:
    install(p.server, p.manager)
    controller = Controller("sizes", Widget, Sizes(p), resync=600.0, clock=p.clock)
    p.manager.add(controller.own(CONFIG_MAP))
    for each in p.manager.controllers:  # ten hours by default: the loops of the server are to resync, too
        each._resync = 600.0


@virtual
async def test_a_thousand_settled_objects_do_not_move_for_an_hour_resyncs_included() -> None:
    async with plane(everything, crds=[WIDGETS]) as p:
        await p.have(*(widget(f"w{n}", size=n) for n in range(1000)))
        await p.settle(quiet=120.0)
        before = versions(p)
        reconciles = p.manager.controllers[-1].metrics.counts.copy()
        await asyncio.sleep(3600.0)
        assert versions(p) == before
        after = p.manager.controllers[-1].metrics.counts
        assert after["done"] - reconciles["done"] >= 6 * 1000, "no resync took place: nothing was tested"
        assert after["error"] == after["conflict"] == 0


@virtual
async def test_a_cached_object_takes_less_than_ten_kibibytes() -> None:
    async with plane(crds=[WIDGETS]) as p:
        await p.have(*(widget(f"w{n}", size=n) for n in range(1000)))
        plain, metadata = Widget.__resource__, metadata_only(Widget.__resource__)
        informers: tuple[tuple[Informer[Any], int], ...] = (
            (Informer(p.client, Widget), 4096),
            (Informer(p.client, plain), 10240),
            (Informer(p.client, metadata), 4096),
        )
        for informer, limit in informers:
            gc.collect()
            tracemalloc.start()
            run = asyncio.create_task(informer.run())
            await informer.synced.wait()
            gc.collect()
            used = tracemalloc.get_traced_memory()[0] / 1000
            tracemalloc.stop()
            run.cancel()
            assert len(informer.cache) == 1000
            assert used < limit, f"{used:.0f} bytes"
