"""How the controllers of a control plane should be configured, and which changes need other Machines. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from homeport.api.k0s.v1beta2 import K0sControllerConfig, K0sControlPlane
from homeport.api.meta import wire

Json = dict[str, Any]

# What k0s reads only at its start; it takes the rest from the ClusterConfig inside the cluster.
_STATIC = ("api", "storage")
_STATIC_NETWORK = ("controlPlaneLoadBalancing",)
# Where the binary comes from: no reason to replace a Machine that has one.
_SOURCE = ("version", "downloadURL", "preInstalledK0s", "secretMetadata")


def etcd_managed(plane: K0sControlPlane) -> bool:
    """Whether k0s runs etcd on the controllers."""
    storage = part(plane.spec.k0s_config_spec.k0s, "spec", "storage")
    return storage.get("type", "etcd") == "etcd" and not part(storage, "etcd").get("externalCluster")


def controller_spec(plane: K0sControlPlane) -> Json:
    """Of a K0sControllerConfig. What depends on the Cluster is filled in when the user data is written."""
    made: Json = wire(plane.spec.k0s_config_spec)
    return {**made, "version": plane.spec.version}


def same_config(plane: K0sControlPlane, config: K0sControllerConfig) -> bool:
    """Whether a machine made now would be installed in the same way."""
    return _comparable(wire(plane.spec.k0s_config_spec)) == _comparable(wire(config.spec))


def dynamic_config(plane: K0sControlPlane) -> Json:
    """The part of the user's ClusterConfig that running controllers follow."""
    spec = copy.deepcopy(part(plane.spec.k0s_config_spec.k0s, "spec"))
    for name in _STATIC:
        spec.pop(name, None)
    network = dict(part(spec, "network"))
    for name in _STATIC_NETWORK:
        network.pop(name, None)
    spec.pop("network", None)
    return {**spec, **({"network": network} if network else {})}


def _comparable(spec: Json) -> Json:
    made = {
        name: value for name, value in spec.items() if name not in _SOURCE and value not in (None, "", [], {}, False)
    }
    config = part(made.pop("k0s", None), "spec")
    static: Json = {name: config[name] for name in _STATIC if config.get(name)}
    network = part(config, "network")
    static |= {name: network[name] for name in _STATIC_NETWORK if network.get(name)}
    return {**made, "static": static}


def part(obj: Any, *path: str) -> Json:
    """An object inside another one; {} if there is none."""
    for name in path:
        obj = obj.get(name) if isinstance(obj, Mapping) else None
    return dict(obj) if isinstance(obj, Mapping) else {}
