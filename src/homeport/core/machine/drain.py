"""Which Pods leave a Node before its machine goes, in which order, and what holds them. Pure: the reconciler evicts.

The first rule that says something other than "evict it" decides: already deleted on a dead Node, DaemonSet, static Pod,
the Pod's own label, the MachineDrainRules by name. Pods of the lowest order go first; the others wait for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDrainRule
from homeport.api.meta import Unstructured
from homeport.capi.name import POD_DRAIN_LABEL
from homeport.client.protocol import Key
from homeport.machinery.selector import from_label_selector
from homeport.runtime.cache import key_of
from homeport.runtime.clock import parse_time

Behavior = Literal["Drain", "Skip", "WaitCompleted"]

_MIRROR = "kubernetes.io/config.mirror"
_SHOWN = 3
UNREACHABLE_GRACE_SECONDS = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of one Pod. `rule` names what decided, for people."""

    behavior: Behavior
    order: int = 0
    rule: str = ""


_EVICT = Verdict("Drain")


@dataclass(frozen=True, slots=True)
class DrainContext:
    """What a verdict depends on beside the Pod itself."""

    rules: Sequence[MachineDrainRule] = ()  # those that match the machine, by name
    namespaces: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # labels by name
    orphaned: frozenset[Key] = frozenset()  # DaemonSets that Pods name and that are not there
    unreachable: bool = False  # the kubelet no longer removes Pods
    now: float = 0.0


@dataclass(slots=True)
class Plan:
    """The Pods of a Node, sorted by what is to be done about them now."""

    evict: list[Unstructured] = field(default_factory=list)
    later: list[Unstructured] = field(default_factory=list)  # a higher order: after those above
    going: list[Unstructured] = field(default_factory=list)  # being deleted, not gone yet
    finishing: list[Unstructured] = field(default_factory=list)  # left to complete by themselves
    finishing_later: list[Unstructured] = field(default_factory=list)
    skipped: list[Unstructured] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return not (self.evict or self.later or self.going or self.finishing or self.finishing_later)


def matching_rules(rules: Iterable[MachineDrainRule], machine: Machine, cluster: Cluster) -> list[MachineDrainRule]:
    """The rules for this machine, by name: the first that matches a Pod counts."""

    def matches(rule: MachineDrainRule) -> bool:
        if not rule.spec.machines:
            return True
        return any(
            _selects(each.selector, machine.metadata.labels)
            and _selects(each.cluster_selector, cluster.metadata.labels)
            for each in rule.spec.machines
        )

    return sorted((rule for rule in rules if matches(rule)), key=lambda rule: rule.metadata.name)


def judge(pod: Unstructured, around: DrainContext) -> Verdict:
    deleted_at = pod.metadata.get("deletionTimestamp")
    if around.unreachable and deleted_at and around.now - parse_time(deleted_at) > UNREACHABLE_GRACE_SECONDS:
        return Verdict("Skip", rule="deleted, and the Node does not answer")
    daemon_set = daemon_set_of(pod)
    if daemon_set is not None and not finished(pod) and daemon_set not in around.orphaned:
        return Verdict("Skip", rule=f"DaemonSet {daemon_set}")
    if _MIRROR in (pod.metadata.get("annotations") or {}):
        return Verdict("Skip", rule="static Pod")
    return _by_label(pod) or _by_rule(pod, around) or _EVICT


def plan(pods: Iterable[Unstructured], around: DrainContext) -> Plan:
    judged = [(pod, judge(pod, around)) for pod in sorted(pods, key=key_of)]
    # Pods that were left to complete no longer block once they have completed.
    open_ = [
        (pod, verdict)
        for pod, verdict in judged
        if verdict.behavior == "Drain" or (verdict.behavior == "WaitCompleted" and not finished(pod))
    ]
    first = min((verdict.order for _, verdict in open_), default=0)
    made = Plan(skipped=[pod for pod, verdict in judged if verdict.behavior == "Skip"])
    for pod, verdict in open_:
        now = verdict.order == first
        if verdict.behavior == "WaitCompleted":
            (made.finishing if now else made.finishing_later).append(pod)
        elif pod.metadata.get("deletionTimestamp"):
            made.going.append(pod)
        else:
            (made.evict if now else made.later).append(pod)
    return made


def explain(made: Plan, refused: Mapping[str, Sequence[Unstructured]], evicted: Sequence[Unstructured] = ()) -> str:
    """What still holds the Node, the hardest first. `refused`: why Pods could not be evicted, and which."""
    lines = [f"{_pods(pods)} can't be evicted: {why}" for why, pods in sorted(refused.items())]
    going = sorted([*made.going, *evicted], key=key_of)
    if going:
        lines.append(f"{_pods(going)} {_be(going)} shutting down{_finalizers(going)}")
    if made.finishing:
        lines.append(f"{_pods(made.finishing)} {_be(made.finishing)} left to complete")
    if made.later:
        lines.append(f"then {_pods(made.later)} will be evicted")
    if made.finishing_later:
        lines.append(f"then {_pods(made.finishing_later)} will be left to complete")
    return "; ".join(lines)


def daemon_set_of(pod: Mapping[str, Any]) -> Key | None:
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller") and owner.get("kind") == "DaemonSet":
            return Key(pod["metadata"].get("namespace", ""), owner["name"])
    return None


def finished(pod: Mapping[str, Any]) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def unreachable(node: Mapping[str, Any]) -> bool:
    """The kubelet has not reported for long, so it will not clean up anything on this Node."""
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(c.get("type") == "Ready" and c.get("status") == "Unknown" for c in conditions)


def _by_label(pod: Unstructured) -> Verdict | None:
    match str((pod.metadata.get("labels") or {}).get(POD_DRAIN_LABEL, "")).lower().replace("-", ""):
        case "skip":
            return Verdict("Skip", rule=f"label {POD_DRAIN_LABEL}")
        case "waitcompleted":
            return Verdict("WaitCompleted", rule=f"label {POD_DRAIN_LABEL}")
        case _:
            return None


def _by_rule(pod: Unstructured, around: DrainContext) -> Verdict | None:
    labels = pod.metadata.get("labels") or {}
    space = around.namespaces.get(pod.namespace, {})
    for rule in around.rules:
        if not rule.spec.pods or any(
            _selects(each.selector, labels) and _selects(each.namespace_selector, space) for each in rule.spec.pods
        ):
            behavior = cast(Behavior, rule.spec.drain.behavior)  # the API lets nothing else in
            return Verdict(behavior, rule.spec.drain.order or 0, f"MachineDrainRule {rule.metadata.name}")
    return None


def _selects(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Here a selector that is left out selects everything."""
    return not selector or from_label_selector(selector).matches(labels)


def _pods(pods: Sequence[Unstructured]) -> str:
    names = ", ".join(str(key_of(pod)) for pod in pods[:_SHOWN])
    more = f" and {len(pods) - _SHOWN} more" if len(pods) > _SHOWN else ""
    return f"{'Pod' if len(pods) == 1 else 'Pods'} {names}{more}"


def _be(pods: Sequence[Unstructured]) -> str:
    return "is" if len(pods) == 1 else "are"


def _finalizers(pods: Sequence[Unstructured]) -> str:
    held = sorted({name for pod in pods for name in pod.metadata.get("finalizers") or ()})
    return f" (held by {', '.join(held)})" if held else ""
