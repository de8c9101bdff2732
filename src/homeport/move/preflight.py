"""What has to be true before anything is changed. Every problem names the object and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from homeport.api.clusterctl.v1alpha3 import Provider
from homeport.api.meta import Resource, Unstructured
from homeport.capi.name import GROUP, Condition
from homeport.capi.object.joined import has_joined
from homeport.capi.version import parse
from homeport.client.protocol import Key
from homeport.move.graph import Selection
from homeport.move.node import Node
from homeport.move.replica import Mark, mark_of, same_content
from homeport.move.side import Side, find, listed

_PROVIDER = Provider.__resource__
_WORKLOADS = (
    Resource("apps", "v1", "Deployment", "deployments"),
    Resource("apps", "v1", "StatefulSet", "statefulsets"),
)
Existing = Mapping[tuple[str, str, Key], Unstructured]


def source_problems(selection: Selection) -> list[str]:
    """Pure, and looked at twice: before the source is paused, and after that."""
    found = [f"{node} is being deleted: wait until it is gone" for node in selection.nodes if node.deleting]
    found += [f"{text}, which would stay: move its namespace, or all of them" for text in selection.torn]
    found += [text for node in selection.clusters for text in _cluster_problems(node)]
    return found + [text for node in selection.nodes if _is_machine(node) for text in _machine_problems(node)]


def _cluster_problems(node: Node) -> Iterator[str]:
    status = node.status
    begun = status.get("initialization") or {}
    if not (begun.get("infrastructureProvisioned") or status.get("infrastructureReady")):
        wanted = Condition.INFRASTRUCTURE_READY
        yield f"{node}: its infrastructure is not provisioned yet: wait for the condition {wanted}"
    elif not (begun.get("controlPlaneInitialized") or node.reports(Condition.CONTROL_PLANE_INITIALIZED, "True")):
        wanted = Condition.CONTROL_PLANE_INITIALIZED
        yield f"{node}: its control plane is not initialized yet: wait for the condition {wanted}"


def _is_machine(node: Node) -> bool:
    return (node.kind.resource.group, node.kind.resource.kind) == (GROUP, "Machine")


def _machine_problems(node: Node) -> Iterator[str]:
    if not node.deleting and not has_joined(node.status.get("nodeRef"), node.status.get("conditions")):
        phase = node.status.get("phase") or "Pending"
        yield f"{node} has no Node yet (phase {phase}): wait until it runs, or delete it"


async def workload_problems(source: Side, selection: Selection) -> list[str]:
    """Control planes whose Pods run on the source can't move: their addresses and data belong to it."""
    owners = {node.uid: node for node in selection.nodes if node.uid not in selection.kept}
    found = []
    for kind in _WORKLOADS:
        for obj in await listed(source, kind):
            for ref in obj.metadata.get("ownerReferences") or ():
                if ref["uid"] in owners:
                    what, where = _named(owners, ref["uid"]), f"{kind.kind} {obj.namespace}/{obj.name}"
                    text = f"{what} runs on the source as {where}, and its address and data belong to the source"
                    found.append(f"{text}: it can't move. Delete it first, or move other namespaces with --namespace")
    return found


def _named(nodes: Mapping[str, Node], uid: str) -> str:
    """The control plane, after the object that a user made it with."""
    node = top = nodes[uid]
    seen = {uid}
    while above := [nodes[each] for each in sorted(top.owners) if each in nodes and each not in seen]:
        top = above[0]
        seen.add(top.uid)
    return str(node) if top is node else f"{top}: its control plane {node}"


def kind_problems(selection: Selection) -> list[str]:
    kinds = {node.kind: node for node in selection.nodes if node.kind.problem}
    return [f"{node}: {kind.problem}" for kind, node in kinds.items()]


async def provider_problems(source: Side, target: Side, selection: Selection) -> list[str]:
    """Of the providers whose objects move: the target must run them, in no older version."""
    needed = {node.kind.provider for node in selection.nodes} - {""}
    here, there = _versions(await listed(source, _PROVIDER)), _versions(await listed(target, _PROVIDER))
    if not there:
        return []  # a target without an inventory: its definitions are all that there is to compare
    found = []
    for name in sorted(needed & here.keys()):
        if name not in there:
            found.append(f"provider {name} is not in the inventory of the target: install it there")
        elif _older(there[name], here[name]):
            text = f"provider {name} has version {there[name]} on the target and {here[name]} on the source"
            found.append(f"{text}: upgrade the target first")
    return found


def _versions(providers: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    return {each["metadata"]["name"]: str(each.get("version") or "") for each in providers}


def _older(one: str, other: str) -> bool:
    try:
        return parse(one) < parse(other)
    except ValueError:
        return False


def occupied(node: Node, there: Unstructured | None) -> str:
    """Why the object can't be created on the target. '': it can, or it is a copy of this very object, or the same."""
    if there is None or is_copy(node, there) or node.kind.resource.namespaced is False or same_content(node, there):
        return ""
    return f"{node} exists on the target and differs: delete or rename it on one side"


def is_copy(node: Node, there: Unstructured) -> Mark | None:
    mark = mark_of(there)
    return mark if mark is not None and mark.uid == node.uid else None


async def target_problems(target: Side, selection: Selection) -> list[str]:
    existing = await read_existing(target, selection)
    found = (occupied(node, existing.get(node.place)) for node in selection.nodes if not node.kind.problem)
    return [*(text for text in found if text), *await _missing(target, selection)]


async def _missing(target: Side, selection: Selection) -> list[str]:
    """What a plane creates for itself, and this target has not."""
    found = []
    for node, needed in selection.presumed:
        if needed.kind.problem or await find(target, needed.kind.resource, needed.key) is None:
            text = f"{node} needs {needed}, which every plane creates for itself and the target does not have"
            found.append(f"{text}: start the target with the same components, and enable the same providers there")
    return found


async def read_existing(target: Side, selection: Selection) -> Existing:
    """Everything of these kinds that the target has."""
    found = {}
    for kind in {node.kind.resource: None for node in selection.nodes if not node.kind.problem}:
        for obj in await listed(target, kind):
            found[kind.group, kind.kind, Key(obj.namespace, obj.name)] = obj
    return found
