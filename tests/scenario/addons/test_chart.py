"""Charts of the catalogue in a simulated cluster: they become Ready in order, are repaired, upgraded and removed."""

from __future__ import annotations

from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch, Query
from homeport.runtime.testing import virtual
from scenario.addons.stage import CONFIG_MAP, DEPLOYMENT, SECRET, addon, cluster, exists, ready, stage
from scenario.capi.look import says, workload

DAEMON_SET = Resource("apps", "v1", "DaemonSet", "daemonsets")
POOL = Resource("metallb.io", "v1beta1", "IPAddressPool", "ipaddresspools")
CRD = Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False)
METALLB: dict[str, Any] = {"addon": "metallb", "parameters": {"addresses": ["10.0.0.240-10.0.0.250"]}}


def of_catalogue(name: str, **spec: Any) -> dict[str, Any]:
    return addon(name, **{"addon": name, **spec})


@virtual
async def test_a_network_a_load_balancer_and_certificates_become_ready_in_order() -> None:
    async with stage() as h:
        # Written in the wrong order: a load balancer without a network waits for it.
        await h.plane.have(addon("metallb", **METALLB), of_catalogue("cert-manager"), of_catalogue("cilium"))
        await cluster(h, workers=1)
        await h.until(ClusterAddon, "metallb", says("Ready", "WaitingForDependency", "cilium"))
        versions = {}
        for name in ("cilium", "metallb", "cert-manager"):
            found = await ready(h, name)
            versions[name] = found.status.version
            assert found.status.release.status == "deployed"
        assert versions == {"cilium": "1.20.0", "metallb": "0.16.1", "cert-manager": "v1.21.1"}
        client = workload(h)
        pool = await client.get(POOL, Key("metallb-system", "default-pool"))
        assert pool["spec"]["addresses"] == ["10.0.0.240-10.0.0.250"]
        records = await client.list(SECRET, Query(labels="owner=helm"))
        assert {each.metadata["labels"]["name"] for each in records.items} == {"cilium", "metallb", "cert-manager"}


@virtual
async def test_an_upgrade_takes_one_minor_version_at_a_time() -> None:
    async with stage() as h:
        await cluster(h)
        await h.plane.have(of_catalogue("cilium", version="1.17.x"))
        found = await ready(h, "cilium")
        assert found.status.version == "1.17.18"
        seen: list[str] = []
        await h.patch(ClusterAddon, "cilium", {"spec": {"version": "1.20.0"}})

        def arrived(each: ClusterAddon) -> bool:
            if each.status.version not in seen:
                seen.append(each.status.version)
            return each.status.version == "1.20.0" and says("Ready", status="True")(each)

        await h.until(ClusterAddon, "cilium", arrived)
        client = workload(h)
        agent = await client.get(DAEMON_SET, Key("kube-system", "cilium"))
        assert agent["spec"]["template"]["spec"]["containers"][0]["image"].endswith(":v1.20.0")
        records = await client.list(SECRET, Query(labels="owner=helm,name=cilium"))
        assert len(records.items) == 4  # one revision per version on the way
        assert seen[-1] == "1.20.0"


@virtual
async def test_a_chart_is_repaired_when_somebody_changes_or_deletes_its_objects() -> None:
    async with stage() as h:
        await cluster(h)
        await h.plane.have(of_catalogue("cilium"))
        await ready(h, "cilium")
        client = workload(h)
        await h.plane.settle(quiet=120)
        await client.patch(DEPLOYMENT, Key("kube-system", "cilium-operator"), MergePatch({"spec": {"replicas": 0}}))
        await client.delete(CONFIG_MAP, Key("kube-system", "cilium-config"))
        await h.plane.settle(quiet=60)
        operator = await client.get(DEPLOYMENT, Key("kube-system", "cilium-operator"))
        assert operator["spec"]["replicas"] == 1
        assert await exists(client, CONFIG_MAP, "cilium-config", "kube-system")
        await ready(h, "cilium")


@virtual
async def test_values_change_the_release_and_the_spec_overrides_the_catalogue() -> None:
    async with stage() as h:
        await cluster(h, workers=1)
        await h.plane.have(of_catalogue("cilium", values={"operator": {"replicas": 2}}))
        await ready(h, "cilium")
        client = workload(h)
        operator = await client.get(DEPLOYMENT, Key("kube-system", "cilium-operator"))
        assert operator["spec"]["replicas"] == 2
        await h.patch(ClusterAddon, "cilium", {"spec": {"parameters": {"hubble": True}}})
        found = await ready(h, "cilium")
        assert found.status.release.revision == 2
        assert await exists(client, DEPLOYMENT, "hubble-relay", "kube-system")


@virtual
async def test_removal_uninstalls_the_release_after_its_custom_resources() -> None:
    async with stage() as h:
        await cluster(h, workers=1)
        await h.plane.have(of_catalogue("cilium"), addon("metallb", **METALLB))
        await ready(h, "metallb")
        client = workload(h)
        for name in ("cilium", "metallb"):
            await h.delete(ClusterAddon, name)
        # The network goes last, though it was deleted first.
        await h.until(ClusterAddon, "cilium", says("Ready", "WaitingForDependents", "metallb"))
        await h.gone(ClusterAddon, "metallb")
        await h.gone(ClusterAddon, "cilium")
        assert not (await client.list(SECRET, Query(labels="owner=helm"))).items
        assert not await exists(client, DEPLOYMENT, "metallb-controller", "metallb-system")
        assert not await exists(client, CRD, "ipaddresspools.metallb.io", "")
        assert not await exists(client, DAEMON_SET, "cilium", "kube-system")
