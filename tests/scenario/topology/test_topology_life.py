"""A Cluster from its class: it comes up, is scaled, changed and upgraded, and goes without a trace."""

from __future__ import annotations

from typing import Any

from capikit import blueprint, generic
from capikit.yard import NAMESPACE, Yard, yard
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment, MachineHealthCheck, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Key, Query
from homeport.runtime.testing import virtual

MADE = (
    Cluster, MachineDeployment, MachineSet, MachineHealthCheck, KubeadmControlPlane,
    generic.CLUSTER, generic.MACHINE, generic.TEMPLATE, blueprint.CONFIG_TEMPLATE,
)  # fmt: skip


async def change(y: Yard, name: str, edit: Any) -> Cluster:
    """Changes the topology as somebody with an editor does, and waits until it was looked at."""
    cluster = await y.client.get(Cluster.__resource__, Key(NAMESPACE, name))
    topology = cluster["spec"]["topology"]
    edit(topology)
    await y.patch(Cluster, name, {"spec": {"topology": topology}})
    found: Cluster = await y.until(Cluster, name, blueprint.reconciled, 3600.0, what="its topology being reconciled")
    return found


async def copies(y: Yard, kind: Any) -> list[str]:
    found = await y.client.list(kind, Query(namespace=NAMESPACE, labels="topology.cluster.x-k8s.io/owned"))
    return sorted(each.name for each in found.items)


@virtual
async def test_a_cluster_lives_and_dies_by_its_class() -> None:
    async with yard() as y:
        await blueprint.have_class(y)
        await y.plane.have(blueprint.topology("c", 3, {"md": 2}))
        await blueprint.steady(y, "c", 3, {"md": 2})
        await y.available("c")
        first = set(y.alive().values())

        await change(y, "c", lambda t: t["workers"]["machineDeployments"][0].update(replicas=3))
        await blueprint.steady(y, "c", 3, {"md": 3})
        assert first < set(y.alive().values()), "scaling replaced machines"

        old = await blueprint.machines(y, "c", "md")
        planes = await blueprint.machines(y, "c")
        await change(y, "c", _more_memory)
        await blueprint.steady(y, "c", 3, {"md": 3})
        await y.plane.settle()
        assert not set(old) & set(await blueprint.machines(y, "c", "md")), "machines with the old size are left"
        assert set(planes) == set(await blueprint.machines(y, "c")), "control planes have no such size"
        md = (await blueprint.deployments(y, "c"))["md"]
        assert "8G" in str((await blueprint.infra_template(y, md))["note"]).upper()

        await change(y, "c", lambda t: t.update(version="v1.31.0"))
        await blueprint.steady(y, "c", 3, {"md": 3}, "v1.31.0")
        await y.available("c")
        revision = await y.plane.settle(60.0)
        assert len(await copies(y, generic.TEMPLATE)) == 2, "templates that nobody uses are left"
        assert len(await copies(y, blueprint.CONFIG_TEMPLATE)) == 1

        await y.restart()
        assert await y.plane.settle(60.0) == revision, "a controller that starts anew has nothing to write"

        await y.delete(Cluster, "c")
        await y.gone(Cluster, "c", 3600.0)
        await y.plane.settle(30.0)
        for kind in MADE:
            assert await copies(y, kind if not hasattr(kind, "__resource__") else kind.__resource__) == []
        assert y.alive() == {}


def _more_memory(topology: dict[str, Any]) -> None:
    values = {each["name"]: each["value"] for each in topology.get("variables") or []}
    values["machine"] = {**(values.get("machine") or {}), "memory": "8Gi"}
    topology["variables"] = [{"name": name, "value": value} for name, value in values.items()]
