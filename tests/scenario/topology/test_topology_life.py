"""A Cluster from its class: it comes up, is scaled, changed and upgraded, and goes without a trace."""

from __future__ import annotations

from typing import Any

from capikit import blueprint, generic
from capikit.harness import NAMESPACE, Harness, harness
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment, MachineHealthCheck, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.client.protocol import Key, Query
from homeport.runtime.testing import virtual

MADE = (
    Cluster, MachineDeployment, MachineSet, MachineHealthCheck, KubeadmControlPlane,
    generic.CLUSTER, generic.MACHINE, generic.TEMPLATE, blueprint.CONFIG_TEMPLATE,
)  # fmt: skip


async def change(h: Harness, name: str, edit: Any) -> Cluster:
    """Changes the topology as somebody with an editor does, and waits until it was looked at."""
    cluster = await h.client.get(Cluster.__resource__, Key(NAMESPACE, name))
    topology = cluster["spec"]["topology"]
    edit(topology)
    await h.patch(Cluster, name, {"spec": {"topology": topology}})
    found: Cluster = await h.until(Cluster, name, blueprint.reconciled, 3600.0, what="its topology being reconciled")
    return found


async def copies(h: Harness, kind: Any) -> list[str]:
    found = await h.client.list(kind, Query(namespace=NAMESPACE, labels="topology.cluster.x-k8s.io/owned"))
    return sorted(each.name for each in found.items)


@virtual
async def test_a_cluster_lives_and_dies_by_its_class() -> None:
    async with harness() as h:
        await blueprint.have_class(h)
        await h.plane.have(blueprint.topology("c", 3, {"md": 2}))
        await blueprint.steady(h, "c", 3, {"md": 2})
        await h.available("c")
        first = set(h.alive().values())

        await change(h, "c", lambda t: t["workers"]["machineDeployments"][0].update(replicas=3))
        await blueprint.steady(h, "c", 3, {"md": 3})
        assert first < set(h.alive().values()), "scaling replaced machines"

        old = await blueprint.machines(h, "c", "md")
        planes = await blueprint.machines(h, "c")
        await change(h, "c", _more_memory)
        await blueprint.steady(h, "c", 3, {"md": 3})
        await h.plane.settle()
        assert not set(old) & set(await blueprint.machines(h, "c", "md")), "machines with the old size are left"
        assert set(planes) == set(await blueprint.machines(h, "c")), "control planes have no such size"
        md = (await blueprint.deployments(h, "c"))["md"]
        assert "8G" in str((await blueprint.infra_template(h, md))["note"]).upper()

        await change(h, "c", lambda t: t.update(version="v1.31.0"))
        await blueprint.steady(h, "c", 3, {"md": 3}, "v1.31.0")
        await h.available("c")
        revision = await h.plane.settle(60.0)
        assert len(await copies(h, generic.TEMPLATE)) == 2, "templates that nobody uses are left"
        assert len(await copies(h, blueprint.CONFIG_TEMPLATE)) == 1

        await h.restart()
        assert await h.plane.settle(60.0) == revision, "a controller that starts anew has nothing to write"

        await h.delete(Cluster, "c")
        await h.gone(Cluster, "c", 3600.0)
        await h.plane.settle(30.0)
        for kind in MADE:
            assert await copies(h, kind if not hasattr(kind, "__resource__") else kind.__resource__) == []
        assert h.alive() == {}


def _more_memory(topology: dict[str, Any]) -> None:
    values = {each["name"]: each["value"] for each in topology.get("variables") or []}
    values["machine"] = {**(values.get("machine") or {}), "memory": "8Gi"}
    topology["variables"] = [{"name": name, "value": value} for name, value in values.items()]
