"""The topology of a Cluster: what its class fills in, what it may say, and how it may change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from homeport.api.cluster.v1beta2 import ClusterClass, Topology
from homeport.capi import name
from homeport.capi.version import is_valid, same
from homeport.client.errors import Cause, NotFound
from homeport.client.protocol import Client, Key
from homeport.core.topology import version
from homeport.core.topology.compatibility import classes, incompatible
from homeport.core.topology.part import WORKERS, has_check, is_autoscaled, part_causes
from homeport.core.topology.variable import variable
from homeport.core.topology.variable.value import fill_in, value_causes
from homeport.machinery import condition
from homeport.machinery.schema.name import label_value

Json = dict[str, Any]

_PATH = "spec.topology"
_CHECKED = "machineDeployments"  # pools have no health checks of their own and count by themselves


class TopologyAdmission:
    """`client` looks up classes, and what a Cluster consists of when its version changes."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def default(self, cluster: Json, old: Json | None) -> None:
        topology = topology_of(cluster)
        if not topology or not _is_sound(topology):
            return
        if topology.get("version") and not topology["version"].startswith("v"):
            topology["version"] = f"v{topology['version']}"
        if _deleting(cluster) or topology == topology_of(old):
            return
        found = await self._class_of(cluster)
        if found is not None:
            fill_in(topology, variable.definitions(found))

    async def validate(self, cluster: Json, old: Json | None) -> list[Cause]:
        topology, was = topology_of(cluster), topology_of(old)
        if not topology:
            return [_forbidden("can't be removed from an existing Cluster", _PATH)] if was else []
        causes = list(_concurrency(cluster))
        if _deleting(cluster) or topology == was:
            return causes  # a label or a finalizer must always be possible, whatever became of the class
        causes += _static(topology)
        if causes:
            return causes
        found = await self._class_of(cluster)
        if found is not None:
            causes += class_causes(topology, found)
            causes += value_causes(topology, variable.definitions(found), was)
        if old is not None:
            causes += await self._change(cluster, old, found)
        return causes

    async def warn(self, cluster: Json, old: Json | None) -> list[str]:
        topology = topology_of(cluster)
        if not topology or _deleting(cluster) or topology == topology_of(old):
            return []
        namespace, called = class_key(cluster)
        found = await self._class_of(cluster)
        if found is None:
            return [
                f"{_PATH}.classRef: ClusterClass {namespace}/{called} does not exist: the topology was not "
                "validated, and nothing is created until it exists"
            ]
        texts = [f"{_PATH}.classRef: ClusterClass {namespace}/{called}: {text}" for text in _class_troubles(found)]
        if old is not None and name.TOPOLOGY_UNSAFE_VERSION in _annotations(cluster):
            texts.append(f"{_PATH}.version: not checked, because of the annotation {name.TOPOLOGY_UNSAFE_VERSION}")
        return texts

    async def _class_of(self, cluster: Json) -> Json | None:
        return await self._class(*class_key(cluster))

    async def _class(self, namespace: str, called: str) -> Json | None:
        if not called:
            return None
        try:
            return dict(await self._client.get(ClusterClass.__resource__, Key(namespace, called)))
        except NotFound:
            return None

    # -- changes -----------------------------------------------------------------------------------------------

    async def _change(self, cluster: Json, old: Json, found: Json | None) -> list[Cause]:
        annotations = _annotations(cluster)
        if not class_key(old)[1]:
            if name.TOPOLOGY_UNSAFE_CLASS_NAME in annotations:
                return []
            why = "a class can't be set on a Cluster that was created without one: create a new Cluster from the class"
            return [_forbidden(why, f"{_PATH}.classRef")]
        causes = []
        if name.TOPOLOGY_UNSAFE_VERSION not in annotations:
            causes += await self._version_change(cluster, old, found)
        if class_key(cluster) != class_key(old):
            causes += await self._class_change(cluster, old, found)
        return causes

    async def _version_change(self, cluster: Json, old: Json, found: Json | None) -> list[Cause]:
        now, before = str(topology_of(cluster)["version"]), str(topology_of(old).get("version") or "")
        if not is_valid(before) or same(now, before):
            return []
        listed = bool(((found or {}).get("spec") or {}).get("kubernetesVersions"))
        why = version.step_trouble(before, now, listed=listed)
        if not why:
            unfinished = await version.unfinished(self._client, old, before)
            why = f"the upgrade to {before} is not finished: {unfinished}" if unfinished else ""
        return [_invalid(f"{_PATH}.version", now, why)] if why else []

    async def _class_change(self, cluster: Json, old: Json, found: Json | None) -> list[Cause]:
        path, before = f"{_PATH}.classRef", "/".join(class_key(old))
        if found is None:
            return [_invalid(path, "/".join(class_key(cluster)), "ClusterClass does not exist: create it first")]
        was = await self._class(*class_key(old))
        if was is None:
            why = f"ClusterClass {before} no longer exists, so the change can't be validated: create it again"
            return [_forbidden(why, path)]
        return [
            Cause(each.reason, f"Forbidden: from class {before}: {each.field}: {_bare(each.message)}", path)
            for each in incompatible(was, found)
        ]


# -- reading ---------------------------------------------------------------------------------------------------------


def topology_of(cluster: Mapping[str, Any] | None) -> Json:
    """Defaults come before the schema is looked at, so any value is possible here: only objects are used."""
    spec = (cluster or {}).get("spec")
    found = spec.get("topology") if isinstance(spec, dict) else None
    return found if isinstance(found, dict) else {}


def class_key(cluster: Json) -> tuple[str, str]:
    """Namespace and name of its class; '' for no class."""
    ref = topology_of(cluster).get("classRef") or {}
    return str(ref.get("namespace") or cluster["metadata"].get("namespace") or ""), str(ref.get("name") or "")


def _annotations(cluster: Json) -> Json:
    return cluster["metadata"].get("annotations") or {}


def _deleting(cluster: Json) -> bool:
    return bool(cluster["metadata"].get("deletionTimestamp"))


def _is_sound(topology: Json) -> bool:
    """Defaults come before the schema is looked at: what does not fit it is left for that to tell."""
    try:
        msgspec.convert(topology, Topology)
    except msgspec.ValidationError:
        return False
    return True


def _class_troubles(cluster_class: Json) -> Iterator[str]:
    """What its controller found wrong with the class as it is now."""
    generation = cluster_class["metadata"].get("generation")
    for each in (cluster_class.get("status") or {}).get("conditions") or ():
        wanted = each.get("type") in (name.Condition.VARIABLES_READY, name.Condition.REF_VERSIONS_UP_TO_DATE)
        outdated = each.get("reason") == name.Reason.REF_VERSIONS_NOT_UP_TO_DATE
        if wanted and each.get("observedGeneration") == generation and not condition.is_true([each], each["type"]):
            if not outdated:
                yield str(each.get("message") or each.get("reason"))


# -- by itself -------------------------------------------------------------------------------------------------------


def _static(topology: Json) -> Iterator[Cause]:
    if not (topology.get("classRef") or {}).get("name"):
        yield Cause.required(f"{_PATH}.classRef.name", "set the name of the ClusterClass")
    text = str(topology.get("version", ""))
    if not (text.startswith("v") and is_valid(text)):
        why = "must be a semantic version with a leading v, for example v1.30.2"
        yield _invalid(f"{_PATH}.version", text, why)
    yield from part_causes(topology.get("controlPlane") or {}, f"{_PATH}.controlPlane", worker=False)
    for part in WORKERS:
        seen: set[str] = set()
        for path, each in _workers(topology, part):
            called = str(each.get("name") or "")
            if not called:
                yield Cause.required(f"{path}.name", "its machines are identified by this name")
            if called in seen:
                yield Cause("FieldValueDuplicate", f'Duplicate value: "{called}"', f"{path}.name")
            seen.add(called)
            for wrong in label_value(called):
                yield _invalid(f"{path}.name", called, wrong)
            yield from part_causes(each, path, worker=True)


def _concurrency(cluster: Json) -> Iterator[Cause]:
    text = _annotations(cluster).get(name.TOPOLOGY_UPGRADE_CONCURRENCY)
    if text is not None and (not str(text).isdigit() or int(text) < 1):
        path = f"metadata.annotations[{name.TOPOLOGY_UPGRADE_CONCURRENCY}]"
        yield _invalid(path, str(text), "must be the number of MachineDeployments to upgrade in parallel: 1 or more")


def _workers(topology: Json, part: str) -> list[tuple[str, Json]]:
    listed = (topology.get("workers") or {}).get(part) or ()
    return [(f"{_PATH}.workers.{part}[{i}]", each) for i, each in enumerate(listed)]


# -- by its class ----------------------------------------------------------------------------------------------------


def class_causes(topology: Json, cluster_class: Json) -> Iterator[Cause]:
    """What does not fit the class, variables apart."""
    spec = cluster_class.get("spec") or {}
    offered = spec.get("kubernetesVersions") or ()
    if offered and topology.get("version") not in offered:
        why = f"the class allows {', '.join(offered)}"
        yield _invalid(f"{_PATH}.version", str(topology.get("version")), why)
    yield from _plane_check(topology.get("controlPlane") or {}, spec.get("controlPlane") or {})
    for part in WORKERS:
        known = classes(cluster_class, part)
        for path, each in _workers(topology, part):
            if each.get("class") not in known:
                there = ", ".join(known) or "none"
                why = f"the ClusterClass has no such class of {part}: expected one of {there}"
                yield _invalid(f"{path}.class", str(each.get("class")), why)
            elif part == _CHECKED:
                yield from _check(each, known[each.get("class")], path)
                yield from _count(each, known[each.get("class")], path)


def _plane_check(part: Json, known: Json) -> Iterator[Cause]:
    path = f"{_PATH}.controlPlane"
    if has_check(part) and not known.get("machineInfrastructure"):
        why = "the class has no machineInfrastructure, so its control planes have no Machines that could be checked"
        yield _forbidden(why, f"{path}.healthCheck")
    yield from _check(part, known, path)


def _check(part: Json, known: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if (part.get("healthCheck") or {}).get("enabled") is True and not has_check(part) and not has_check(known):
        why = "neither the class nor the Cluster defines a health check: set checks or remediation"
        yield _forbidden(why, f"{path}.healthCheck.enabled")


def _count(part: Json, known: Mapping[str, Any], path: str) -> Iterator[Cause]:
    if part.get("replicas") is not None and (is_autoscaled(part) or is_autoscaled(known)):
        why = "an autoscaler manages the replicas (see the annotations): remove this field"
        yield _invalid(f"{path}.replicas", str(part["replicas"]), why)


def _invalid(path: str, value: str, why: str) -> Cause:
    return Cause.invalid(path, f'"{value}": {why}')


def _forbidden(why: str, path: str) -> Cause:
    return Cause.forbidden(path, why)


def _bare(message: str) -> str:
    return message.removeprefix("Forbidden: ")
