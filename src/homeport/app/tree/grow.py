"""Makes the tree of what was read. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from homeport.api.meta import Unstructured
from homeport.app.tree.branch import Branch, Reference, Tree
from homeport.app.tree.read import Found, source_of
from homeport.capi.name import CONTROL_PLANE_LABEL, GROUP, TEMPLATE_SUFFIX, Condition
from homeport.capi.object.cause import Part, ReportedProblem, blamed, complaint
from homeport.capi.object.summary import conditions_of
from homeport.machinery.condition import find
from homeport.runtime.cache import deleting
from homeport.runtime.clock import parse_time

INFRASTRUCTURE, CONTROL_PLANE, WORKERS, ADDONS, OTHER = "Infrastructure", "Control plane", "Workers", "Add-ons", "Other"
_ORDER = ("", INFRASTRUCTURE, CONTROL_PLANE, WORKERS, ADDONS, OTHER)
_WORKERS = frozenset({"MachineDeployment", "MachinePool", "MachineSet"})
_ADDONS = frozenset({"ClusterAddon", "TenantAddon", "ServiceSet", "ClusterResourceSetBinding"})
_LEADING = (Condition.AVAILABLE, Condition.READY)


def grow(found: Found, now: float | None, *, everything: bool = False, memory: Memory | None = None) -> list[Tree]:
    """One tree for each root. `everything`: with templates, bootstrap configurations and empty MachineSets.

    Without `now`, nothing has an age. `memory` makes it quick to do again after a few objects changed.
    """
    memory = memory or Memory()
    memory.forget_others(found.objects)
    forest = _Forest(found.objects, now, everything, memory)
    made = []
    for root in found.roots:
        part = forest.part(root)
        text, at = _sentence(part, memory)
        made.append(Tree(forest.branch(part), text, at, found.unreadable))
    return made


def _sentence(part: Part, memory: Memory) -> tuple[str, Reference | None]:
    """A root that is healthy has no cause, though one of its parts may be under way."""
    root: Any = part.object
    blame = blamed(part, memory.complaint)
    if blame is None or (memory.complaint(root) is None and memory.facts(root).branch.healthy):
        return "", None
    found: Any = blame[1]
    return blame[0], Reference(str(found.get("kind")), found.namespace, found.name, str(found.get("apiVersion")))


class _Forest:
    def __init__(self, objects: Sequence[Unstructured], now: float | None, everything: bool, memory: Memory) -> None:
        self._now = now
        self._everything = everything
        self._memory = memory
        self._below: dict[str, list[Unstructured]] = defaultdict(list)
        here = {each.uid: each for each in objects}
        # Of kinds with the same name, that of Cluster API counts.
        ordered = sorted(objects, key=lambda each: str(each.get("apiVersion")).startswith(f"{GROUP}/"))
        by_name = {(str(each.get("kind")), each.namespace, each.name): each.uid for each in ordered}
        for each in objects:
            parent = _owner(each, here) or _named_owner(each, by_name)
            if parent and parent != each.uid:
                self._below[parent].append(each)

    def part(self, obj: Unstructured, above: frozenset[str] = frozenset()) -> Part:
        seen = above | {obj.uid}
        children = [each for each in self._children(obj) if each.uid not in seen]
        children.sort(key=lambda each: (_ORDER.index(role(each, obj)), str(each.get("kind")), each.name))
        return Part(obj, children=[self.part(each, seen) for each in children])

    def _children(self, obj: Unstructured) -> list[Unstructured]:
        found: list[Unstructured] = []
        for each in self._below.get(obj.uid, ()):
            kind = str(each.get("kind"))
            if self._everything:
                found.append(each)
            elif kind == "MachineSet":
                found += self._of_set(obj, each)
            elif not kind.endswith(TEMPLATE_SUFFIX) and not self._is_ready_config(each):
                found.append(each)
        return found

    def _of_set(self, deployment: Unstructured, machine_set: Unstructured) -> list[Unstructured]:
        """Its Machines, if it is the only MachineSet that has any: the level would tell nothing."""
        sets = [each for each in self._below.get(deployment.uid, ()) if each.get("kind") == "MachineSet"]
        used = [each for each in sets if self._below.get(each.uid)]
        if machine_set not in used:
            return []
        return self._below[machine_set.uid] if len(used) == 1 else [machine_set]

    def branch(self, part: Part, above: Unstructured | None = None) -> Branch:
        obj: Any = part.object
        facts = self._memory.facts(obj)
        children = [self.branch(each, obj) for each in part.children]
        place = "" if above is None else role(obj, above)
        age = self._age(obj)
        problem = facts.problem
        if problem and facts.waits and any(child.problem for each in children for child in each.walk()):
            problem = ""  # something below it reports more
        own = facts.branch
        if not children and (own.role, own.age_seconds, own.problem) == (place, age, problem):
            return own
        made = msgspec.structs.replace(
            own, role=place, age_seconds=age, problem=problem, children=[*children, *facts.nodes]
        )
        if not children:
            facts.branch = made
        return made

    def _age(self, obj: Unstructured) -> float | None:
        created = obj.metadata.get("creationTimestamp")
        return max(0.0, self._now - parse_time(created)) if created and self._now is not None else None

    def _is_ready_config(self, obj: Unstructured) -> bool:
        """A bootstrap configuration that has done its work."""
        return "bootstrap" in str(obj.get("apiVersion")) and self._memory.complaint(obj) is None


class _Facts:
    """What one object says, wherever it is in the tree."""

    __slots__ = ("branch", "nodes", "object", "problem", "said", "waits")

    def __init__(self, obj: Unstructured) -> None:
        self.object = obj
        self.said = complaint(obj)
        self.waits = self.said is not None and self.said.waits
        conditions = list(conditions_of(obj))
        healthy = _healthy(conditions)
        explained = any(each.get("status") == "False" and each.get("message") for each in conditions)
        self.problem = self.said.message if self.said is not None and (explained or not healthy) else ""
        self.nodes = _node(obj)
        self.branch = Branch(
            kind=str(obj.get("kind")),
            name=obj.name,
            namespace=obj.namespace,
            api_version=str(obj.get("apiVersion")),
            healthy=healthy,
            state=state(obj, conditions),
            version=version(obj),
            replicas=replicas(obj),
            problem=self.problem,
            conditions=[dict(each) for each in conditions],
            children=self.nodes,
        )


class Memory:
    """What each object says, until it changes: a live view looks at the same 10,000 objects again and again."""

    def __init__(self) -> None:
        self._held: dict[str, _Facts] = {}

    def facts(self, obj: Unstructured) -> _Facts:
        held = self._held.get(obj.uid)
        if held is None or held.object is not obj:
            held = self._held[obj.uid] = _Facts(obj)
        return held

    def complaint(self, obj: Any) -> ReportedProblem | None:
        return self.facts(obj).said

    def forget_others(self, objects: Sequence[Unstructured]) -> None:
        if len(self._held) > 2 * len(objects):
            kept = {each.uid for each in objects}
            self._held = {uid: held for uid, held in self._held.items() if uid in kept}


def _owner(obj: Unstructured, here: dict[str, Unstructured]) -> str:
    refs = [ref for ref in obj.metadata.get("ownerReferences") or () if ref.get("uid") in here]
    refs.sort(key=lambda ref: not ref.get("controller"))
    return str(refs[0]["uid"]) if refs else ""


def _named_owner(obj: Unstructured, by_name: dict[tuple[str, str, str], str]) -> str:
    """For objects that name what they belong to, because owner references don't reach there."""
    kind = obj.get("kind")
    if kind == "Cluster" and (source := source_of(obj)) is not None:
        return by_name.get((source[0], *source[1]), "")
    spec = obj.get("spec") or {}
    if kind == "ClusterAddon":
        return by_name.get(("Cluster", obj.namespace, str(spec.get("clusterName") or "")), "")
    if kind == "TenantAddon":
        return by_name.get(("TenantCluster", obj.namespace, (spec.get("clusterRef") or {}).get("name", "")), "")
    return ""


def role(obj: Unstructured, above: Unstructured) -> str:
    """The section below a Cluster, or below a platform's object, that an object is in."""
    kind, spec = str(obj.get("kind")), above.get("spec") or {}
    if kind in _ADDONS:
        return ADDONS
    if above.get("kind") != "Cluster" or not isinstance(spec, dict):
        return ""
    for field, name in (("infrastructureRef", INFRASTRUCTURE), ("controlPlaneRef", CONTROL_PLANE)):
        ref = spec.get(field) or {}
        if (ref.get("kind"), ref.get("name")) == (kind, obj.name):
            return name
    if kind in _WORKERS:
        return WORKERS
    if kind == "Machine":
        return CONTROL_PLANE if CONTROL_PLANE_LABEL in (obj.metadata.get("labels") or {}) else WORKERS
    return OTHER


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


def _node(obj: Unstructured) -> list[Branch]:
    """The Node of a Machine, as the Machine reports it: the workload cluster itself may not answer."""
    status = obj.get("status") or {}
    name = (status.get("nodeRef") or {}).get("name")
    if obj.get("kind") != "Machine" or not name:
        return []
    ready = find(conditions_of(obj), Condition.NODE_READY) or {}
    good = ready.get("status") == "True"
    text = "" if good else str(ready.get("message") or ready.get("reason") or "").strip("* ")
    version = str((status.get("nodeInfo") or {}).get("kubeletVersion") or "")
    return [Branch("Node", name, healthy=good, state="Ready" if good else "Not ready", version=version, problem=text)]
