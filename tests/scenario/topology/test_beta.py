"""Manifests of the older version of Cluster API: the class, its templates, its patches and the Cluster."""

from __future__ import annotations

from typing import Any

from capikit import generic
from capikit.blueprint import control_plane, deployments, machines, steady
from capikit.duration import judge_durations
from capikit.harness import harness
from homeport.api.cluster.v1beta2 import Cluster, ClusterClass
from homeport.client.protocol import Key
from homeport.machinery import condition, yaml
from homeport.runtime.testing import virtual
from scenario.topology.look import QUIET

CLASS = """
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata: {name: old, namespace: default}
spec:
  infrastructure:
    ref: {apiVersion: infrastructure.example.com/v1, kind: GenericClusterTemplate, name: old}
  controlPlane:
    ref: {apiVersion: controlplane.cluster.x-k8s.io/v1beta1, kind: KubeadmControlPlaneTemplate, name: old}
    machineInfrastructure:
      ref: {apiVersion: infrastructure.example.com/v1, kind: GenericMachineTemplate, name: old}
  workers:
    machineDeployments:
    - class: worker
      template:
        metadata: {labels: {tier: back}}
        bootstrap:
          ref: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfigTemplate, name: old}
        infrastructure:
          ref: {apiVersion: infrastructure.example.com/v1, kind: GenericMachineTemplate, name: old}
  variables:
  - name: logLevel
    required: true
    schema: {openAPIV3Schema: {type: string, default: "2"}}
  patches:
  - name: log
    definitions:
    - selector:
        apiVersion: controlplane.cluster.x-k8s.io/v1beta1
        kind: KubeadmControlPlaneTemplate
        matchResources: {controlPlane: true}
      jsonPatches:
      - op: add
        path: /spec/template/spec/kubeadmConfigSpec/clusterConfiguration/apiServer/extraArgs/v
        valueFrom: {variable: logLevel}
    - selector:
        apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
        kind: KubeadmConfigTemplate
        matchResources: {machineDeploymentClass: {names: [worker]}}
      jsonPatches:
      - op: add
        path: /spec/template/spec/joinConfiguration/nodeRegistration/kubeletExtraArgs/v
        valueFrom: {variable: logLevel}
---
apiVersion: infrastructure.example.com/v1
kind: GenericClusterTemplate
metadata: {name: old, namespace: default}
spec: {template: {spec: {}}}
---
apiVersion: infrastructure.example.com/v1
kind: GenericMachineTemplate
metadata: {name: old, namespace: default}
spec: {template: {spec: {disk: 20Gi}}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta1
kind: KubeadmControlPlaneTemplate
metadata: {name: old, namespace: default}
spec:
  template:
    spec:
      kubeadmConfigSpec:
        clusterConfiguration: {apiServer: {extraArgs: {audit-log-maxage: "7"}}}
        initConfiguration: &registration
          nodeRegistration: {kubeletExtraArgs: {provider-id: "generic://{{ ds.meta_data.instance_id }}"}}
        joinConfiguration: *registration
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfigTemplate
metadata: {name: old, namespace: default}
spec:
  template:
    spec:
      joinConfiguration:
        nodeRegistration: {kubeletExtraArgs: {provider-id: "generic://{{ ds.meta_data.instance_id }}"}}
"""

CLUSTER = """
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: one, namespace: default}
spec:
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}, services: {cidrBlocks: [10.128.0.0/12]}}
  topology:
    class: old
    version: v1.30.0
    controlPlane: {replicas: 1}
    workers:
      machineDeployments:
      - {class: worker, name: a, replicas: 1}
"""


def parsed(text: str) -> list[dict[str, Any]]:
    return [each for each in yaml.load_all(text) if each]


@virtual
async def test_older_manifests_make_a_cluster_and_change_it() -> None:
    async with harness() as h:
        await h.plane.have(*parsed(CLASS))
        (made,) = await h.plane.have(*parsed(CLUSTER))
        # Defaults come in the version that the user speaks.
        assert made["apiVersion"] == "cluster.x-k8s.io/v1beta1"
        assert made["spec"]["topology"]["variables"] == [{"name": "logLevel", "value": "2"}]
        await steady(h, "one", 1, {"a": 1})
        plane = await control_plane(h, "one")
        arguments = plane.spec.kubeadm_config_spec.cluster_configuration.api_server.extra_args
        assert {each.name: each.value for each in arguments} == {"audit-log-maxage": "7", "v": "2"}
        assert (await deployments(h, "one"))["a"].spec.template.metadata.labels["tier"] == "back"
        revision = await h.plane.settle(quiet=QUIET)
        await h.restart()
        assert await h.plane.settle(quiet=QUIET) == revision
        old = {*await machines(h, "one"), *await machines(h, "one", "a")}
        await h.patch(Cluster, "one", {"spec": {"topology": {"variables": [{"name": "logLevel", "value": "4"}]}}})
        await h.plane.settle(quiet=QUIET)
        await steady(h, "one", 1, {"a": 1})
        assert not old & {*await machines(h, "one"), *await machines(h, "one", "a")}
        found = await h.client.get(ClusterClass, Key("default", "old"))
        said = condition.find(found.status.conditions, "RefVersionsUpToDate")
        assert said is not None
        assert said["reason"] == "RefVersionsNotUpToDate"
        await h.delete(Cluster, "one")
        await h.gone(Cluster, "one")
        await h.plane.settle(quiet=30)
        assert not h.infra.machines
        assert len((await h.client.list(generic.TEMPLATE)).items) == 1


@virtual
async def test_an_older_object_with_a_wrong_duration_is_refused_as_a_mistake_of_the_user() -> None:
    async with harness() as h:
        await judge_durations(h.client)
