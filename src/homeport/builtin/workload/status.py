"""The status of a Pod, from the states of its containers. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from homeport.machinery import condition


@dataclass(slots=True)
class ContainerState:
    """One container as its Pod's status shows it."""

    name: str
    image: str
    uid: str  # of the Pod: containers are numbered within it
    restarts: int = 0
    state: dict[str, Any] = field(default_factory=lambda: {"waiting": {"reason": "PodInitializing"}})
    last: dict[str, Any] = field(default_factory=dict)
    ready: bool = False
    started: bool = False
    ended: bool = False  # it has ended and is not restarted
    sidecar: bool = False  # an init container that goes on running

    @property
    def exit_code(self) -> int | None:
        code = (self.state.get("terminated") or {}).get("exitCode")
        return None if code is None else int(code)

    @property
    def has_run(self) -> bool:
        return self.restarts > 0 or "running" in self.state or "terminated" in self.state

    def render(self) -> dict[str, Any]:
        shown = {
            "name": self.name,
            "image": self.image,
            "imageID": "",
            "ready": self.ready,
            "started": self.started,
            "restartCount": self.restarts,
            "state": self.state,
            "lastState": self.last,
        }
        if self.has_run:
            shown["containerID"] = f"homeport://{self.uid}-{self.name}-{self.restarts}"
        return shown


def pod_status(
    pod: Mapping[str, Any],
    address: str,
    inits: Sequence[ContainerState],
    mains: Sequence[ContainerState],
    now: str,
    host: str = "127.0.0.1",
) -> dict[str, Any]:
    before = dict(pod.get("status") or {})
    phase = pod_phase(inits, mains)
    status = {
        **before,
        "phase": phase,
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": before.get("startTime") or now,
        "conditions": pod_conditions(pod, phase, inits, mains, now),
        "containerStatuses": [each.render() for each in mains],
    }
    if inits:
        status["initContainerStatuses"] = [each.render() for each in inits]
    return status


def pod_phase(inits: Sequence[ContainerState], mains: Sequence[ContainerState]) -> str:
    if any(each.ended and each.exit_code and not each.sidecar for each in inits):
        return "Failed"
    if not initialized(inits):
        return "Pending"
    if all(each.ended for each in mains):
        return "Failed" if any(each.exit_code for each in mains) else "Succeeded"
    return "Running" if any(each.has_run for each in mains) else "Pending"


def initialized(inits: Sequence[ContainerState]) -> bool:
    return all(each.started if each.sidecar else each.ended and each.exit_code == 0 for each in inits)


def pod_conditions(
    pod: Mapping[str, Any], phase: str, inits: Sequence[ContainerState], mains: Sequence[ContainerState], now: str
) -> list[dict[str, Any]]:
    conditions = list((pod.get("status") or {}).get("conditions") or ())
    over = phase in ("Succeeded", "Failed")
    unready = [each.name for each in (*(i for i in inits if i.sidecar), *mains) if not each.ready]
    gates = [gate["conditionType"] for gate in (pod.get("spec") or {}).get("readinessGates") or ()]
    closed = [gate for gate in gates if not condition.is_true(conditions, gate)]
    begun = [each.name for each in inits if not initialized([each])]
    reason, text = "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"
    if over:
        reason, text = ("PodCompleted", "") if phase == "Succeeded" else ("PodFailed", "")
    wanted = {
        "PodReadyToStartContainers": (not over, "", ""),
        "Initialized": (
            not begun,
            "ContainersNotInitialized",
            f"containers with incomplete status: [{' '.join(begun)}]",
        ),
        "ContainersReady": (not unready and not over, reason, text),
        "Ready": (not unready and not over and not closed, reason, text),
        "PodScheduled": (True, "", ""),
    }
    if closed and not unready and not over:
        wanted["Ready"] = (False, "ReadinessGatesNotReady", f"gates that are not open: {', '.join(closed)}")
    for kind, (good, why, message) in wanted.items():
        state = ("True", "", "") if good else ("False", why, message)
        conditions = condition.put(conditions, kind, *state, now=now)  # type: ignore[arg-type]
    return [{k: v for k, v in each.items() if v != ""} for each in conditions]
