"""clusterctl's inventory on a plane: one Provider object for each upstream provider whose API the plane serves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from homeport.api.clusterctl.v1alpha3 import Provider
from homeport.api.meta import Resource
from homeport.capi.definition.inventory import NAMESPACE, UpstreamProvider, render_provider
from homeport.capi.version import is_valid, parse
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write

_NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
_WRITE = Write(field_manager="homeport")


async def publish_inventory(client: Client, providers: Iterable[UpstreamProvider]) -> None:
    """Lists what is missing and brings versions up, never down: who moves clusters here from a newer release than ours
    is held against may have raised one."""
    for provider in providers:
        try:
            found = await client.get(Provider, Key(NAMESPACE, provider.label))
        except NotFound:
            await _create(client, provider)
            continue
        if _is_older(found.version, provider.version):
            patch = MergePatch({"version": provider.version})
            await client.patch(Provider, Key(NAMESPACE, provider.label), patch, _WRITE)


async def _create(client: Client, provider: UpstreamProvider) -> None:
    """The namespace is only created if it is missing: who may create Providers need not have a right to namespaces."""
    body = render_provider(provider)
    try:
        await client.create(body, _WRITE, kind=Provider.__resource__)
    except NotFound:
        with contextlib.suppress(AlreadyExists):
            await client.create({"metadata": {"name": NAMESPACE}}, _WRITE, kind=_NAMESPACE)
        await client.create(body, _WRITE, kind=Provider.__resource__)


def _is_older(found: str, ours: str) -> bool:
    return not is_valid(found) or parse(found) < parse(ours)
