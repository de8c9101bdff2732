"""Clusters come and go for a long time: what the process keeps of them has a bound."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter

from homeport.api.cluster.v1beta2 import Cluster
from homeport.runtime.testing import virtual
from scenario.nutanix import manifest
from scenario.nutanix.site import Site, nutanix_site

# Libraries' things that hold sockets, threads or keys besides ours.
_WATCHED = ("homeport.", "aiohttp.", "ssl.", "_ssl.", "asyncio.", "_asyncio.", "uvloop.", "cryptography.")
_REST_SECONDS = 2 * 3600.0  # longer than anything is remembered for its age

# Links that ended are swept out now and then; shapes of fields are made when they are first met.
_BOUNDED = {"homeport.sim.network.book._Link", "homeport.machinery.apply.shape.Shape"}


async def churn(site: Site, *names: str) -> None:
    for name in names:
        documents = manifest.cluster_objects(name, 1, 1)
        await site.have(*documents)
        await site.running(name, 1, 1)
        await site.delete(Cluster, name)
        await site.gone(Cluster, name)
        for document in documents:
            await site.delete(site.plane.resource(document), document["metadata"]["name"])
    await asyncio.sleep(_REST_SECONDS)


def census() -> Counter[str]:
    """How many objects there are of each type that is worth to be counted."""
    gc.collect()
    named = (f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.get_objects())
    return Counter(name for name in named if name.startswith(_WATCHED))


@virtual
async def test_a_process_holds_as_much_after_many_rounds_as_after_a_few() -> None:
    async with nutanix_site() as site:
        for name in ("a0", "a1", "a2"):  # each forgets what the one before left behind
            await churn(site, name)
        before = census()
        await churn(site, "b0", "b1", "b2")
        for name in ("c0", "c1"):
            await churn(site, name)
        after = census()
        grown = {
            name: (before[name], number)
            for name, number in after.items()
            if number > before[name] and name not in _BOUNDED
        }
        assert not grown, "\n".join(f"{name}: {numbers}" for name, numbers in sorted(grown.items()))
