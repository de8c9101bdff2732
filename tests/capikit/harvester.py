"""A simulated Harvester on a network of simulated machines."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from capikit.world import Site
from homeport.apiserver.auth.authn import authenticated
from homeport.apiserver.request import User
from homeport.runtime.clock import SystemClock
from homeport.runtime.testing import shared_pki
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.pace import INSTANT
from homeport.sim.network import Loopback
from scenario.harvester import manifest
from scenario.harvester.site import TOKEN, world


@asynccontextmanager
async def harvester_beside(site: Site) -> AsyncIterator[dict[str, Any]]:
    """Gives the Secret with its kubeconfig."""
    made = await Harvester.open(
        shared_pki(), world=world(), clock=SystemClock(), pace=INSTANT, guests=site.fleet, network=site.network
    )
    try:
        url = await made.serve()
        user = authenticated(User("harvester-admin", ("system:masters",), "1"))
        made.server.authenticator._static = {hashlib.sha256(TOKEN.encode()).digest(): user}
        port = int(url.rpartition(":")[2])
        site.network.attach("harvester", ["10.20.0.10"]).listen(6443, Loopback("127.0.0.1", port))
        yield manifest.secret(manifest.kubeconfig(made.server.pki.ca_pem, TOKEN))
    finally:
        await made.close()
