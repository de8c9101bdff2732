"""Revisions of a MachineDeployment: which MachineSet is current, which can be gone back to. Pure; the CLI's too."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from homeport.api.cluster.v1beta2 import MachineDeployment, MachineSet
from homeport.api.meta import wire
from homeport.capi.name import REVISION
from homeport.core.machine.uptodate import differences
from homeport.runtime.clock import parse_time

# Upstream's API has lost these two; people who roll back have not.
HISTORY = "machinedeployment.clusters.x-k8s.io/revision-history"  # on sets: the revisions they were before
HISTORY_LIMIT = "machinedeployment.clusters.x-k8s.io/revision-history-limit"  # on MachineDeployments
DEFAULT_LIMIT = 1
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"

# A change of any of these is a rollout; everything else of the template is handed down to living Machines.
_ROLLED = ("version", "bootstrap", "infrastructureRef", "failureDomain")


def revision_of(obj: MachineSet | MachineDeployment) -> int:
    text = obj.metadata.annotations.get(REVISION, "")
    return int(text) if text.isdigit() else 0


def history_limit(deployment: MachineDeployment) -> int:
    """How many old sets are kept without Machines, for `rollout undo`. An invalid number is ignored."""
    text = deployment.metadata.annotations.get(HISTORY_LIMIT, "")
    return int(text) if text.isdigit() else DEFAULT_LIMIT


def earlier(machine_set: MachineSet) -> list[int]:
    """The revisions that the set was current as before its present one."""
    text = machine_set.metadata.annotations.get(HISTORY, "")
    return [int(part) for part in text.split(",") if part.isdigit()]


def history_text(machine_set: MachineSet) -> str:
    """The history of a set that is about to get another revision."""
    known = [*earlier(machine_set), revision_of(machine_set)]
    return ",".join(str(each) for each in known if each)


def due(deployment: MachineDeployment, now: float) -> float | None:
    """The time of `rolloutAfter` if it has passed, else None. Machines created before it are replaced."""
    after = deployment.spec.rollout.after
    moment = parse_time(after) if after else None
    return moment if moment is not None and moment <= now else None


def is_wanted(machine_set: MachineSet, deployment: MachineDeployment, now: float) -> bool:
    """Whether the set's Machines are what the MachineDeployment asks for."""
    if differences(machine_set.spec.template.spec, deployment.spec.template.spec):
        return False
    moment, created = due(deployment, now), machine_set.metadata.creation_timestamp
    return moment is None or not created or parse_time(created) >= moment


def find_current(sets: Iterable[MachineSet], deployment: MachineDeployment, now: float) -> MachineSet | None:
    """Of several that would do, the one with the most replicas, then the oldest."""
    found = [each for each in sets if not each.metadata.deletion_timestamp and is_wanted(each, deployment, now)]
    found.sort(key=lambda s: (-(s.spec.replicas or 0), s.metadata.creation_timestamp or "", s.metadata.name))
    return found[0] if found else None


def suffix(deployment: MachineDeployment, revision: int) -> str:
    """Five letters for the next set: the same while nothing has changed, so that none is made twice."""
    return _letters([deployment.metadata.uid, revision, _rolled(deployment), deployment.spec.rollout.after], 5)


def template_hash(deployment: MachineDeployment, revision: int) -> str:
    """The value of the label that distinguishes the Machines of the MachineSets."""
    return f"{_letters(_rolled(deployment), 8)}-{suffix(deployment, revision)}"


def _rolled(deployment: MachineDeployment) -> dict[str, Any]:
    spec: dict[str, Any] = wire(deployment.spec.template.spec)
    return {name: spec.get(name) for name in _ROLLED}


def _letters(value: Any, length: int) -> str:
    digest = hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:length])


# -- going back ------------------------------------------------------------------------------------------------------


class NoRevision(Exception):
    """There is nothing to go back to. The message says what there is."""


def find_revision(sets: Sequence[MachineSet], deployment: MachineDeployment, wanted: int = 0) -> MachineSet:
    """The set of a revision; 0: of the one before the current. Raises NoRevision."""
    current = revision_of(deployment)
    known = sorted((s for s in sets if revision_of(s)), key=revision_of)
    if wanted:
        found = [s for s in known if wanted == revision_of(s) or wanted in earlier(s)]
    else:
        found = [s for s in known if revision_of(s) != current]
    if found:
        return found[-1]
    listed = ", ".join(str(revision_of(s)) for s in known) or "none"
    what = f"revision {wanted}" if wanted else f"a revision before {current}"
    raise NoRevision(
        f"MachineDeployment {deployment.metadata.name} has no {what} (it has: {listed}). Set the annotation "
        f"{HISTORY_LIMIT} to keep more than {history_limit(deployment)} of the old ones"
    )


def undo_patch(machine_set: MachineSet) -> dict[str, Any]:
    """The merge patch of a MachineDeployment that takes its template back to that of the set."""
    spec: dict[str, Any] = wire(machine_set.spec.template.spec)
    bootstrap = spec.get("bootstrap") or {}
    wanted = {name: spec.get(name) for name in _ROLLED}
    # A reference of the newer revision must not stay beside the older one's secret, nor the other way round.
    wanted["bootstrap"] = {"configRef": bootstrap.get("configRef"), "dataSecretName": bootstrap.get("dataSecretName")}
    return {"spec": {"template": {"spec": wanted}}}
