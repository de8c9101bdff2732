"""The row of a Pod: its containers' states boiled down to one word."""

from __future__ import annotations

from datetime import datetime

from homeport.apiserver.kinds.age import age
from homeport.apiserver.kinds.printer.text import NONE, Cell, age_of, condition, holds, name_of, part, text
from homeport.apiserver.resource import Json


class _Tally:
    """What the container statuses add up to."""

    def __init__(self, pod: Json) -> None:
        self.pod = pod
        self.ready = 0
        self.total = len(part(pod, "spec", "containers") or ())
        self.restarts = 0
        self.sidecar_restarts = 0
        self.last_restart = ""
        self.last_sidecar_restart = ""
        self.reason = _phase(pod)
        self.initializing = False

    def count_init(self) -> None:
        inits = part(self.pod, "spec", "initContainers") or ()
        sidecars = {c.get("name") for c in inits if c.get("restartPolicy") == "Always"}
        self.total += len(sidecars)
        for index, status in enumerate(part(self.pod, "status", "initContainerStatuses") or ()):
            sidecar = status.get("name") in sidecars
            self._count_restarts(status, sidecar=sidecar)
            if self._passed(status, sidecar=sidecar):
                continue
            self.reason = _init_reason(status, index, len(inits))
            self.initializing = True
            break

    def _count_restarts(self, status: Json, *, sidecar: bool = False) -> None:
        self.restarts += status.get("restartCount") or 0
        ended = text(status, "lastState", "terminated", "finishedAt")
        self.last_restart = max(self.last_restart, ended)
        if sidecar:
            self.sidecar_restarts += status.get("restartCount") or 0
            self.last_sidecar_restart = max(self.last_sidecar_restart, ended)

    def _passed(self, status: Json, *, sidecar: bool) -> bool:
        ended = part(status, "state", "terminated")
        if ended is not None and not ended.get("exitCode"):
            return True
        if sidecar and status.get("started"):
            self.ready += 1 if status.get("ready") else 0
            return True
        return False

    def count_main(self) -> None:
        self.restarts, self.last_restart = self.sidecar_restarts, self.last_sidecar_restart
        running = False
        for status in reversed(part(self.pod, "status", "containerStatuses") or []):
            self._count_restarts(status)
            reason = _state_reason(status)
            if reason:
                self.reason = reason
            elif status.get("ready") and part(status, "state", "running") is not None:
                running = True
                self.ready += 1
        if self.reason == "Completed" and running:
            self.reason = "Running" if holds(self.pod, "Ready") else "NotReady"


def _phase(pod: Json) -> str:
    scheduled = condition(pod, "PodScheduled")
    if scheduled is not None and scheduled.get("reason") == "SchedulingGated":
        return "SchedulingGated"
    return text(pod, "status", "reason") or text(pod, "status", "phase")


def _state_reason(status: Json) -> str:
    waiting, ended = part(status, "state", "waiting"), part(status, "state", "terminated")
    if waiting is not None and waiting.get("reason"):
        return str(waiting["reason"])
    return _ended_reason(ended) if ended is not None else ""


def _ended_reason(ended: Json) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    signal = ended.get("signal")
    return f"Signal:{signal}" if signal else f"ExitCode:{ended.get('exitCode', 0)}"


def _init_reason(status: Json, index: int, total: int) -> str:
    waiting, ended = part(status, "state", "waiting"), part(status, "state", "terminated")
    if ended is not None:
        return f"Init:{_ended_reason(ended)}"
    if waiting is not None and waiting.get("reason") not in (None, "", "PodInitializing"):
        return f"Init:{waiting['reason']}"
    return f"Init:{index}/{total}"


def _final_reason(pod: Json, reason: str) -> str:
    if not part(pod, "metadata", "deletionTimestamp"):
        return reason
    if text(pod, "status", "reason") == "NodeLost":
        return "Unknown"
    return reason if text(pod, "status", "phase") in ("Failed", "Succeeded") else "Terminating"


def pod(obj: Json, now: datetime) -> list[Cell]:
    tally = _Tally(obj)
    tally.count_init()
    if not tally.initializing or holds(obj, "Initialized"):
        tally.count_main()
    restarts = str(tally.restarts)
    if tally.restarts and tally.last_restart:
        restarts = f"{tally.restarts} ({age(tally.last_restart, now)} ago)"
    return [
        name_of(obj),
        f"{tally.ready}/{tally.total}",
        _final_reason(obj, tally.reason),
        restarts,
        age_of(obj, now),
        _address(obj),
        text(obj, "spec", "nodeName", default=NONE),
        text(obj, "status", "nominatedNodeName", default=NONE),
        _gates(obj),
    ]


def _address(obj: Json) -> str:
    addresses = part(obj, "status", "podIPs") or ()
    return str(addresses[0].get("ip") or NONE) if addresses else text(obj, "status", "podIP", default=NONE)


def _gates(obj: Json) -> str:
    gates = part(obj, "spec", "readinessGates") or ()
    if not gates:
        return NONE
    return f"{sum(holds(obj, gate.get('conditionType', '')) for gate in gates)}/{len(gates)}"
