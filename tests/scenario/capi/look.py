"""What scenarios look for: conditions, machines by role, and what runs in workload clusters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from capikit.harness import Harness
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.meta import Resource, Unstructured
from homeport.client.protocol import Client, Key
from homeport.sim.machine.workload.kind import BUDGET, POD

CONTROL_PLANE = "cluster.x-k8s.io/control-plane"


def message(obj: Any, kind: str, status: str = "") -> str:
    """What a condition says; '' when there is none, or when it has another status."""
    conditions = (obj.get("status") or {}).get("conditions") or () if isinstance(obj, dict) else obj.status.conditions
    found = next((c for c in conditions if c["type"] == kind), None)
    if found is None or (status and found["status"] != status):
        return ""
    return f"{found['status']} {found['reason']}: {found.get('message', '')}"


def says(kind: str, *texts: str, status: str = "") -> Callable[[Any], bool]:
    """Whether a condition says all of these."""

    def check(obj: Any) -> bool:
        found = message(obj, kind, status)
        return bool(found) and all(text in found for text in texts)

    check.__name__ = f"{kind} saying {', '.join(texts) or status}"
    return check


async def workers(h: Harness) -> list[Machine]:
    return [m for m in await h.machines() if CONTROL_PLANE not in m.metadata.labels]


async def control_planes(h: Harness) -> list[Machine]:
    return [m for m in await h.machines() if CONTROL_PLANE in m.metadata.labels]


def workload(h: Harness) -> Client:
    (found,) = h.fleet.clusters()
    return found.client()


async def run_pod(h: Harness, name: str, node: str, *, guarded: bool = False) -> None:
    """`guarded`: a budget wants it to stay."""
    client = workload(h)
    meta = {"name": name, "namespace": "default", "labels": {"app": name}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]},
    }
    await client.create(pod, kind=POD)
    if guarded:
        budget = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"{name}-budget", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}},
        }
        await client.create(budget, kind=BUDGET)


async def drop_budget(h: Harness, name: str) -> None:
    await workload(h).delete(BUDGET, Key("default", f"{name}-budget"))


async def read(h: Harness, group: str, version: str, kind: str, plural: str, name: str) -> Unstructured:
    return await h.client.get(Resource(group, version, kind, plural), Key("default", name))
