"""What one object says about itself, wherever it is in a tree. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from homeport.api.meta import Unstructured
from homeport.app.tree.branch import Branch
from homeport.capi.name import Condition
from homeport.capi.object.cause import complaint, unreachable
from homeport.capi.object.summary import conditions_of
from homeport.machinery.condition import find
from homeport.runtime.cache import deleting

_LEADING = (Condition.AVAILABLE, Condition.READY)


class Facts:
    """Worked out once for each version of an object: live views look at the same 10,000 objects again and again."""

    __slots__ = ("healthy", "lost", "nodes", "object", "problem", "runs", "said", "state", "version", "waits")

    def __init__(self, obj: Unstructured) -> None:
        self.object = obj
        conditions = conditions_of(obj)
        self.said = complaint(obj, conditions)
        self.lost = unreachable(obj, conditions)
        self.waits = self.said is not None and self.said.waits
        self.healthy = _healthy(conditions)
        explained = any(each.get("status") == "False" and each.get("message") for each in conditions)
        self.problem = self.said.message if self.said is not None and (explained or not self.healthy) else ""
        self.nodes = _node(obj, conditions)
        # Of a root: nothing is wrong with it, or no more than that it can't be managed now.
        self.runs = bool(self.healthy) and (self.said is None or self.lost is not None)
        self.state = state(obj, conditions)
        self.version = version(obj)

    def branch(self, role: str, problem: str, children: list[Branch], age: float | None = None) -> Branch:
        obj = self.object
        return Branch(
            kind=str(obj.get("kind")),
            name=obj.name,
            namespace=obj.namespace,
            api_version=str(obj.get("apiVersion")),
            role=role,
            healthy=self.healthy,
            state=self.state,
            version=self.version,
            replicas=replicas(obj),
            problem=problem,
            age_seconds=age,
            conditions=[dict(each) for each in conditions_of(obj)],
            children=children,
        )


def _healthy(conditions: Iterable[Any]) -> bool | None:
    found = next((c for kind in _LEADING if (c := find(conditions, kind)) is not None), None)
    return None if found is None else found.get("status") == "True"


def state(obj: Unstructured, conditions: Sequence[Any]) -> str:
    """The summary condition, or what the object is doing instead."""
    if deleting(obj):
        return "Deleting"
    status = obj.get("status") or {}
    phase = str(status.get("phase") or status.get("state") or "")
    for kind in _LEADING:
        found = find(conditions, kind)
        if found is None:
            continue
        if found.get("status") == "True":
            return kind
        return phase if phase and phase not in ("Running", "Provisioned") else f"Not {kind.lower()}"
    return phase


def version(obj: Unstructured) -> str:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    found = status.get("version") or spec.get("version") or spec.get("kubernetesVersion") or ""
    return found if isinstance(found, str) else ""


def replicas(obj: Unstructured) -> str:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    desired = spec.get("replicas")
    if not isinstance(desired, int):
        return ""
    return f"{status.get('readyReplicas') or 0} of {desired}"


def _node(obj: Unstructured, conditions: Sequence[Any]) -> list[Branch]:
    """The Node of a Machine, as the Machine reports it: the workload cluster itself may not answer."""
    status = obj.get("status") or {}
    name = (status.get("nodeRef") or {}).get("name")
    if obj.get("kind") != "Machine" or not name:
        return []
    ready = find(conditions, Condition.NODE_READY) or {}
    good = ready.get("status") == "True"
    text = "" if good else str(ready.get("message") or ready.get("reason") or "").strip("* ")
    version = str((status.get("nodeInfo") or {}).get("kubeletVersion") or "")
    return [Branch("Node", name, healthy=good, state="Ready" if good else "Not ready", version=version, problem=text)]
