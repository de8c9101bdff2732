"""A user of v1beta1 creates a whole cluster and reads it back, as if there were nothing newer."""

from __future__ import annotations

from typing import Any

import pytest

from capikit import generic, manifest
from capikit.harness import harness
from homeport.api.cluster.v1beta2 import Cluster, Machine
from homeport.api.meta import Resource
from homeport.client.errors import Invalid
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from scenario.capi.look import read

CORE = "cluster.x-k8s.io"
CONTROL_PLANE = "controlplane.cluster.x-k8s.io"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io"


def ref(group: str, kind: str, name: str) -> dict[str, str]:
    version = "v1" if group == generic.GROUP else "v1beta1"
    return {"apiVersion": f"{group}/{version}", "kind": kind, "name": name}


def cluster_objects() -> list[dict[str, Any]]:
    registration = {
        "nodeRegistration": {"kubeletExtraArgs": {"provider-id": "generic://{{ ds.meta_data.instance_id }}"}}
    }

    def made(group: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        meta = {"name": name, "namespace": "default"}
        return {"apiVersion": f"{group}/v1beta1", "kind": kind, "metadata": meta, "spec": spec}

    cluster = {
        "clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}, "services": {"cidrBlocks": ["10.128.0.0/12"]}},
        "controlPlaneRef": ref(CONTROL_PLANE, "KubeadmControlPlane", "one-cp"),
        "infrastructureRef": ref(generic.GROUP, "GenericCluster", "one"),
    }
    control_plane = {
        "replicas": 1,
        "version": "v1.30.0",
        "machineTemplate": {
            "infrastructureRef": ref(generic.GROUP, "GenericMachineTemplate", "one-cp"),
            "nodeDrainTimeout": "5m",
        },
        "kubeadmConfigSpec": {"initConfiguration": registration, "joinConfiguration": registration},
    }
    machine = {
        "clusterName": "one",
        "version": "v1.30.0",
        "bootstrap": {"configRef": ref(BOOTSTRAP, "KubeadmConfigTemplate", "one-md-0")},
        "infrastructureRef": ref(generic.GROUP, "GenericMachineTemplate", "one-md-0"),
        "nodeDrainTimeout": "10m",
    }
    deployment = {
        "clusterName": "one",
        "replicas": 2,
        "selector": {"matchLabels": {}},
        "template": {"spec": machine},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
    }
    config = {"template": {"spec": {"joinConfiguration": registration}}}
    return [
        made(CORE, "Cluster", "one", cluster),
        {**made(generic.GROUP, "GenericCluster", "one", {}), "apiVersion": f"{generic.GROUP}/v1"},
        made(CONTROL_PLANE, "KubeadmControlPlane", "one-cp", control_plane),
        manifest.template("one-cp"),
        made(BOOTSTRAP, "KubeadmConfigTemplate", "one-md-0", config),
        manifest.template("one-md-0"),
        made(CORE, "MachineDeployment", "one-md-0", deployment),
    ]


def test_a_cluster_of_the_older_version_comes_up_and_is_read_back_in_it() -> None:
    @virtual
    async def run() -> None:
        async with harness(contract="v1beta1") as h:
            await h.plane.have(*cluster_objects())
            await h.steady("one", 1, 2, "v1.30.0")
            await h.available("one")
            await h.plane.settle(quiet=60)
            cluster = await read(h, CORE, "v1beta1", "Cluster", "clusters", "one")
            assert cluster["status"]["infrastructureReady"] is True
            assert cluster["status"]["controlPlaneReady"] is True
            assert cluster["status"]["phase"] == "Provisioned"
            assert cluster["spec"]["controlPlaneRef"]["apiVersion"].startswith(f"{CONTROL_PLANE}/")
            assert cluster["spec"]["controlPlaneEndpoint"]["port"] == 6443
            plane = await read(h, CONTROL_PLANE, "v1beta1", "KubeadmControlPlane", "kubeadmcontrolplanes", "one-cp")
            assert plane["status"]["initialized"] is True
            assert plane["status"]["ready"] is True
            assert (plane["status"]["replicas"], plane["status"]["readyReplicas"]) == (1, 1)
            assert plane["spec"]["machineTemplate"]["nodeDrainTimeout"] == "5m0s"
            deployment = await read(h, CORE, "v1beta1", "MachineDeployment", "machinedeployments", "one-md-0")
            assert deployment["status"]["phase"] == "Running"
            assert deployment["status"]["replicas"] == deployment["status"]["readyReplicas"] == 2
            assert deployment["spec"]["template"]["spec"]["nodeDrainTimeout"] == "10m0s"
            for each in await h.machines("one"):
                machine = await read(h, CORE, "v1beta1", "Machine", "machines", each.metadata.name)
                assert machine["status"]["bootstrapReady"] is True
                assert machine["status"]["infrastructureReady"] is True
                assert machine["status"]["phase"] == "Running"
                assert machine["status"]["nodeRef"]["kind"] == "Node"
                conditions = {c["type"]: c["status"] for c in machine["status"]["v1beta2"]["conditions"]}
                assert conditions["Ready"] == "True"

    run()


def test_changes_made_in_the_older_version_do_what_they_say() -> None:
    @virtual
    async def run() -> None:
        from homeport.api.meta import Resource

        async with harness() as h:
            await h.plane.have(*cluster_objects())
            await h.steady("one", 1, 2, "v1.30.0")
            await h.patch(
                Resource(CORE, "v1beta1", "MachineDeployment", "machinedeployments"),
                "one-md-0",
                {"spec": {"replicas": 3}},
            )
            await h.steady("one", 1, 3, "v1.30.0")
            await h.patch(Resource(CORE, "v1beta1", "Cluster", "clusters"), "one", {"spec": {"paused": True}})
            await h.until(Cluster, "one", lambda c: c.spec.paused is True)
            await h.patch(Resource(CORE, "v1beta1", "Cluster", "clusters"), "one", {"spec": {"paused": False}})
            version = {"spec": {"version": "v1.31.0"}}
            await h.patch(
                Resource(CONTROL_PLANE, "v1beta1", "KubeadmControlPlane", "kubeadmcontrolplanes"), "one-cp", version
            )
            await h.steady("one", 1, 3, "v1.31.0")
            assert len(h.infra.created) == 5

    run()


def _object(kind: str, spec: dict[str, Any], group: str = CORE) -> dict[str, Any]:
    meta = {"name": "x", "namespace": "default"}
    return {"apiVersion": f"{group}/v1beta1", "kind": kind, "metadata": meta, "spec": spec}


def _check(**more: Any) -> dict[str, Any]:
    unhealthy = [{"type": "Ready", "status": "Unknown", "timeout": "5m"}]
    spec = {"clusterName": "one", "selector": {"matchLabels": {"a": "b"}}, "unhealthyConditions": unhealthy, **more}
    return _object("MachineHealthCheck", spec)


def _machine_spec(**more: Any) -> dict[str, Any]:
    machine = ref(generic.GROUP, "GenericMachineTemplate", "t")
    return {"clusterName": "one", "bootstrap": {"dataSecretName": "d"}, "infrastructureRef": machine, **more}


def _group(kind: str = "MachineDeployment", machine: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": machine or _machine_spec()}
    spec = {"clusterName": "one", "selector": {"matchLabels": {"a": "b"}}, "template": template, **more}
    return _object(kind, spec)


def _topology(**more: Any) -> dict[str, Any]:
    return _object("Cluster", {"topology": {"class": "none", "version": "v1.30.0", **more}})


def _plane(**machine: Any) -> dict[str, Any]:
    template = {"infrastructureRef": ref(generic.GROUP, "GenericMachineTemplate", "t"), **machine}
    spec = {"replicas": 1, "version": "v1.30.0", "machineTemplate": template}
    spec["kubeadmConfigSpec"] = {"format": "cloud-config"}
    return _object("KubeadmControlPlane", spec, CONTROL_PLANE)


_UNKNOWN = {"type": "Ready", "status": "Unknown"}
_WORKERS = "spec.topology.workers.machineDeployments[0]"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (_check(nodeStartupTimeout="-5s"), "spec.nodeStartupTimeout"),
        (_check(nodeStartupTimeout="-500ms"), "spec.nodeStartupTimeout"),
        (_check(unhealthyConditions=[{**_UNKNOWN, "timeout": "-5m"}]), "spec.unhealthyConditions[0].timeout"),
        (_group(minReadySeconds=-3), "spec.minReadySeconds"),
        (_group("MachineSet", minReadySeconds=-3), "spec.minReadySeconds"),
        (_group(machine=_machine_spec(nodeDrainTimeout="-1s")), "spec.template.spec.nodeDrainTimeout"),
        (_group(machine=_machine_spec(nodeVolumeDetachTimeout="-1s")), "spec.template.spec.nodeVolumeDetachTimeout"),
        (_object("Machine", _machine_spec(nodeDeletionTimeout="-1s")), "spec.nodeDeletionTimeout"),
        (_plane(nodeDrainTimeout="-1s"), "spec.machineTemplate.nodeDrainTimeout"),
        (_topology(controlPlane={"nodeDrainTimeout": "-1s"}), "spec.topology.controlPlane.nodeDrainTimeout"),
        (
            _topology(controlPlane={"machineHealthCheck": {"nodeStartupTimeout": "-1s"}}),
            "spec.topology.controlPlane.machineHealthCheck.nodeStartupTimeout",
        ),
        (
            _topology(workers={"machineDeployments": [{"class": "w", "name": "a", "nodeDeletionTimeout": "-1s"}]}),
            f"{_WORKERS}.nodeDeletionTimeout",
        ),
        (
            _topology(workers={"machineDeployments": [{"class": "w", "name": "a", "minReadySeconds": -1}]}),
            f"{_WORKERS}.minReadySeconds",
        ),
    ],
)
def test_what_the_newest_version_refuses_is_refused_in_the_words_of_the_older_one(
    given: dict[str, Any], field: str
) -> None:
    @virtual
    async def run() -> None:
        async with harness(start=False) as h:
            with pytest.raises(Invalid) as refused:
                await h.plane.have(given)
            assert field in [cause.field for cause in refused.value.causes]
            assert field in str(refused.value)

    run()


@virtual
async def test_a_part_of_a_second_is_not_no_limit_at_all() -> None:
    async with harness(start=False) as h:
        await h.plane.have(_object("Machine", _machine_spec(nodeDrainTimeout="500ms")))
        found = await h.client.get(Machine, Key("default", "x"))
        assert found.spec.deletion.node_drain_timeout_seconds == 1
        older = Resource(CORE, "v1beta1", "Machine", "machines")
        assert (await h.client.get(older, Key("default", "x")))["spec"]["nodeDrainTimeout"] == "500ms"
