"""The cloud controller manager on a manager."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from homeport.capi.cloud import Cloud
from homeport.ccm import balancer, node, service
from homeport.ccm.service import Pool
from homeport.runtime.manager import Manager


def install(manager: Manager, cloud: Cloud, pools: Sequence[Pool] = (), pace: node.Pace | None = None) -> None:
    """Pools come before the cloud's load balancers. Without both, Services of type LoadBalancer are left to others.

    The cloud is closed when the manager ends.
    """
    node.install(manager, cloud, pace)
    if pools:
        service.install(manager, pools)
    elif cloud.balancer is not None:
        balancer.install(manager, cloud.balancer)
    manager.job(lambda: _until_the_end(cloud))


async def _until_the_end(cloud: Cloud) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await cloud.close()
