"""A class of v1beta1 with a provider of the old contract; later the class goes on to v1beta2, and no machine notices."""

from __future__ import annotations

import json
from typing import Any

from capikit import blueprint, generic
from capikit.blueprint import machines, steady
from capikit.harness import NAMESPACE, harness
from homeport.api.cluster.v1beta2 import Cluster, ClusterClass
from homeport.client.protocol import Key
from homeport.runtime.testing import virtual

PLANE = "controlplane.cluster.x-k8s.io"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io"
REGISTRATION = {"kubeletExtraArgs": {"provider-id": "generic://{{ ds.meta_data.instance_id }}"}}
JOIN = {"joinConfiguration": {"nodeRegistration": REGISTRATION}}


def made(api_version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}


def template(api_version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return made(api_version, kind, name, {"template": {"spec": spec}})


def ref(api_version: str, kind: str, name: str) -> dict[str, Any]:
    return {"ref": {"apiVersion": api_version, "kind": kind, "name": name}}


def users(group: str, kind: str, where: dict[str, Any], path: str) -> dict[str, Any]:
    step = {"op": "add", "path": path, "valueFrom": {"template": "- name: {{ .user }}\n"}}
    selector = {"apiVersion": f"{group}/v1beta1", "kind": kind, "matchResources": where}
    return {"selector": selector, "jsonPatches": [step]}


def old_class() -> list[dict[str, Any]]:
    infra = f"{generic.GROUP}/v1"
    config = {"initConfiguration": {"nodeRegistration": REGISTRATION}, **JOIN}
    worker = {
        "bootstrap": ref(f"{BOOTSTRAP}/v1beta1", "KubeadmConfigTemplate", "old-w"),
        "infrastructure": ref(infra, "GenericMachineTemplate", "old-w"),
    }
    spec = {
        "infrastructure": ref(infra, "GenericClusterTemplate", "old"),
        "controlPlane": {
            **ref(f"{PLANE}/v1beta1", "KubeadmControlPlaneTemplate", "old"),
            "machineInfrastructure": ref(infra, "GenericMachineTemplate", "old-cp"),
            "nodeDrainTimeout": "30s",
        },
        "workers": {"machineDeployments": [{"class": "w", "template": worker}]},
        "variables": [{"name": "user", "required": True, "schema": {"openAPIV3Schema": {"type": "string"}}}],
        "patches": [
            {
                "name": "user",
                "definitions": [
                    users(
                        PLANE,
                        "KubeadmControlPlaneTemplate",
                        {"controlPlane": True},
                        "/spec/template/spec/kubeadmConfigSpec/users",
                    ),
                    users(
                        BOOTSTRAP,
                        "KubeadmConfigTemplate",
                        {"machineDeploymentClass": {"names": ["w"]}},
                        "/spec/template/spec/users",
                    ),
                ],
            }
        ],
    }
    return [
        template(infra, "GenericClusterTemplate", "old", {}),
        template(f"{PLANE}/v1beta1", "KubeadmControlPlaneTemplate", "old", {"kubeadmConfigSpec": config}),
        template(infra, "GenericMachineTemplate", "old-cp", {}),
        template(infra, "GenericMachineTemplate", "old-w", {}),
        template(f"{BOOTSTRAP}/v1beta1", "KubeadmConfigTemplate", "old-w", JOIN),
        made("cluster.x-k8s.io/v1beta1", "ClusterClass", "old", spec),
    ]


def old_cluster() -> dict[str, Any]:
    topology = {
        "class": "old",
        "version": "v1.30.0",
        "controlPlane": {"replicas": 1},
        "workers": {"machineDeployments": [{"class": "w", "name": "md", "replicas": 1}]},
        "variables": [{"name": "user", "value": "joe"}],
    }
    return made("cluster.x-k8s.io/v1beta1", "Cluster", "c", {"topology": topology})


@virtual
async def test_a_class_of_the_old_version_works_and_its_templates_may_go_on_to_the_new_one() -> None:
    async with harness(contract="v1beta1") as h:
        await h.plane.have(*old_class(), old_cluster())
        await steady(h, "c", 1, {"md": 1})
        await h.available("c")
        plane = await blueprint.control_plane(h, "c")
        assert [each.name for each in plane.spec.kubeadm_config_spec.users] == ["joe"]
        assert plane.spec.machine_template.spec.deletion.node_drain_timeout_seconds == 30
        before = {*await machines(h, "c"), *await machines(h, "c", "md")}

        found = await h.client.get(ClusterClass.__resource__, Key(NAMESPACE, "old"))
        text = json.dumps(found["spec"])
        for group in (PLANE, BOOTSTRAP):
            text = text.replace(f"{group}/v1beta1", f"{group}/v1beta2")
        await h.patch(ClusterClass, "old", {"spec": json.loads(text)})
        await h.plane.settle(60)
        await steady(h, "c", 1, {"md": 1})
        assert {*await machines(h, "c"), *await machines(h, "c", "md")} == before

        await h.patch(Cluster, "c", {"spec": {"topology": {"version": "v1.31.0"}}})
        await steady(h, "c", 1, {"md": 1}, "v1.31.0")
