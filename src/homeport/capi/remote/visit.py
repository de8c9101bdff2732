"""A workload cluster that is asked once in a while: no connection to it need exist in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from homeport.capi.capi import Capi
from homeport.capi.remote import kubeconfig
from homeport.capi.remote.pki import SECRET
from homeport.client.protocol import Client, Key


@asynccontextmanager
async def connected(capi: Capi, client: Client, cluster: Key) -> AsyncIterator[Client]:
    """The connection of this process, if it has one; else one that lasts as long as it is used.

    Raises ApiError or ConfigError.
    """
    remote = capi.remotes.get(cluster)
    if remote is not None:
        yield remote.client
        return
    secret = await client.get(SECRET, kubeconfig.secret_key(cluster))
    made = capi.connect(kubeconfig.value(secret), capi.proxy)
    try:
        yield made
    finally:
        await made.close()
