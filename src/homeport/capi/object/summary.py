"""Conditions made from conditions: a summary of one object's, an aggregate over many objects', a mirror of another's.

Problems come before what is unknown, and that before mere information. A condition is a problem when it is False; one
of negative polarity (Deleting, ScalingUp, ...) when it is True. What is expected and missing counts as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from homeport.api.meta import Object, Unstructured
from homeport.capi.contract import conditions as untyped_conditions
from homeport.capi.name import CONTROL_PLANE_LABEL, Reason
from homeport.capi.name import Condition as Type
from homeport.capi.resolution import plural
from homeport.machinery.condition import Condition, Status, find, put
from homeport.runtime.cache import key_of, labels_of

MESSAGES = 3  # so many different messages of an aggregate are shown ...
NAMES = 3  # ... each with the names of so many objects: a control plane usually has three machines
MESSAGE_LIMIT = 10240  # characters; the API refuses more than 32768, nobody reads that many

_BULLET = re.compile(r"\s*\*\s+")

AnyObject = Object | Unstructured


class Priority(IntEnum):
    """The most important first."""

    ISSUE = 0
    UNKNOWN = 1
    INFO = 2


class Reasons(NamedTuple):
    """The reason of what is made, by the most important thing in it."""

    issue: str
    unknown: str
    info: str


READY = Reasons(Reason.NOT_READY, Reason.READY_UNKNOWN, Reason.READY)
AVAILABLE = Reasons(Reason.NOT_AVAILABLE, Reason.AVAILABLE_UNKNOWN, Reason.AVAILABLE)
UP_TO_DATE = Reasons(Reason.NOT_UP_TO_DATE, Reason.UP_TO_DATE_UNKNOWN, Reason.UP_TO_DATE)

Judge = Callable[[Mapping[str, Any]], Priority]


def judge(*negative: str) -> Judge:
    """How important a condition is, when those types have negative polarity."""

    def judged(found: Mapping[str, Any]) -> Priority:
        if found.get("status") not in ("True", "False"):
            return Priority.UNKNOWN
        good = "False" if found["type"] in negative else "True"
        return Priority.INFO if found["status"] == good else Priority.ISSUE

    return judged


def conditions_of(obj: AnyObject) -> list[Condition]:
    """Of an object of any kind, in the metav1 form."""
    if isinstance(obj, Unstructured):
        return untyped_conditions(obj)
    status: Any = getattr(obj, "status", None)
    found: list[Condition] = getattr(status, "conditions", None) or []
    return found


def _made(target: str, status: Status, reason: str, message: str) -> Condition:
    if len(message) > MESSAGE_LIMIT:
        message = message[: MESSAGE_LIMIT - 4].rstrip() + " ..."
    return {"type": target, "status": status, "reason": reason, "message": message}


def _status(worst: Priority, *, negative: bool = False) -> Status:
    if worst is Priority.UNKNOWN:
        return "Unknown"
    return "True" if (worst is Priority.INFO) != negative else "False"


# -- summary ---------------------------------------------------------------------------------------------------------


def summary(
    conditions: Iterable[Mapping[str, Any]],
    target: str,
    types: Sequence[str],
    *,
    reasons: Reasons,
    negative: Iterable[str] = (),
    optional: Iterable[str] = (),
    priority: Judge | None = None,
    override: Mapping[str, Mapping[str, Any]] | None = None,
) -> Condition:
    """The conditions `types` of one object as one of positive polarity; `types` is in order of relevance.

    `optional` ones do not count while missing; `override` replaces conditions in the message and in the count.
    """
    known = {c["type"]: {**c, **((override or {}).get(c["type"]) or {})} for c in conditions if c["type"] in types}
    wanted = [known.get(name) or _unreported(name) for name in types if name in known or name not in set(optional)]
    if not wanted:
        raise ValueError(f"nothing to make {target} of: none of {', '.join(types)} is there")
    judged = [(found, (priority or judge(*negative))(found)) for found in wanted]
    worst = min(importance for _, importance in judged)
    lines = [
        f"* {found['type']}:{_indented(found.get('message') or found.get('reason') or '')}"
        for found, importance in judged
        if importance is not Priority.INFO or (worst is Priority.INFO and found.get("message"))
    ]
    return _made(target, _status(worst), reasons[worst], "\n".join(lines))


def _unreported(kind: str) -> Condition:
    return {
        "type": kind,
        "status": "Unknown",
        "reason": Reason.NOT_YET_REPORTED,
        "message": f"{kind} has not been reported yet",
    }


def _indented(message: str) -> str:
    """After a colon: on the same line, or as a list of its own below."""
    lines = message.split("\n")
    if len(lines) == 1 and not _BULLET.match(message):
        return f" {message}"
    mixed = not all(_BULLET.match(line) for line in lines)
    prefixes = ("  " if not mixed else "    " if _BULLET.match(line) else "  * " for line in lines)
    return "\n" + "\n".join(prefix + line for prefix, line in zip(prefixes, lines, strict=True))


# -- aggregate -------------------------------------------------------------------------------------------------------


class _Group:
    """The objects of one kind that say the same."""

    def __init__(self, kind: str, message: str) -> None:
        self.kind = kind
        self.message = message
        self.importance = Priority.INFO
        self.names: list[tuple[bool, str]] = []  # (not of the control plane, name): those of the control plane first

    def add(self, name: str, of_control_plane: bool, importance: Priority) -> None:
        self.names.append((not of_control_plane, name))
        self.importance = min(self.importance, importance)

    @property
    def order(self) -> tuple[Any, ...]:
        first = min(not_control_plane for not_control_plane, _ in self.names)
        return (self.kind, first, self.importance, -len(self.names), sorted(self.names))

    def line(self) -> str:
        names = [name for _, name in sorted(self.names)]
        shown = ", ".join(names[:NAMES]) + (f" and {len(names) - NAMES} more" if len(names) > NAMES else "")
        return f"* {_counted(self.kind, len(names))} {shown}:{_indented(self.message)}"


def aggregate(
    objects: Sequence[AnyObject],
    source: str,
    target: str = "",
    *,
    reasons: Reasons,
    negative: bool = False,
    priority: Judge | None = None,
) -> Condition:
    """One condition of many objects as one. `negative`: both have negative polarity."""
    if not objects:
        raise ValueError(f"nothing to make {target or source} of: no objects are given")
    judged = priority or judge(*((source,) if negative else ()))
    found = [(obj, find(conditions_of(obj), source) or _unreported(source)) for obj in objects]
    worst = min(judged(condition) for _, condition in found)
    groups: dict[tuple[str, str], _Group] = {}
    for obj, condition in found:
        importance = judged(condition)
        message = condition.get("message") or ""
        if importance is Priority.INFO and (worst is not Priority.INFO or not message):
            continue
        kind = _kind(obj)
        group = groups.setdefault((kind, message), _Group(kind, message or str(condition.get("reason") or "")))
        group.add(key_of(obj).name, _of_control_plane(obj, kind), importance)
    message = "\n".join(_lines(sorted(groups.values(), key=lambda group: group.order)))
    return _made(target or source, _status(worst, negative=negative), reasons[worst], message)


def _lines(groups: Sequence[_Group]) -> Iterable[str]:
    """The first few in full, the rest counted by kind and importance."""
    rest: dict[tuple[str, Priority], int] = {}
    for number, group in enumerate(groups):
        if number < MESSAGES:
            yield group.line()
        else:
            rest[group.kind, group.importance] = rest.get((group.kind, group.importance), 0) + len(group.names)
    words = {Priority.ISSUE: "other problems", Priority.UNKNOWN: "unknown state", Priority.INFO: "more to say"}
    for (kind, importance), count in sorted(rest.items()):
        yield f"and {count} more {_counted(kind, count)} with {words[importance]}"


def _counted(kind: str, count: int) -> str:
    """`Machine`, `Machines`; `Proxy`, `Proxies`."""
    if count == 1:
        return kind
    many = plural(kind)
    return kind[:-1] + many[len(kind) - 1 :]


def _kind(obj: AnyObject) -> str:
    return str(obj.get("kind", "")) if isinstance(obj, Unstructured) else type(obj).__resource__.kind


def _of_control_plane(obj: AnyObject, kind: str) -> bool:
    return kind == "Machine" and CONTROL_PLANE_LABEL in labels_of(obj)


# -- mirror ----------------------------------------------------------------------------------------------------------


def mirror(
    source: Mapping[str, Any] | None, target: str, *, fallback: tuple[Status, str, str] | None = None
) -> Condition:
    """Another object's condition copied to this one, with its transition time. `fallback`: (status, reason, message)
    to use while the other has none."""
    if source is None:
        if fallback is not None:
            return _made(target, *fallback)
        return _unreported(target)
    made = _made(
        target, source["status"], source.get("reason") or Reason.NO_REASON_REPORTED, source.get("message") or ""
    )
    if source.get("lastTransitionTime"):
        made["lastTransitionTime"] = source["lastTransitionTime"]
    return made


# -- storing ---------------------------------------------------------------------------------------------------------


def store(
    conditions: Sequence[Condition] | None, made: Iterable[Mapping[str, Any]], *, now: str, generation: int
) -> list[Condition]:
    """The conditions with those that were made, in the order that people find helpful.

    The time of transition moves with the status alone; one that comes with a mirror is taken from there.
    """
    result = list(conditions or ())
    for each in made:
        result = put(
            result,
            each["type"],
            each["status"],
            each.get("reason") or Reason.NO_REASON_REPORTED,
            each.get("message") or "",
            now=each.get("lastTransitionTime") or now,
            generation=generation,
        )
    return ordered(result)


_ORDER = (
    Type.AVAILABLE, Type.READY, Type.UP_TO_DATE, Type.REMOTE_CONNECTION_PROBE, Type.BOOTSTRAP_CONFIG_READY,
    Type.INFRASTRUCTURE_READY, Type.CONTROL_PLANE_INITIALIZED, Type.CONTROL_PLANE_AVAILABLE, Type.WORKERS_AVAILABLE,
    Type.INFRASTRUCTURE_REACHABLE, Type.NO_ORPHANED_MACHINES,
    Type.CERTIFICATES_AVAILABLE, Type.INITIALIZED, Type.ETCD_CLUSTER_HEALTHY, Type.CONTROL_PLANE_COMPONENTS_HEALTHY,
    Type.NODE_HEALTHY, Type.NODE_READY, Type.NODE_KUBEADM_LABELS_AND_TAINTS_SET, Type.ETCD_POD_HEALTHY,
    Type.ETCD_MEMBER_HEALTHY, Type.API_SERVER_POD_HEALTHY, Type.CONTROLLER_MANAGER_POD_HEALTHY,
    Type.SCHEDULER_POD_HEALTHY, Type.HEALTH_CHECK_SUCCEEDED, Type.OWNER_REMEDIATED, Type.TOPOLOGY_RECONCILED,
    Type.UPDATING, Type.ROLLING_OUT, Type.REMEDIATING, Type.SCALING_DOWN, Type.SCALING_UP, Type.MACHINES_READY,
    Type.CONTROL_PLANE_MACHINES_READY, Type.WORKER_MACHINES_READY, Type.MACHINES_UP_TO_DATE,
    Type.CONTROL_PLANE_MACHINES_UP_TO_DATE, Type.WORKER_MACHINES_UP_TO_DATE,
)  # fmt: skip
_PLACES = {kind: place for place, kind in enumerate(_ORDER)} | {Type.PAUSED: 1001, Type.DELETING: 1002}


def ordered(conditions: Iterable[Condition]) -> list[Condition]:
    """What tells most first, what others added next, Paused and Deleting last."""
    return sorted(conditions, key=lambda c: (_PLACES.get(c["type"], 1000), c["type"]))
