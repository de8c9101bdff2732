"""CustomResourceDefinitions made and installed: on any API server, until their kinds are served."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from homeport.api.meta import Resource
from homeport.client.protocol import Client, Query

CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
WAIT_SECONDS = 30.0
# On definitions of kinds that another project owns: where that project has installed its own, ours is left out.
SHARED_LABEL = "homeport.dev/shared-definition"


def definition(resource: Resource, *, schema: Mapping[str, Any] | None = None, status: bool = True) -> dict[str, Any]:
    """A CustomResourceDefinition for a kind; without a schema it takes everything."""
    version: dict[str, Any] = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema or {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    if status:
        version["subresources"] = {"status": {}}
    return {
        **CRD.type_meta,
        "metadata": {"name": resource.qualified},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "names": {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind},
            "versions": [version],
        },
    }


async def establish(client: Client, *definitions: Mapping[str, Any], timeout: float = WAIT_SECONDS) -> None:
    """Creates CustomResourceDefinitions, on whatever server, and returns when their kinds are served."""
    for body in definitions:
        made = await client.create(body, kind=CRD)
        query = Query(fields=f"metadata.name={made.name}", resource_version=made.resource_version)
        if established(made):
            continue
        async with asyncio.timeout(timeout), client.watch(CRD, query) as events:
            async for event in events:
                if established(event.object):
                    break


def established(obj: Mapping[str, Any]) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)
