"""The changes that upgrade a cluster, for each of the three APIs. Pure: what was read goes in, changes come out."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Unstructured
from homeport.capi import version as versions
from homeport.infra.preflight.fit import kubernetes_of
from homeport.machinery.apply.managed import LAST_APPLIED

Json = dict[str, Any]


class NoUpgrade(Exception):
    """The cluster can't be upgraded to this version; says why and what to do."""


@dataclass(frozen=True, slots=True)
class Change:
    """`after`: the whole object, for the plan. `patch` None: the object is created."""

    after: Json
    patch: Json | None


def upgrade(root: Unstructured, objects: Sequence[Unstructured], to: str, image: str = "") -> list[Change]:
    """`objects`: those of the cluster's namespaces. `image`: of the new machine templates. Raises NoUpgrade."""
    kind = root.get("kind")
    spec = root.get("spec") or {}
    if kind == "TenantCluster":
        _check(str(spec.get("kubernetesVersion") or _observed(root)), to)
        return [_changed(root, {"kubernetesVersion": to})]
    if kind == "ClusterDeployment":
        return [_deployment(root, to)]
    topology = spec.get("topology") or {}
    if topology.get("version"):
        _check(str(topology["version"]), to)
        return [_changed(root, {"topology": {"version": to}})]
    return _machines(root, objects, to, image)


def _check(current: str, to: str) -> None:
    """One minor version at a time, and never back."""
    try:
        wanted = versions.parse(to)
        if not current:
            return
        if wanted.line[0] != versions.parse(current).line[0]:
            line = versions.parse(current).line
            raise NoUpgrade(
                f"{to} is another major version than {current}: upgrade to v{line[0]}.{line[1] + 1} instead"
            )
        distance = versions.minor_distance(current, to)
    except ValueError as error:
        raise NoUpgrade(str(error)) from None
    if wanted == versions.parse(current):
        raise NoUpgrade(f"the cluster has version {current} already")
    if wanted < versions.parse(current):
        raise NoUpgrade(f"{to} is older than {current}: Kubernetes can't be downgraded")
    if distance > 1:
        line = versions.parse(current).line
        raise NoUpgrade(
            f"from {current} to {to} are {distance} minor versions: upgrade to v{line[0]}.{line[1] + 1} first"
        )


def _observed(root: Unstructured) -> str:
    observed = (root.get("status") or {}).get("observedState") or {}
    return str(observed.get("kubernetesVersion") or "")


def _deployment(root: Unstructured, to: str) -> Change:
    spec = root.get("spec") or {}
    config = spec.get("config") or {}
    template = str(spec.get("template") or "")
    if "k0s" not in template:
        raise NoUpgrade(
            f"ClusterDeployment {root.name}: template {template} decides about the version: change spec.template to "
            "one of status.availableUpgrades"
        )
    _check(str((config.get("k0s") or {}).get("version") or ""), to)
    return _changed(root, {"config": {"k0s": {"version": to}}})


def _machines(cluster: Unstructured, objects: Sequence[Unstructured], to: str, image: str) -> list[Change]:
    """The control plane first: workers wait for it."""
    ref = (cluster.get("spec") or {}).get("controlPlaneRef") or {}
    plane = _find(objects, str(ref.get("kind")), str(ref.get("name")))
    if plane is None:
        raise NoUpgrade(f"Cluster {cluster.name}: its control plane does not exist")
    _check(str((plane.get("spec") or {}).get("version") or ""), to)
    workers = [
        each
        for each in objects
        if each.get("kind") == "MachineDeployment" and (each.get("spec") or {}).get("clusterName") == cluster.name
    ]
    made: dict[str, Change] = {}
    changes: list[Change] = []
    machine = (plane.get("spec") or {}).get("machineTemplate") or {}
    name = _template(objects, (machine.get("spec") or {}).get("infrastructureRef") or {}, to, image, made)
    patch: Json = {"version": to}
    if name:
        patch["machineTemplate"] = {"spec": {"infrastructureRef": {"name": name}}}
    changes.append(_changed(plane, patch))
    for each in workers:
        template = ((each.get("spec") or {}).get("template") or {}).get("spec") or {}
        name = _template(objects, template.get("infrastructureRef") or {}, to, image, made)
        inner: Json = {"version": to, **({"infrastructureRef": {"name": name}} if name else {})}
        changes.append(_changed(each, {"template": {"spec": inner}}))
    return [*made.values(), *changes]


def _template(objects: Iterable[Unstructured], ref: Json, to: str, image: str, made: dict[str, Change]) -> str:
    """The name of a machine template with an image of the version; '': the one in use fits any version."""
    found = _find(objects, str(ref.get("kind") or ""), str(ref.get("name") or ""))
    if found is None:
        return ""
    body = _clean(found)
    spec = body["spec"]["template"]["spec"]
    held = _image(spec)
    wanted = image or (held.replace(kubernetes_of(held).lstrip("v"), to.lstrip("v")) if kubernetes_of(held) else "")
    if not wanted or wanted == held:
        return ""
    base = found.name.removesuffix(f"-{kubernetes_of(held)}") if kubernetes_of(held) else found.name
    name = f"{base}-{to}".replace("+", "-")
    if name not in made:
        _set_image(spec, wanted)
        body["metadata"] = {"name": name, "namespace": found.namespace}
        there = _find(objects, str(ref.get("kind")), name)
        if there is None:
            made[name] = Change(body, None)
    return name


def _image(spec: Json) -> str:
    """Of a NutanixMachineTemplate or a KubevirtMachineTemplate."""
    held = spec.get("image") or (spec.get("bootDisk") or {}).get("image") or ""
    return str(held.get("name") or "") if isinstance(held, dict) else str(held)


def _set_image(spec: Json, name: str) -> None:
    if "bootDisk" in spec:
        spec["bootDisk"]["image"] = name
    else:
        spec["image"] = {"type": "name", "name": name}


def _find(objects: Iterable[Unstructured], kind: str, name: str) -> Unstructured | None:
    return next((each for each in objects if each.get("kind") == kind and each.name == name), None)


def _changed(obj: Unstructured, spec: Json) -> Change:
    after = _clean(obj)
    _merge(after["spec"], spec)
    return Change(after, {"spec": spec})


def _merge(into: Json, patch: Json) -> None:
    for name, value in patch.items():
        if isinstance(value, dict) and isinstance(into.get(name), dict):
            _merge(into[name], value)
        else:
            into[name] = copy.deepcopy(value)


def _clean(obj: Unstructured) -> Json:
    """Without what the server adds."""
    meta = obj.metadata
    annotations = {k: v for k, v in (meta.get("annotations") or {}).items() if k != LAST_APPLIED}
    kept = {"name": obj.name, "namespace": obj.namespace}
    more = {"labels": meta.get("labels"), "annotations": annotations}
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "metadata": {**kept, **{name: value for name, value in more.items() if value}},
        "spec": copy.deepcopy(obj.get("spec") or {}),
    }
