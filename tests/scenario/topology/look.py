"""One Cluster from a class, changed by a user and looked at from outside."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any

from capikit import blueprint, generic
from capikit.blueprint import CONFIG_TEMPLATE, steady
from capikit.harness import NAMESPACE, Harness
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineSet
from homeport.client.protocol import Query

QUIET = 150.0  # no write for so long: the end
NAME = "one"


class Topologies:
    """The class `plain` and the Cluster `one`. While it is entered, it notes which Machines come to be."""

    def __init__(self, h: Harness) -> None:
        self.h = h

    async def __aenter__(self) -> Topologies:
        await blueprint.have_class(self.h)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    async def make(
        self, control_planes: int, workers: Mapping[str, int], version: str = "v1.30.0", **more: Any
    ) -> None:
        await self.h.plane.have(blueprint.topology(NAME, control_planes, dict(workers), version, **more))
        await steady(self.h, NAME, control_planes, workers, version)

    def worker(self, name: str, replicas: int, **more: Any) -> dict[str, Any]:
        return blueprint.deployment(name, replicas, **more)

    async def topology(self, body: Mapping[str, Any], **metadata: Any) -> Any:
        """The user changes spec.topology."""
        changed = {"metadata": metadata} if metadata else {}
        return await self.h.patch(Cluster, NAME, {**changed, "spec": {"topology": body}})

    async def variables(self, **values: Any) -> None:
        await self.topology({"variables": [{"name": k, "value": v} for k, v in values.items()]})

    async def reconciled(self) -> None:
        await self.h.until(Cluster, NAME, blueprint.reconciled, what="its topology being reconciled")

    async def quiet(self) -> int:
        return await self.h.plane.settle(quiet=QUIET)

    async def templates(self) -> list[str]:
        """Names of all templates that belong to the Cluster."""
        query = Query(namespace=NAMESPACE, labels=f"{blueprint.CLUSTER_LABEL}={NAME}")
        found = [await self.h.client.list(kind, query) for kind in (generic.TEMPLATE, CONFIG_TEMPLATE)]
        return sorted(each.name for listed in found for each in listed.items)

    async def used_templates(self) -> list[str]:
        """Names of all templates that something refers to: MachineSets, old ones among them, and the control plane."""
        query = Query(namespace=NAMESPACE, labels=f"{blueprint.CLUSTER_LABEL}={NAME}")
        found: set[tuple[str, str]] = set()
        for each in (await self.h.client.list(MachineSet, query)).items:
            spec = each.spec.template.spec
            for ref in (spec.infrastructure_ref, spec.bootstrap.config_ref):
                assert ref is not None
                found.add((ref.kind, ref.name))
        ref = (await blueprint.control_plane(self.h, NAME)).spec.machine_template.spec.infrastructure_ref
        assert ref is not None
        return sorted(name for _, name in {*found, (ref.kind, ref.name)})

    async def machines(self) -> list[str]:
        found = await self.h.client.list(Machine, Query(namespace=NAMESPACE))
        return sorted(each.metadata.name for each in found.items)
