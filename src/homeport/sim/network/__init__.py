"""The simulated network: who holds which address, who can reach whom, and how loopback stands in for all of it.

Nothing here ever dials an address of a manifest. `Network` decides who would answer there; the bytes then flow over
loopback. Programs of others come in through `Proxy`, a CONNECT proxy that serves the same book.
"""

from __future__ import annotations

from homeport.sim.network.address import Exhausted, Pool, Taken, split_endpoint
from homeport.sim.network.balancer import Balancer
from homeport.sim.network.book import Conflict, Host, Network
from homeport.sim.network.proxy import Proxy
from homeport.sim.network.service import Loopback, Service

__all__ = [
    "Balancer",
    "Conflict",
    "Exhausted",
    "Host",
    "Loopback",
    "Network",
    "Pool",
    "Proxy",
    "Service",
    "Taken",
    "split_endpoint",
]
