"""From choices to manifests. Pure. No manifest contains a password: they refer to Secrets that exist."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.bootstrap.v1beta2 import KubeadmConfigTemplate
from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.api.meta import Object
from homeport.app.creation.choice import Choice
from homeport.capi.name import BOOTSTRAP_GROUP, CLUSTER_NAME_LABEL, CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP
from homeport.capi.platform import ClusterRequest, Origin, PlatformSupport, Shape

Json = dict[str, Any]
_PORT = 6443


def render(choice: Choice, support: PlatformSupport, secret: Mapping[str, str]) -> list[Json]:
    """`secret`: the data of the Secret, which the provider's part is read with. Raises Misconfigured."""
    if choice.api == "tenant":
        return [_tenant(choice)]
    if choice.api == "deployment":
        return [_deployment(choice)]
    return _cluster_api(choice, support, secret)


def _object(kind: type[Object], name: str, choice: Choice, spec: Json) -> Json:
    meta = {"name": name, "namespace": choice.namespace}
    return {**kind.__resource__.type_meta, "metadata": meta, "spec": spec}


def _ref(group: str, kind: str, name: str) -> Json:
    return {"apiGroup": group, "kind": kind, "name": name}


# -- Cluster API -----------------------------------------------------------------------------------------------------


def _cluster_api(choice: Choice, support: PlatformSupport, secret: Mapping[str, str]) -> list[Json]:
    site = support.site(choice.part(), secret, Origin("--", f"Secret {choice.namespace}/{choice.secret}"))
    request = ClusterRequest(name=choice.name, namespace=choice.namespace, endpoint=(choice.endpoint, _PORT))
    infra = support.cluster_objects(site, request)[-1]
    infra["metadata"].pop("labels", None)
    _refer(infra["spec"], choice)
    shape = Shape(cpu=choice.cpu, memory=choice.memory, disk=choice.disk)
    made = support.machine_template(site, shape)
    templates = [
        {**made, "metadata": {"name": f"{choice.name}-{role}", "namespace": choice.namespace}}
        for role in ("control-plane", "workers")
    ]
    kind = support.template_kind.kind
    return [
        _cluster(choice, support),
        infra,
        _control_plane(choice, kind),
        templates[0],
        _workers(choice, kind),
        templates[1],
        _object(KubeadmConfigTemplate, f"{choice.name}-workers", choice, {"template": {"spec": _joining()}}),
        *_network(choice),
    ]


def _refer(spec: Json, choice: Choice) -> None:
    """To the Secret that exists, in place of one with a copy of the password."""
    if "prismCentral" in spec:
        spec["prismCentral"]["credentialRef"] = {"kind": "Secret", "name": choice.secret}
    else:
        spec["infraClusterSecretRef"] = {"name": choice.secret, "namespace": choice.namespace}


def _cluster(choice: Choice, support: PlatformSupport) -> Json:
    spec = {
        "clusterNetwork": {
            "pods": {"cidrBlocks": [choice.pods]},
            "services": {"cidrBlocks": [choice.services]},
        },
        "infrastructureRef": _ref(INFRASTRUCTURE_GROUP, support.cluster_kind.kind, choice.name),
        "controlPlaneRef": _ref(CONTROL_PLANE_GROUP, "KubeadmControlPlane", choice.name),
    }
    return _object(Cluster, choice.name, choice, spec)


def _control_plane(choice: Choice, template: str) -> Json:
    external = [{"name": "cloud-provider", "value": "external"}]
    registration = {"nodeRegistration": {"kubeletExtraArgs": external}}
    spec = {
        "replicas": choice.control_planes,
        "version": choice.version,
        "machineTemplate": {
            "spec": {"infrastructureRef": _ref(INFRASTRUCTURE_GROUP, template, f"{choice.name}-control-plane")}
        },
        "kubeadmConfigSpec": {
            "clusterConfiguration": {"controllerManager": {"extraArgs": external}},
            "initConfiguration": registration,
            "joinConfiguration": registration,
        },
    }
    return _object(KubeadmControlPlane, choice.name, choice, spec)


def _joining() -> Json:
    arguments = [{"name": "cloud-provider", "value": "external"}]
    return {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": arguments}}}


def _workers(choice: Choice, template: str) -> Json:
    name = f"{choice.name}-workers"
    machine = {
        "clusterName": choice.name,
        "version": choice.version,
        "bootstrap": {"configRef": _ref(BOOTSTRAP_GROUP, "KubeadmConfigTemplate", name)},
        "infrastructureRef": _ref(INFRASTRUCTURE_GROUP, template, name),
    }
    spec = {
        "clusterName": choice.name,
        "replicas": choice.workers,
        "selector": {"matchLabels": {CLUSTER_NAME_LABEL: choice.name}},
        "template": {"metadata": {"labels": {CLUSTER_NAME_LABEL: choice.name}}, "spec": machine},
    }
    return _object(MachineDeployment, name, choice, spec)


def _network(choice: Choice) -> list[Json]:
    if choice.cni == "none":
        return []
    spec = {"clusterName": choice.name, "addon": choice.cni}
    return [_object(ClusterAddon, f"{choice.name}-{choice.cni}", choice, spec)]


# -- platforms -------------------------------------------------------------------------------------------------------


def _tenant(choice: Choice) -> Json:
    namespace, _, name = choice.provider_config.rpartition("/")
    machine = {"cpu": choice.cpu, "memory": choice.memory, "diskSize": choice.disk}
    spec: Json = {
        "providerConfigRef": {"name": name, **({"namespace": namespace} if namespace else {})},
        "workers": {"replicas": choice.workers, "machineTemplate": machine},
    }
    if choice.version:
        spec["kubernetesVersion"] = choice.version
    if choice.image:
        spec["workers"]["machineTemplate"]["os"] = {"imageRef": choice.image}
    if choice.cni == "none":
        spec["addons"] = {"cni": {"enabled": False}}
    elif choice.cni != "cilium":
        spec["addons"] = {"cni": {"provider": choice.cni}}
    return _object(TenantCluster, choice.name, choice, spec)


def _deployment(choice: Choice) -> Json:
    defaults: Json = {"image": choice.image, "memorySize": choice.memory, "systemDiskSize": choice.disk}
    endpoint = {"host": choice.endpoint, "port": _PORT}
    if choice.provider == "nutanix":
        host = choice.address.partition(":")[0]
        vendor: Json = {"nutanix": {"prismCentral": {"address": host}, "controlPlaneEndpoint": endpoint}}
        defaults |= {"cluster": choice.place, "subnets": [choice.network], "vcpuSockets": choice.cpu}
    else:
        vendor = {"harvester": {"controlPlaneEndpoint": endpoint}}
        defaults |= {"networks": [choice.network], "cpuCores": choice.cpu}
    config: Json = {**vendor, "machineDefaults": defaults, "workersNumber": choice.workers}
    template = choice.template or f"{choice.provider}-k0s-hcp"
    if choice.version and "k0s" in template:
        config["k0s"] = {"version": choice.version}
    spec = {"template": template, "credential": choice.credential, "config": config}
    return _object(ClusterDeployment, choice.name, choice, spec)
