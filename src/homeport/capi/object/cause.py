"""Why something is not ready, down to the deepest cause that is known, in one sentence.

    control plane machine cp-1: VM vm-7: the image ubuntu-24 was not found

Objects are given as a tree: each with what it depends on. The path is followed to where a condition says something that
no condition below it says better.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from homeport.api.meta import Object, Unstructured
from homeport.capi.contract import failure
from homeport.capi.name import CONTROL_PLANE_LABEL, NEGATIVE, Condition, Reason
from homeport.capi.object.summary import conditions_of
from homeport.machinery.condition import find
from homeport.runtime.cache import deleting, key_of, labels_of

AnyObject = Object | Unstructured
P = TypeVar("P")

# These say that something else is waited for, or nothing at all: what is below, if anything, says more.
_WAITING = frozenset(
    {
        Reason.NOT_READY,
        Reason.NOT_AVAILABLE,
        Reason.READY_UNKNOWN,
        Reason.AVAILABLE_UNKNOWN,
        Reason.NOT_YET_REPORTED,
        Reason.NO_REASON_REPORTED,
        Reason.NOT_INITIALIZED,
        Reason.NOT_PROVISIONED,
        Reason.WAITING_FOR_BOOTSTRAP_DATA,
        Reason.WAITING_FOR_CLUSTER_INFRASTRUCTURE_READY,
        Reason.WAITING_FOR_CONTROL_PLANE_INITIALIZED,
    }
)
_LEADING = ("Ready", "Available")
_BULLET = re.compile(r"^\s*\*\s+", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Part:
    """An object and what it depends on, the most important first. `called` is how people call it."""

    object: AnyObject
    called: str = ""
    children: Sequence[Part] = field(default=())


def cause(part: Part) -> str:
    """The sentence; '' when nothing is wrong. The object that is asked about is not named itself."""
    found = blamed(part)
    return "" if found is None else found[0]


def blamed(part: Part) -> tuple[str, AnyObject] | None:
    """The sentence, and the object that reports it."""
    found = _deepest(part)
    if found is None:
        return None
    path, reported = found
    return ": ".join([*(_called(each) for each in path[1:]), reported.message]), path[-1].object


def _deepest(part: Part) -> tuple[list[Part], ReportedProblem] | None:
    """The way to the object that says what is wrong, and what it says."""
    own = complaint(part.object)
    below = [found for each in part.children if (found := _deepest(each)) is not None]
    better = explaining(own, below)
    if better is not None:
        return [part, *better[0]], better[1]
    return None if own is None else ([part], own)


def explaining(
    own: ReportedProblem | None, below: Sequence[tuple[P, ReportedProblem]]
) -> tuple[P, ReportedProblem] | None:
    """Which of the problems below an object says more than its own; None: none of them."""
    firm = next((found for found in below if not found[1].waits), None)
    return (firm or below[0]) if below and (own is None or own.waits or firm is not None) else None


@dataclass(frozen=True, slots=True)
class ReportedProblem:
    """What an object says is wrong with it. `waits`: it only waits for something else. `since`: a time, or ''."""

    message: str
    waits: bool
    since: str = ""


def complaint(obj: AnyObject, conditions: Sequence[Mapping[str, Any]] | None = None) -> ReportedProblem | None:
    """What is wrong with one object by its own word; None when nothing is. `conditions`: those of the object, where the
    caller has them already."""
    if isinstance(obj, Unstructured):
        broken = failure(obj)
        if broken is not None:
            return ReportedProblem(_sentence(broken.message or broken.reason), waits=False)
    conditions = conditions_of(obj) if conditions is None else conditions
    going = find(conditions, Condition.DELETING) if deleting(obj) else None
    if going is not None and going.get("status") == "True" and going.get("message"):
        return ReportedProblem(f"it is being deleted: {_sentence(going['message'])}", waits=False, since=_since(going))
    wrong = [c for c in conditions if _wrong(c)]
    if not wrong:
        if deleting(obj):
            return ReportedProblem("it is being deleted", waits=True)
        return None
    # The summary repeats what single conditions say: one of those is nearer to the cause.
    detailed = [c for c in wrong if c["type"] not in _LEADING]
    leading = next((c for kind in _LEADING if (c := find(wrong, kind)) is not None), None)
    early = _not_yet(find(conditions, Condition.CONTROL_PLANE_INITIALIZED))
    for candidates in (detailed, [leading] if leading is not None else []):
        firm = [c for c in candidates if c.get("message") and not is_waiting(c) and not (early and _is_probe(c))]
        if firm:
            return ReportedProblem(_sentence(firm[0]["message"]), waits=False, since=_since(firm[0]))
    said = [c for c in [*detailed, leading] if c is not None and c.get("message")]
    # What is known to be wrong says more than what is not known.
    certain = next((c for c in said if c.get("status") == "False"), None)
    chosen = certain or (said[0] if said else leading or wrong[0])
    return ReportedProblem(_sentence(chosen.get("message") or _spoken(chosen)), waits=True, since=_since(chosen))


def unreachable(obj: AnyObject, conditions: Sequence[Mapping[str, Any]] | None = None) -> ReportedProblem | None:
    """Of an object that works, but that its hypervisor can't be asked about: nothing can be changed or healed."""
    lost = find(conditions_of(obj) if conditions is None else conditions, Condition.INFRASTRUCTURE_REACHABLE)
    if lost is None or lost.get("status") != "False":
        return None
    said = _sentence(lost.get("message") or _spoken(lost))
    # A Cluster repeats what its infrastructure reports, with that object's name.
    called = described(obj)
    where = "" if called.startswith("Cluster ") else f"{called}: "
    text = f"it runs, but can't be managed now: {where}{said}"
    return ReportedProblem(text, waits=False, since=_since(lost))


def _since(found: Mapping[str, Any]) -> str:
    return str(found.get("lastTransitionTime") or "")


def _wrong(found: Mapping[str, Any]) -> bool:
    """Not True, and supposed to be. Negative ones report work in progress, not what holds it up."""
    return found.get("status") in ("False", "Unknown") and found["type"] not in NEGATIVE


def _is_probe(found: Mapping[str, Any]) -> bool:
    """Nothing answers before the first control plane machine runs: that machine says why it does not."""
    return bool(found["type"] == Condition.REMOTE_CONNECTION_PROBE)


def _not_yet(found: Mapping[str, Any] | None) -> bool:
    """Unknown, too: a control plane that does not exist is not initialized."""
    return found is not None and found.get("status") != "True"


def is_waiting(found: Mapping[str, Any]) -> bool:
    """What nobody knows yet is waited for, and better than nothing where no one else knows more."""
    reason = str(found.get("reason") or "")
    return found.get("status") == "Unknown" or reason in _WAITING or reason.startswith("WaitingFor")


def _spoken(found: Mapping[str, Any]) -> str:
    return f"{found['type']} is {found.get('status')} ({found.get('reason') or 'no reason given'})"


def _sentence(message: str) -> str:
    """The first point of a list, on one line, without what ends a sentence."""
    lines = [_BULLET.sub("", line).strip() for line in message.strip().split("\n")]
    said = [line for line in lines if line and not line.endswith(":")]
    return (said[0] if said else " ".join(lines)).rstrip(".")


def _called(part: Part) -> str:
    if part.called:
        return f"{part.called} {key_of(part.object).name}"
    return described(part.object)


def described(obj: AnyObject) -> str:
    """`machine x`, `control plane machine x`, `NutanixMachine x`."""
    kind = str(obj.get("kind", "")) if isinstance(obj, Unstructured) else type(obj).__resource__.kind
    name = key_of(obj).name
    if kind == "Machine":
        return f"control plane machine {name}" if CONTROL_PLANE_LABEL in labels_of(obj) else f"machine {name}"
    return f"{kind} {name}"


def causes(parts: Iterable[Part]) -> list[str]:
    """The sentences of several objects, each named, equal ones once."""
    found: dict[str, None] = {}
    for part in parts:
        sentence = cause(part)
        if sentence:
            found[f"{_called(part)}: {sentence}"] = None
    return list(found)
