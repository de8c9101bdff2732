"""ClusterDeployments with kubeadm: control planes on VMs and in the plane, on both infrastructures."""

from __future__ import annotations

from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.bootstrap.v1beta2 import KubeadmConfigTemplate
from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.nutanix.v1beta1 import NutanixMachineTemplate
from homeport.client.protocol import Key, Query
from homeport.providers.harvester.infracluster.resource import VM
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import NODE
from scenario.k0rdent.stage import SPACE, Stage, credential, deployments, hosted, secret
from scenario.k0rdent.test_harvester import account, harvester, is_up

Json = dict[str, Any]

LABELS = {"example.com/rack": "a", "node-role.kubernetes.io/worker": ""}


def image(version: str) -> Json:
    return {"image": {"type": "name", "name": f"ubuntu-22.04-kube-{version}"}}


def kubeadm(mode: str, name: str, host: str, **config: Any) -> Json:
    body = hosted(name, host, **config)
    values = body["spec"]["config"]
    del values["k0s"]
    values["machineDefaults"] |= image("v1.29.0")
    values["kubeadm"] = {"version": "v1.29.0", "worker": {"labels": LABELS}}
    body["spec"]["template"] = f"nutanix-kubeadm-{mode}"
    return body


async def addons(stage: Stage, name: str) -> set[str]:
    found = (await stage.client.list(ClusterAddon, Query(namespace=SPACE))).items
    return {each.metadata.name for each in found if each.spec.cluster_name == name}


@virtual
async def test_a_standalone_kubeadm_cluster_becomes_ready_scales_upgrades_and_leaves_nothing() -> None:
    async with deployments() as stage:
        body = kubeadm("standalone", "alone", "10.1.1.201", workersNumber=1, controlPlaneNumber=1)
        await stage.have(secret(), credential(), body)
        made = await stage.ready("alone")
        assert made.status.k8s_version == "v1.29.0"
        cluster: Cluster = await stage.client.get(Cluster, Key(SPACE, "alone"))
        assert cluster.spec.control_plane_ref is not None
        assert (cluster.spec.control_plane_ref.kind, cluster.spec.control_plane_ref.name) == (
            "KubeadmControlPlane",
            "alone-standalone-cp",
        )
        templates = (await stage.client.list(NutanixMachineTemplate, Query(namespace=SPACE))).items
        names = [each.metadata.name for each in templates]
        assert [each for each in names if each.startswith("alone-standalone-worker-mt-")]
        assert [each for each in names if each.startswith("alone-standalone-cp-mt-")]
        assert await addons(stage, "alone") == {"alone-calico", "alone-nutanix-csi"}
        inside = await stage.inside("alone")
        nodes = (await inside.list(NODE, Query())).items
        assert len(nodes) == 2
        assert [each for each in nodes if LABELS.items() <= (each.metadata.get("labels") or {}).items()]

        await stage.patch("alone", {"config": {"workersNumber": 2, "controlPlaneNumber": 3}})
        await stage.ready("alone")
        assert len(await stage.machines("alone")) == 5

        newer = {"kubeadm": {"version": "v1.30.0"}, "machineDefaults": image("v1.30.0")}
        await stage.patch("alone", {"config": newer})
        upgraded = await stage.ready("alone")
        assert upgraded.status.k8s_version == "v1.30.0"
        assert {each.spec.version for each in await stage.machines("alone")} == {"v1.30.0"}
        assert len((await inside.list(NODE, Query())).items) == 5

        await stage.delete("alone")
        await stage.gone("alone")
        assert stage.vms() == []
        assert not await addons(stage, "alone")


@virtual
async def test_a_hosted_kubeadm_cluster_becomes_ready_upgrades_and_leaves_nothing() -> None:
    async with deployments() as stage:
        body = kubeadm("hcp", "tenant", "10.1.1.200", workersNumber=1, network={"provider": "flannel"})
        await stage.have(secret(), credential(), body)
        await stage.ready("tenant")
        cluster: Cluster = await stage.client.get(Cluster, Key(SPACE, "tenant"))
        assert cluster.spec.control_plane_ref is not None
        assert (cluster.spec.control_plane_ref.kind, cluster.spec.control_plane_ref.name) == (
            "StewardControlPlane",
            "tenant-hcp-cp",
        )
        assert cluster.spec.control_plane_endpoint.host == "10.1.1.200"
        assert await addons(stage, "tenant") == {"tenant-flannel", "tenant-nutanix-csi"}
        await stage.patch("tenant", {"config": {"workersNumber": 2}})
        await stage.ready("tenant")
        newer = {"kubeadm": {"version": "v1.30.0"}, "machineDefaults": image("v1.30.0")}
        await stage.patch("tenant", {"config": newer})
        await stage.ready("tenant")
        inside = await stage.inside("tenant")
        nodes = (await inside.list(NODE, Query())).items
        assert {each["status"]["nodeInfo"]["kubeletVersion"] for each in nodes} == {"v1.30.0"}
        assert len(nodes) == 2
        await stage.delete("tenant")
        await stage.gone("tenant")
        assert stage.vms() == []


@virtual
async def test_kubeadm_clusters_on_harvester_become_ready_and_leave_nothing() -> None:
    async with deployments(harvester=True) as stage:
        version = {"kubeadm": {"version": "v1.30.0"}}
        one = harvester("standalone", "one", "10.40.0.202", controlPlaneNumber=1, **version)
        two = harvester("hcp", "two", "10.40.0.203", **version)
        for each in (one, two):
            each["spec"]["template"] = each["spec"]["template"].replace("k0s", "kubeadm")
        await stage.have(*account(stage), one, two)
        await is_up(stage, "one", "one-standalone-cp", 2)
        await is_up(stage, "two", "two-hcp-cp", 1)
        for name in ("one", "two"):
            await stage.delete(name)
            await stage.gone(name)
        assert (await stage.site.infra.list(VM, Query())).items == []


@virtual
async def test_configuration_of_kubeadm_is_merged_and_keeps_what_homeport_needs() -> None:
    async with deployments() as stage:
        body = kubeadm("standalone", "own", "10.1.1.201", workersNumber=1, controlPlaneNumber=1)
        arguments = {"v": "4"}  # a map, as older versions have it
        profile = {"clusterConfiguration": {"apiServer": {"extraArgs": [{"name": "profiling", "value": "false"}]}}}
        register = {"nodeRegistration": {"kubeletExtraArgs": arguments}}
        section = body["spec"]["config"]["kubeadm"]
        section["controlPlane"] = {"config": {**profile, "preKubeadmCommands": ["true"]}}
        section["worker"]["config"] = {"joinConfiguration": register}
        await stage.have(secret(), credential(), body)
        await stage.ready("own")
        plane: KubeadmControlPlane = await stage.client.get(KubeadmControlPlane, Key(SPACE, "own-standalone-cp"))
        config = plane.spec.kubeadm_config_spec
        assert config.pre_kubeadm_commands == ["true"]
        assert [each.name for each in config.cluster_configuration.api_server.extra_args] == ["profiling"]
        assert [each.name for each in config.cluster_configuration.controller_manager.extra_args] == ["cloud-provider"]
        joins = (await stage.client.list(KubeadmConfigTemplate, Query(namespace=SPACE))).items
        own = next(each for each in joins if each.metadata.name.startswith("own-"))
        given = own.spec.template.spec.join_configuration.node_registration.kubelet_extra_args
        assert [each.name for each in given] == ["cloud-provider", "node-labels", "v"]
