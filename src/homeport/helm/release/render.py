"""Charts rendered for a cluster: what it serves, and what templates look up there.

Templates do no I/O. What they look up and is not known yet is noted, read from the cluster, and the chart is rendered
again, until nothing new is asked for.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any, Final

from homeport.api.meta import Unstructured
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.client.restmapper import RestMapper
from homeport.helm.errors import ReleaseError
from homeport.helm.release.desired import Desired, Revision
from homeport.machinery.chart import (
    Capabilities,
    Chart,
    ChartError,
    Manifest,
    ReleaseInfo,
    Rendered,
    crds_of,
    load_chart,
    render,
)

Json = dict[str, Any]
Asked = tuple[str, str, str, str]  # apiVersion, kind, namespace, name

_MOST_ROUNDS: Final = 10


async def render_chart(client: Client, desired: Desired, revision: Revision) -> Rendered:
    """Raises ReleaseError."""
    mapper = RestMapper(client)
    served = await mapper.served()
    capabilities = Capabilities(served.version, tuple(sorted(served.api_versions)))
    chart = await asyncio.to_thread(_loaded, desired)
    release = ReleaseInfo(
        desired.name,
        desired.namespace,
        revision.number,
        revision.install,
        not revision.install,
        datetime.fromtimestamp(revision.now, UTC),
        revision.seed,
    )
    known: dict[Asked, Json] = {}
    for _ in range(_MOST_ROUNDS):
        asked: list[Asked] = []
        try:
            # Up to a second of work, and a hostile chart takes more: others go on meanwhile.
            lookup = _Lookup(known, asked)
            rendered = await asyncio.to_thread(render, chart, desired.values, release, capabilities, lookup)
        except ChartError as error:
            if not asked:
                raise _refused(desired, error) from None
        else:
            if not asked:
                return rendered
        for each in asked:
            known[each] = await _read(client, mapper, each)
    raise ReleaseError(
        f"release {desired.namespace}/{desired.name}: its templates still look up new objects after {_MOST_ROUNDS} "
        "rounds: what they look up must not depend on random values"
    )


async def definitions(desired: Desired) -> tuple[Manifest, ...]:
    """The chart's own CustomResourceDefinitions. Raises ReleaseError."""
    return await asyncio.to_thread(_definitions, desired)


def _definitions(desired: Desired) -> tuple[Manifest, ...]:
    try:
        return crds_of(_loaded(desired), desired.values)
    except ChartError as error:
        raise _refused(desired, error) from None


def _loaded(desired: Desired) -> Chart:
    try:
        return load_chart(desired.files)
    except ChartError as error:
        raise _refused(desired, error) from None


def _refused(desired: Desired, error: ChartError) -> ReleaseError:
    return ReleaseError(f"release {desired.namespace}/{desired.name}: {error}")


class _Lookup:
    """What templates call: the known object, or nothing for now and a note that it was asked for."""

    def __init__(self, known: dict[Asked, Json], asked: list[Asked]) -> None:
        self._known = known
        self._asked = asked

    def __call__(self, api_version: str, kind: str, namespace: str, name: str) -> Json:
        key = (api_version, kind, namespace, name)
        if key not in self._known and key not in self._asked:
            self._asked.append(key)
        return self._known.get(key, {})


async def _read(client: Client, mapper: RestMapper, asked: Asked) -> Json:
    """Nothing for what does not exist; for an empty name, the list of all."""
    api_version, kind, namespace, name = asked
    try:
        resource = await mapper.find(api_version, kind)
        if name:
            return dict(await client.get(resource, Key(namespace if resource.namespaced else "", name)))
        page = await client.list(resource, Query(namespace=namespace if resource.namespaced else ""))
    except NotFound:
        return {}
    items = [_item(each, api_version, kind) for each in page.items]
    return {"apiVersion": api_version, "kind": f"{kind}List", "metadata": {}, "items": items}


def _item(obj: Unstructured, api_version: str, kind: str) -> Json:
    return {"apiVersion": api_version, "kind": kind, **obj}
