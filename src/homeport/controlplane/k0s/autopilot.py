"""Plans of k0s' autopilot: how controllers are upgraded in place. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.capi.k0s import version as k0sversion
from homeport.controlplane.k0s.observed import PlanState
from homeport.runtime.clock import parse_time

PLAN = Resource("autopilot.k0sproject.io", "v1beta2", "Plan", "plans", namespaced=False)
NAME = "autopilot"  # k0s looks at no other
OWNER_LABEL = "k0s.homeport.dev/control-plane"
_ARCHITECTURES = ("amd64", "arm64", "arm")

Json = dict[str, Any]


def render_plan(version: str, targets: Sequence[str], *, owner: str, now: float, url: str = "") -> Json:
    """`url`: where the binary is, for sites without internet access; `owner`: the UID of the control plane."""
    platforms = {f"linux-{each}": {"url": url or _release(version, each)} for each in _ARCHITECTURES}
    controllers = {"discovery": {"static": {"nodes": list(targets)}}, "limits": {"concurrent": 1}}
    update = {"version": version, "platforms": platforms, "targets": {"controllers": controllers}}
    return {
        "apiVersion": PLAN.api_version,
        "kind": "Plan",
        "metadata": {"name": NAME, "labels": {OWNER_LABEL: owner}},
        "spec": {"id": f"id-{owner[:8]}-{int(now)}", "timestamp": str(int(now)), "commands": [{"k0supdate": update}]},
    }


def _release(version: str, architecture: str) -> str:
    return f"https://github.com/k0sproject/k0s/releases/download/{version}/k0s-{version}-{architecture}"


def read_plan(found: Unstructured, owner: str) -> PlanState:
    spec, status = found.get("spec") or {}, found.get("status") or {}
    commands = spec.get("commands") or [{}]
    update = commands[0].get("k0supdate") or {}
    text = str(update.get("version") or "")
    discovery = ((update.get("targets") or {}).get("controllers") or {}).get("discovery") or {}
    return PlanState(
        version=str(k0sversion.parse(text)) if k0sversion.is_valid(text) else text,
        state=str(status.get("state") or ""),
        created=parse_time(found.metadata.get("creationTimestamp") or "1970-01-01T00:00:00Z"),
        targets=tuple((discovery.get("static") or {}).get("nodes") or ()),
        details=_details(status),
        ours=(found.metadata.get("labels") or {}).get(OWNER_LABEL) == owner,
    )


def _details(status: Json) -> str:
    found = []
    for each in status.get("commands") or ():
        if each.get("description"):
            found.append(str(each["description"]))
        nodes = (each.get("k0supdate") or {}).get("controllers") or ()
        found += [f"{node.get('name')}: {node.get('state')}" for node in nodes]
    return ", ".join(found)
