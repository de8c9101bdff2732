"""DaemonSets: a Pod on every node that takes it."""

from __future__ import annotations

import hashlib

import orjson

from homeport.api.meta import Unstructured
from homeport.runtime.workload.template import REVISION_LABEL, pod_of
from homeport.sim.machine.workload.kind import DAEMON_SET, POD, Json
from homeport.sim.machine.workload.pod.scheduler import tolerates
from homeport.sim.machine.workload.view import View, finished, leaving, ready

# What every daemon puts up with.
_TOLERATED = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
        ("not-ready", "NoSchedule"),
        ("unreachable", "NoSchedule"),
    )
]


async def settle_daemon_sets(view: View) -> None:
    for owner in view.all(DAEMON_SET):
        if not leaving(owner):
            await _settle(view, owner)


async def _settle(view: View, owner: Json) -> None:
    template = owner["spec"]["template"]
    revision = hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).hexdigest()[:10]
    tolerations = [*(template["spec"].get("tolerations") or ()), *_TOLERATED]
    selector = template["spec"].get("nodeSelector") or {}
    wanted = {
        name
        for name, node in view.nodes.items()
        if not leaving(node)
        and selector.items() <= (node["metadata"].get("labels") or {}).items()
        and tolerates(tolerations, (node.get("spec") or {}).get("taints") or ())
    }
    pods = {pod["spec"].get("nodeName", ""): pod for pod in view.owned(view.pods, owner) if not finished(pod)}
    for name in sorted(wanted - pods.keys()):
        suffix = hashlib.sha256(name.encode()).hexdigest()[:5]
        pod = pod_of(Unstructured(owner), DAEMON_SET, template, f"{owner['metadata']['name']}-{suffix}")
        pod["metadata"].setdefault("labels", {})[REVISION_LABEL] = revision
        pod["spec"]["nodeName"] = name
        pod["spec"]["tolerations"] = tolerations
        await view.create(pod, POD)
    for name, pod in pods.items():
        outdated = pod["metadata"]["labels"].get(REVISION_LABEL) != revision
        if (name not in wanted or outdated) and not leaving(pod):
            await view.delete(POD, pod)
    placed = [pods[name] for name in wanted & pods.keys()]
    running = sum(map(ready, placed))
    status = {
        "observedGeneration": owner["metadata"].get("generation", 1),
        "desiredNumberScheduled": len(wanted),
        "currentNumberScheduled": len(placed),
        "numberMisscheduled": len(pods.keys() - wanted),
        "updatedNumberScheduled": sum(pod["metadata"]["labels"].get(REVISION_LABEL) == revision for pod in placed),
        "numberReady": running,
        "numberAvailable": running,
    }
    await view.set_status(DAEMON_SET, owner, status)
