"""Deployments, ReplicaSets and StatefulSets: the right number of Pods of the right template."""

from __future__ import annotations

import hashlib
import secrets

import orjson

from homeport.sim.machine.workload.kind import DEPLOYMENT, POD, REPLICA_SET, STATEFUL_SET, Json
from homeport.sim.machine.workload.view import View, finished, leaving, owner_of, pod_from, ready

_HASH = "pod-template-hash"
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


async def settle_deployments(view: View) -> None:
    known = {deployment["metadata"]["uid"] for deployment in view.deployments}
    for deployment in view.deployments:
        if not leaving(deployment):
            await _settle_deployment(view, deployment)
    for each in view.replica_sets:  # of Deployments that are gone
        owners = each["metadata"].get("ownerReferences") or ()
        if any(ref["kind"] == "Deployment" and ref["uid"] not in known for ref in owners) and not leaving(each):
            await view.delete(REPLICA_SET, each)


async def _settle_deployment(view: View, deployment: Json) -> None:
    spec, meta = deployment["spec"], deployment["metadata"]
    template_hash = _hash(spec["template"])
    owned = view.owned(view.replica_sets, deployment)
    current = next((each for each in owned if each["metadata"]["labels"].get(_HASH) == template_hash), None)
    wanted = spec.get("replicas", 1)
    if current is None:
        await view.create(_replica_set(deployment, template_hash), REPLICA_SET)
    elif current["spec"].get("replicas") != wanted:
        await view.patch(REPLICA_SET, current, {"spec": {"replicas": wanted}})
    elif (current.get("status") or {}).get("readyReplicas", 0) >= wanted:
        for old in owned:
            if old is not current and old["spec"].get("replicas"):
                await view.patch(REPLICA_SET, old, {"spec": {"replicas": 0}})
    available = _sum("readyReplicas", owned)
    status: Json = {
        "observedGeneration": meta.get("generation", 1),
        "replicas": _sum("replicas", owned),
        "updatedReplicas": _sum("replicas", [current] if current else []),
        "readyReplicas": available,
        "availableReplicas": available,
        "unavailableReplicas": max(wanted - available, 0),
    }
    reached = available >= wanted
    before = {each["type"]: each for each in (deployment.get("status") or {}).get("conditions") or ()}
    known = before.get("Available")
    state = "True" if reached else "False"
    if known is None or known["status"] != state:
        reason = "MinimumReplicasAvailable" if reached else "MinimumReplicasUnavailable"
        stamps = {"lastTransitionTime": view.stamp, "lastUpdateTime": view.stamp}
        before["Available"] = {"type": "Available", "status": state, "reason": reason, **stamps}
        status["conditions"] = list(before.values())
    await view.set_status(DEPLOYMENT, deployment, status)


def _sum(field: str, sets: list[Json]) -> int:
    return sum((each.get("status") or {}).get(field, 0) for each in sets)


def _replica_set(deployment: Json, template_hash: str) -> Json:
    spec, meta = deployment["spec"], deployment["metadata"]
    template = orjson.loads(orjson.dumps(spec["template"]))
    labels = {**(template["metadata"].get("labels") or {}), _HASH: template_hash}
    template["metadata"]["labels"] = labels
    selector = {
        **spec["selector"],
        "matchLabels": {**(spec["selector"].get("matchLabels") or {}), _HASH: template_hash},
    }
    return {
        "metadata": {
            "name": f"{meta['name']}-{template_hash}",
            "namespace": meta["namespace"],
            "labels": labels,
            "ownerReferences": [owner_of(deployment, DEPLOYMENT)],
        },
        "spec": {"replicas": spec.get("replicas", 1), "selector": selector, "template": template},
    }


async def settle_replica_sets(view: View) -> None:
    known = {each["metadata"]["uid"] for each in view.replica_sets}
    for each in view.replica_sets:
        if not leaving(each):
            await _settle_replica_set(view, each)
    await _drop_orphans(view, "ReplicaSet", known)


async def _settle_replica_set(view: View, owner: Json) -> None:
    wanted = owner["spec"].get("replicas", 1)
    pods = [pod for pod in view.owned(view.pods, owner) if not finished(pod)]
    live = [pod for pod in pods if not leaving(pod)]
    for _ in range(wanted - len(live)):
        name = f"{owner['metadata']['name']}-{''.join(secrets.choice(_LETTERS) for _ in range(5))}"
        await view.create(pod_from(owner["spec"]["template"], owner, REPLICA_SET, name), POD)
    for pod in sorted(live, key=ready)[: max(len(live) - wanted, 0)]:
        await view.delete(POD, pod)
    running = sum(map(ready, live))
    status = {
        "observedGeneration": owner["metadata"].get("generation", 1),
        "replicas": len(live),
        "fullyLabeledReplicas": len(live),
        "readyReplicas": running,
        "availableReplicas": running,
    }
    await view.set_status(REPLICA_SET, owner, status)


async def settle_stateful_sets(view: View) -> None:
    sets = view.all(STATEFUL_SET)
    for owner in sets:
        if leaving(owner):
            continue
        wanted = owner["spec"].get("replicas", 1)
        pods = {pod["metadata"]["name"]: pod for pod in view.owned(view.pods, owner)}
        name = owner["metadata"]["name"]
        for i in range(wanted):
            if f"{name}-{i}" not in pods:
                labels = {"statefulset.kubernetes.io/pod-name": f"{name}-{i}", "apps.kubernetes.io/pod-index": str(i)}
                await view.create(pod_from(owner["spec"]["template"], owner, STATEFUL_SET, f"{name}-{i}", labels), POD)
        for pod_name, pod in pods.items():
            if int(pod_name.rpartition("-")[2]) >= wanted and not leaving(pod):
                await view.delete(POD, pod)
        running = sum(map(ready, pods.values()))
        status = {
            "observedGeneration": owner["metadata"].get("generation", 1),
            "replicas": len(pods),
            "readyReplicas": running,
            "availableReplicas": running,
            "currentReplicas": len(pods),
            "updatedReplicas": len(pods),
        }
        await view.set_status(STATEFUL_SET, owner, status)
    await _drop_orphans(view, "StatefulSet", {each["metadata"]["uid"] for each in sets})


async def _drop_orphans(view: View, kind: str, known: set[str]) -> None:
    for pod in view.pods:
        owners = pod["metadata"].get("ownerReferences") or ()
        if any(ref["kind"] == kind and ref["uid"] not in known for ref in owners) and not leaving(pod):
            await view.delete(POD, pod)


def _hash(template: Json) -> str:
    digest = hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:10])
