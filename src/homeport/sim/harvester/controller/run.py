"""What a VM's run strategy asks for. Pure: decides, writes nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from homeport.runtime.clock import parse_time
from homeport.sim.harvester.kind import Json
from homeport.sim.harvester.object import leaving, status_of

FINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Step:
    action: Literal["", "start", "stop"] = ""
    after: float | None = None  # seconds until the question comes up again
    then_start: bool = False  # the instance that is stopped is to be followed by another


def run_strategy(vm: Json) -> str:
    spec = vm["spec"]
    if "runStrategy" in spec:
        return str(spec["runStrategy"])
    return "Always" if spec.get("running") else "Halted"


def plan_run(vm: Json, vmi: Json | None, now: float) -> Step:
    strategy = run_strategy(vm)
    if vmi is None:
        return _plan_without(vm, strategy, now)
    if leaving(vmi):
        return Step()
    phase = status_of(vmi).get("phase", "")
    match strategy:
        case "Halted":
            return Step("stop")
        case "Always":
            return Step("stop") if phase in FINAL or asked_to_stop(vm, vmi) else Step()
        case "RerunOnFailure":
            again = phase == "Failed"
            return Step("stop", then_start=again) if phase in FINAL or asked_to_stop(vm, vmi) else Step()
        case "Manual":
            return Step("stop") if asked_to_stop(vm, vmi) else Step()
    return Step()


def _plan_without(vm: Json, strategy: str, now: float) -> Step:
    match strategy:
        case "Once":
            return Step("start")
        case "Manual":
            return Step("start") if asked_to_start(vm) else Step()
        case "RerunOnFailure" if not starts_again(vm):
            return Step()
        case "Always" | "RerunOnFailure":
            wait = backoff_left(vm, now)
            return Step(after=wait) if wait > 0 else Step("start")
    return Step()


def set_to_start(vm: Json, vmi: Json | None) -> bool:
    match run_strategy(vm):
        case "Always":
            return True
        case "Manual":
            return asked_to_start(vm) if vmi is None else not asked_to_stop(vm, vmi)
        case "RerunOnFailure":
            return starts_again(vm) if vmi is None else status_of(vmi).get("phase") != "Succeeded"
        case "Once":
            return vmi is None
    return False


def starts_again(vm: Json) -> bool:
    """RerunOnFailure starts a VM that was never started, and one that is asked to."""
    return asked_to_start(vm) or status_of(vm).get("runStrategy") != "RerunOnFailure"


def asked_to_start(vm: Json) -> bool:
    return _first_request(vm).get("action") == "Start"


def asked_to_stop(vm: Json, vmi: Json) -> bool:
    request = _first_request(vm)
    return request.get("action") == "Stop" and request.get("uid") == vmi["metadata"]["uid"]


def request_is_done(vm: Json, vmi: Json | None) -> bool:
    """Whether the first request has had its effect."""
    request = _first_request(vm)
    if request.get("action") == "Stop":
        return vmi is None or request.get("uid") != vmi["metadata"]["uid"]
    if request.get("action") == "Start":
        return vmi is not None and not leaving(vmi) and status_of(vmi).get("phase") not in FINAL
    return False


def _first_request(vm: Json) -> Json:
    requests = status_of(vm).get("stateChangeRequests") or ()
    return requests[0] if requests else {}


def backoff_left(vm: Json, now: float) -> float:
    """Seconds that a VM which failed to start has to wait."""
    until = (status_of(vm).get("startFailure") or {}).get("retryAfterTimestamp")
    return parse_time(until) - now if until else 0.0
