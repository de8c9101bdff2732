"""kubeadm as a distribution of built-in templates: values, templates, patches. Pure.

Control planes on machines are KubeadmControlPlanes; hosted ones are StewardControlPlanes, which workers join in the
same way. Neither has a Pod network of its own: that is an add-on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.capi import version as kubernetes
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.cluster.distribution import Blank, Distribution
from homeport.platforms.k0rdent.cluster.label import kubelet_labels
from homeport.platforms.k0rdent.cluster.merge import merged
from homeport.platforms.k0rdent.cluster.part import FREE, OPEN, group, number, properties, text
from homeport.platforms.k0rdent.cluster.patch import WORKERS, from_variable, patch, selector
from homeport.platforms.k0rdent.cluster.role import worker_fields

Json = dict[str, Any]

VARIABLE = "kubeadmConfig"
_VERSION = "v1.33.4"
_BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
_PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
_STEWARD = "controlplane.cluster.x-k8s.io/v1alpha1"
_PLACEHOLDER: Json = {"format": "cloud-config"}  # a patch replaces it in every cluster: the schema refuses an empty one
_ARGUMENTS = ("extraArgs", "kubeletExtraArgs")  # lists of name and value
_API_PORT = 6443  # of kubeadm, if it is told nothing else
_EXTERNAL: Json = {"name": "cloud-provider", "value": "external"}


# -- values --------------------------------------------------------------------------------------------------------


def _section(hosted: bool) -> Json:
    own = "spec of the StewardControlPlane" if hosted else "kubeadmConfigSpec of the KubeadmControlPlane"
    said = "Version of Kubernetes. A change upgrades the control plane, then the workers."
    if not hosted:
        said += " The image of the machines must have it: change machineDefaults.image together with it."
    return group(
        "kubeadm.",
        version=text(said, _VERSION),
        worker=group(
            "Workers.",
            **worker_fields(),
            config={**FREE, "description": "Merged into the spec of the KubeadmConfig of workers."},
        ),
        controlPlane=group(
            "Control plane.",
            replicas=number("The same as controlPlaneNumber."),
            config={**FREE, "description": f"Merged into the {own}."},
        ),
    )


def _normal(given: str) -> str:
    if not kubernetes.is_valid(given) or "k0s" in given:
        raise ValueError(f"{given!r} is not a valid version of Kubernetes: expected for example {_VERSION}")
    return str(kubernetes.parse(given))


def _value(config: ClusterConfig) -> Json:
    plane = _hosted_spec(config) if config.hosted else _standalone_spec(config)
    return {"controlPlane": plane, "worker": _worker_spec(config)}


def _worker_spec(config: ClusterConfig) -> Json:
    arguments = [_EXTERNAL]
    if labels := kubelet_labels(config.labels):
        arguments.append({"name": "node-labels", "value": labels})
    made = {"joinConfiguration": {"nodeRegistration": {"kubeletExtraArgs": arguments}}}
    return _with_config(made, config.worker_config)


def _standalone_spec(config: ClusterConfig) -> Json:
    registration = {"nodeRegistration": {"kubeletExtraArgs": [_EXTERNAL]}}
    cluster: Json = {"controllerManager": {"extraArgs": [_EXTERNAL]}}
    made: Json = {"initConfiguration": dict(registration), "joinConfiguration": dict(registration)}
    if config.host_port != _API_PORT:  # the address moves between machines, the port does not
        own = {"localAPIEndpoint": {"bindPort": config.host_port}}
        made["initConfiguration"] |= own
        made["joinConfiguration"]["controlPlane"] = own
    if config.api_arguments:
        folder = config.chart.distribution.settings_folder
        arguments = [{"name": name, "value": value} for name, value in sorted(config.api_arguments.items())]
        volume = {
            "name": "settings",
            "hostPath": folder,
            "mountPath": folder,
            "readOnly": True,
            "pathType": "DirectoryOrCreate",
        }
        cluster["apiServer"] = {"extraArgs": arguments, "extraVolumes": [volume]}
        made["files"] = list(config.files)
    return _with_config({**made, "clusterConfiguration": cluster}, config.plane_config)


def _hosted_spec(config: ClusterConfig) -> Json:
    network: Json = {"serviceType": "LoadBalancer"}
    if config.host:
        network["serviceAddress"] = config.host
    made: Json = {"addons": {"coreDNS": {}, "kubeProxy": {}, "konnectivity": {}}, "network": network}
    if config.api_arguments:
        arguments = [f"--{name}={value}" for name, value in sorted(config.api_arguments.items())]
        names = [f"settings-{number}" for number, _ in enumerate(config.mounts)]
        mounts = [
            {"name": name, "mountPath": each["path"], "readOnly": True}
            for name, each in zip(names, config.mounts, strict=True)
        ]
        volumes = [
            {"name": name, **{kind: source for kind, source in each.items() if kind != "path"}}
            for name, each in zip(names, config.mounts, strict=True)
        ]
        made["apiServer"] = {"extraArgs": arguments, "extraVolumeMounts": mounts}
        made["deployment"] = {"extraVolumes": volumes}
    return merged(made, config.plane_config)


def _with_config(base: Json, over: Mapping[str, Any]) -> Json:
    """As `merged`; of two arguments with one name the user's wins, and files are added."""
    made = merged(base, over)
    for key, value in over.items():
        before = base.get(key)
        if key in _ARGUMENTS and value is not None:
            made[key] = _arguments(before or [], value)
        elif key == "files" and before and isinstance(value, list):
            made[key] = [*before, *value]
        elif isinstance(before, dict) and isinstance(value, Mapping):
            made[key] = _with_config(before, value)
    return made


def _arguments(base: list[Json], over: Any) -> list[Json]:
    """Older versions of kubeadm's kinds have a map."""
    listed = [{"name": name, "value": value} for name, value in over.items()] if isinstance(over, Mapping) else over
    names = {each.get("name") for each in listed}
    return [*(each for each in base if each["name"] not in names), *listed]


# -- class ---------------------------------------------------------------------------------------------------------


def _plane(hosted: bool) -> Blank:
    if hosted:
        return Blank(_STEWARD, "StewardControlPlaneTemplate", {})
    return Blank(_PLANE, "KubeadmControlPlaneTemplate", {"kubeadmConfigSpec": _PLACEHOLDER})


def _plane_patches(hosted: bool, endpoint: str) -> list[Json]:
    del endpoint  # the value has it
    blank, path = _plane(hosted), "" if hosted else "/kubeadmConfigSpec"
    target = selector(blank.api_version, blank.kind, controlPlane=True)
    return [patch("control-plane", target, from_variable(path, f"{VARIABLE}.controlPlane"))]


def _worker_patch() -> Json:
    target = selector(_BOOTSTRAP, "KubeadmConfigTemplate", **WORKERS)
    return patch("worker-bootstrap", target, from_variable("", f"{VARIABLE}.worker"))


_HOSTED = {"control-plane-steward": "steward"}
_ON_MACHINES = {"control-plane-kubeadm": "kubeadm-control-plane"}
KUBEADM = Distribution(
    name="kubeadm",
    version=_VERSION,
    infix="kubeadm-",
    settings_folder="/etc/kubernetes-settings",
    network_addons=True,
    network_port=True,
    normal=_normal,
    providers=lambda hosted: {**(_HOSTED if hosted else _ON_MACHINES), "bootstrap-kubeadm": "kubeadm-bootstrap"},
    networks=lambda hosted: ("calico", "cilium", "flannel", "custom"),
    section=_section,
    variable=VARIABLE,
    variable_schema=properties(controlPlane=OPEN, worker=OPEN),
    plane=_plane,
    worker=Blank(_BOOTSTRAP, "KubeadmConfigTemplate", _PLACEHOLDER),
    plane_patches=_plane_patches,
    worker_patch=_worker_patch,
    value=_value,
)
