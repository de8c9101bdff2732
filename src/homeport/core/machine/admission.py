"""What a Machine may say, and what is filled in when it does not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.cluster.v1beta2 import Machine
from homeport.capi import name
from homeport.capi.version import is_valid
from homeport.client.errors import Cause
from homeport.machinery.schema.name import label_key
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]

NODE_DELETION_SECONDS = 10

_RESERVED_KEYS = {
    name.UNINITIALIZED_TAINT["key"]: "it is set and removed by Cluster API itself",
    name.OUTDATED_REVISION_TAINT["key"]: "it is set and removed by Cluster API itself",
    "node-role.kubernetes.io/master": "Kubernetes removed it in 1.24: use node-role.kubernetes.io/control-plane",
}
_RESERVED_PREFIXES = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
_OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
_CONTROL_PLANE_TAINT = "node-role.kubernetes.io/control-plane"


def register(hooks: Hooks) -> None:
    hooks.add(Machine, default=default, validate=validate)


def default(machine: Json, old: Json | None) -> None:
    metadata, spec = machine["metadata"], machine["spec"]
    labels = metadata["labels"] = metadata.get("labels") or {}
    labels[name.CLUSTER_NAME_LABEL] = spec.get("clusterName", "")
    if old is None:
        # Here it costs no write of its own, and there is no moment at which a Machine can vanish unseen.
        finalizers = metadata["finalizers"] = metadata.get("finalizers") or []
        if name.MACHINE_FINALIZER not in finalizers:
            finalizers.append(name.MACHINE_FINALIZER)
    spec_defaults(spec)


def spec_defaults(spec: Json) -> None:
    """Also for the Machine templates of the kinds that make Machines."""
    if spec.get("version") and not str(spec["version"]).startswith("v"):
        spec["version"] = f"v{spec['version']}"
    deletion = spec["deletion"] = spec.get("deletion") or {}
    deletion.setdefault("nodeDeletionTimeoutSeconds", NODE_DELETION_SECONDS)


def validate(machine: Json, old: Json | None) -> list[Cause]:
    labels = (machine["metadata"].get("labels")) or {}
    spec = machine.get("spec") or {}
    causes: list[Cause] = []
    if name.POOL_NAME_LABEL not in labels:  # those of a pool have its configuration
        causes += bootstrap_causes(spec, "spec")
    if old is not None and (old.get("spec") or {}).get("clusterName") != spec.get("clusterName"):
        causes.append(Cause.forbidden("spec.clusterName", "immutable: a Machine can't be moved to another Cluster"))
    causes += version_causes(spec, "spec")
    causes += taint_causes(spec, "spec", worker=name.CONTROL_PLANE_LABEL not in labels)
    return causes


def bootstrap_causes(spec: Json, path: str) -> Iterator[Cause]:
    bootstrap = spec.get("bootstrap") or {}
    if not bootstrap.get("configRef") and bootstrap.get("dataSecretName") is None:
        yield Cause.required(f"{path}.bootstrap", "set either dataSecretName or configRef")


def version_causes(spec: Json, path: str) -> Iterator[Cause]:
    version = spec.get("version")
    if version and not (str(version).startswith("v") and is_valid(str(version))):
        yield Cause.invalid(
            f"{path}.version", f'"{version}": must be a semantic version with a leading v, for example v1.30.2'
        )


def taint_causes(spec: Json, path: str, *, worker: bool) -> Iterator[Cause]:
    for i, taint in enumerate(spec.get("taints") or ()):
        key = str(taint.get("key", ""))
        why = _taint_trouble(key, worker)
        if why:
            yield Cause.invalid(f"{path}.taints[{i}].key", f'"{key}": {why}')


def _taint_trouble(key: str, worker: bool) -> str:
    if key in _RESERVED_KEYS:
        return _RESERVED_KEYS[key]
    for prefix in _RESERVED_PREFIXES:
        if key.startswith(prefix) and key != _OUT_OF_SERVICE:
            return f"taints under {prefix} are set by Kubernetes itself"
    if worker and key == _CONTROL_PLANE_TAINT:
        return "workers must not have the taint of control plane machines"
    return "; ".join(label_key(key))
