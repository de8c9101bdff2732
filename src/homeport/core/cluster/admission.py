"""What a Cluster may say, and what is filled in when it does not."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from homeport.api.cluster.v1beta2 import Cluster
from homeport.capi import name
from homeport.capi.version import is_valid
from homeport.client.errors import Cause
from homeport.machinery.schema.name import label_value
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]

_REFERENCES = ("infrastructureRef", "controlPlaneRef")


def register(hooks: Hooks) -> None:
    hooks.default(Cluster, default)
    hooks.validate(Cluster, validate)


def default(cluster: Json, old: Json | None) -> None:
    metadata, spec = cluster["metadata"], cluster.get("spec") or {}
    if old is None:
        finalizers = metadata["finalizers"] = metadata.get("finalizers") or []
        if name.CLUSTER_FINALIZER not in finalizers:
            finalizers.append(name.CLUSTER_FINALIZER)
    topology = spec.get("topology")
    if topology and topology.get("version") and not str(topology["version"]).startswith("v"):
        topology["version"] = f"v{topology['version']}"


def validate(cluster: Json, old: Json | None) -> list[Cause]:
    spec = cluster.get("spec") or {}
    was = (old or {}).get("spec") or {}
    return [
        *_name(cluster["metadata"].get("name", "")),
        *_references(spec, was),
        *_blocks(spec.get("clusterNetwork") or {}),
        *_topology(spec.get("topology"), was.get("topology")),
    ]


def _name(text: str) -> Iterator[Cause]:
    for wrong in label_value(text):
        yield Cause(
            "FieldValueInvalid",
            f'Invalid value: "{text}": the name is put into labels of all its objects: {wrong}',
            "metadata.name",
        )


def _references(spec: Json, was: Json) -> Iterator[Cause]:
    if not any(spec.get(part) for part in (*_REFERENCES, "topology")):
        yield Cause(
            "FieldValueForbidden",
            "Forbidden: set one of infrastructureRef, controlPlaneRef or topology, or nothing could ever be made",
            "spec",
        )
    for part in _REFERENCES:
        if was.get(part) and not spec.get(part):
            yield Cause("FieldValueForbidden", "Forbidden: can't be removed once it is set", f"spec.{part}")


def _blocks(network: Json) -> Iterator[Cause]:
    for part in ("pods", "services"):
        for i, block in enumerate((network.get(part) or {}).get("cidrBlocks") or ()):
            try:
                ipaddress.ip_interface(block)
                good = "/" in str(block)
            except ValueError:
                good = False
            if not good:
                yield Cause(
                    "FieldValueInvalid",
                    f'Invalid value: "{block}": must be a network such as 192.168.0.0/16 or fd00::/108',
                    f"spec.clusterNetwork.{part}.cidrBlocks[{i}]",
                )


def _topology(topology: Json | None, was: Json | None) -> Iterator[Cause]:
    if not topology:
        if was:
            yield Cause("FieldValueForbidden", "Forbidden: can't be removed from an existing Cluster", "spec.topology")
        return
    if not (topology.get("classRef") or {}).get("name"):
        yield Cause("FieldValueRequired", "Required value: name the ClusterClass to use", "spec.topology.classRef.name")
    version = topology.get("version", "")
    if not (str(version).startswith("v") and is_valid(str(version))):
        yield Cause(
            "FieldValueInvalid",
            f'Invalid value: "{version}": must be a semantic version with a leading v, such as v1.30.2',
            "spec.topology.version",
        )
    yield from _unique(topology.get("workers") or {})


def _unique(workers: Json) -> Iterator[Cause]:
    for part in ("machineDeployments", "machinePools"):
        seen: set[str] = set()
        for i, entry in enumerate(workers.get(part) or ()):
            field = f"spec.topology.workers.{part}[{i}].name"
            if entry.get("name") in seen:
                yield Cause("FieldValueDuplicate", f'Duplicate value: "{entry["name"]}"', field)
            for wrong in label_value(entry.get("name", "")):
                yield Cause("FieldValueInvalid", f'Invalid value: "{entry.get("name")}": {wrong}', field)
            seen.add(entry.get("name", ""))
