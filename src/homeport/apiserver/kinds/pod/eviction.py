"""pods/eviction and pods/binding: a Pod is asked to leave, or told where to run."""

from __future__ import annotations

import contextlib
from typing import Any

import orjson

from homeport.apiserver.kinds.check import dns_subdomain, named, required, unsupported
from homeport.apiserver.option import DeleteOptions
from homeport.apiserver.registry import Call, Raw, Registry
from homeport.apiserver.resource import Json
from homeport.apiserver.verb.write import encoder
from homeport.client.errors import (
    BadRequest,
    Cause,
    Conflict,
    Internal,
    Timeout,
    TooManyRequests,
    conflict,
    invalid,
    not_found,
)
from homeport.machinery.selector import SelectorError, from_label_selector
from homeport.store import Mismatch, Record

_BUDGETS = "poddisruptionbudgets.policy"
_SUCCESS: Json = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_ATTEMPTS = 5
_MOST_PENDING = 2000


def install(registry: Registry) -> None:
    async def evict(call: Call) -> Json | Raw:
        return await _evict(registry, call)

    async def bind(call: Call) -> Json | Raw:
        return await _bind(registry, call)

    registry.connect("", "pods", "eviction", evict, "POST")
    registry.connect("", "pods", "binding", bind, "POST")


# -- eviction --------------------------------------------------------------------------------------------------


async def _evict(registry: Registry, call: Call) -> Json:
    body = call.body or {}
    if (body.get("metadata") or {}).get("name") != call.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    pod = _pod(registry, call)
    given = body.get("deleteOptions") or {}
    options = _delete_options(given)
    _take_dry_run(call, given.get("dryRun") or [])
    if not _leaves_freely(pod):
        await _ask_budget(registry, call, pod)
    if not call.ctx.dry_run:
        await _announce(registry, call)
    await registry.delete(call.ctx, call.served, call.version, call.namespace, call.name, options)
    return dict(_SUCCESS)


async def _announce(registry: Registry, call: Call) -> None:
    """Says on the Pod itself why it ends. That it is said must not keep it from ending."""
    record = registry.store.head("pods", f"{call.namespace}/{call.name}")
    if record is None:
        return
    pod: Json = orjson.loads(record.value)
    reason, message = "EvictionByEvictionAPI", "Eviction API: evicting"
    _set_condition(pod, "DisruptionTarget", registry.now(), reason=reason, message=message)
    with contextlib.suppress(Mismatch):
        await registry.store.put("pods", record.name, encoder(pod), expect=record.revision)


def _pod(registry: Registry, call: Call) -> Json:
    record = registry.store.head("pods", f"{call.namespace}/{call.name}")
    if record is None:
        raise not_found("", "pods", call.name)
    pod: Json = orjson.loads(record.value)
    return pod


def _take_dry_run(call: Call, given: Any) -> None:
    """A dry run may be asked for in the body as well; a wish that is not understood must not end the Pod."""
    if not given:
        return
    if given != ["All"]:
        raise invalid("policy", "Eviction", call.name, [unsupported("deleteOptions.dryRun", given, ("All",))])
    call.ctx.dry_run = True


def _delete_options(given: Json) -> DeleteOptions:
    limits = given.get("preconditions") or {}
    return DeleteOptions(
        uid=limits.get("uid", ""),
        resource_version=limits.get("resourceVersion", ""),
        propagation=given.get("propagationPolicy", ""),
        grace_seconds=given.get("gracePeriodSeconds"),
    )


def _leaves_freely(pod: Json) -> bool:
    """Whether a budget does not count the Pod: it has ended, not started or is being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or bool(pod["metadata"].get("deletionTimestamp"))


async def _ask_budget(registry: Registry, call: Call, pod: Json) -> None:
    for _ in range(_ATTEMPTS):
        budgets = _budgets(registry, call.namespace, pod)
        if not budgets:
            return
        if len(budgets) > 1:
            text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
            raise Internal(text)
        budget = budgets[0]
        if _unready_may_go(budget, pod):
            return
        _check(budget)
        if call.ctx.dry_run:
            return
        try:
            await _spend(registry, call, budget)
            return
        except Conflict:
            continue
    raise Timeout(
        f"couldn't update PodDisruptionBudget {budget['metadata']['name']!r} due to conflicts", retry_after=10
    )


def _budgets(registry: Registry, namespace: str, pod: Json) -> list[Json]:
    labels = pod["metadata"].get("labels") or {}
    found: list[Json] = []
    for record in registry.store.range(_BUDGETS, prefix=f"{namespace}/"):
        budget: Json = orjson.loads(record.value)
        selector = (budget.get("spec") or {}).get("selector")
        try:
            if selector is not None and from_label_selector(selector).matches(labels):
                found.append(budget)
        except SelectorError:
            continue  # a selector that selects nothing protects nothing
    return found


def _unready_may_go(budget: Json, pod: Json) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return False
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    have, wanted = int(status.get("currentHealthy", 0)), int(status.get("desiredHealthy", 0))
    return have >= wanted > 0


def _check(budget: Json) -> None:
    meta, status = budget["metadata"], budget.get("status") or {}
    name, allowed = meta["name"], status.get("disruptionsAllowed", 0)
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", retry_after=10)
    if len(status.get("disruptedPods") or {}) > _MOST_PENDING:
        why = "too many pending evictions not confirmed by PDB controller"
        raise _refused(f"The disruption budget {name} does not allow evicting pods currently: {why}")
    if allowed <= 0:
        wanted, have = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        if have <= wanted:
            text = f"The disruption budget {name} needs {wanted} healthy pods and has {have} currently"
        else:
            text = f"The disruption budget {name} does not allow evicting pods currently"
        raise _refused(text)


def _refused(text: str, *, retry_after: int = 0) -> TooManyRequests:
    return TooManyRequests(_VIOLATES, causes=[Cause("DisruptionBudget", text)], retry_after=retry_after)


async def _spend(registry: Registry, call: Call, budget: Json) -> None:
    """One disruption less, noted in the budget before the Pod goes."""
    served, version = registry.find("policy", "v1", "poddisruptionbudgets")
    status: Json = budget["status"]
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), call.name: registry.now()}
    if status["disruptionsAllowed"] == 0:
        spent: Json = {"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": ""}
        spent |= {"lastTransitionTime": registry.now(), "observedGeneration": status.get("observedGeneration", 0)}
        others = [c for c in status.get("conditions") or () if c.get("type") != spent["type"]]
        status["conditions"] = [*others, spent]
    name = budget["metadata"]["name"]
    await registry.update(call.ctx, served, version, call.namespace, name, budget, subresource="status")


# -- binding ---------------------------------------------------------------------------------------------------


async def _bind(registry: Registry, call: Call) -> Json:
    body = call.body or {}
    meta = body.get("metadata") or {}
    if meta.get("name") != call.name:
        raise BadRequest("name in URL does not match name in Binding object")
    node = _target(body, call.name)
    for _ in range(_ATTEMPTS):
        record = registry.store.head("pods", f"{call.namespace}/{call.name}")
        if record is None:
            raise not_found("", "pods", call.name)
        pod = _bound(record, meta, node, registry.now())
        if call.ctx.dry_run:
            return dict(_SUCCESS)
        try:
            await registry.store.put("pods", record.name, encoder(pod), expect=record.revision)
            return dict(_SUCCESS)
        except Mismatch:
            continue
    raise conflict("", "pods/binding", call.name, "the Pod kept changing; try again")


def _target(body: Json, name: str) -> str:
    target = body.get("target") or {}
    causes: list[Cause] = []
    if target.get("kind") not in (None, "", "Node"):
        causes.append(unsupported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        causes.append(required("target.name"))
    else:
        causes += named("target.name", target["name"], dns_subdomain)
    if causes:
        # The real server gives a 500 without a reason here; the fault is the client's, and it is told so.
        raise invalid("", "Binding", name, causes)
    return str(target["name"])


def _bound(record: Record, meta: Json, node: str, now: str) -> Json:
    pod: Json = orjson.loads(record.value)
    own, spec, name = pod["metadata"], pod["spec"], pod["metadata"]["name"]
    fault = ""
    if (uid := meta.get("uid")) and uid != own["uid"]:
        fault = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {own['uid']}"
    elif own.get("deletionTimestamp"):
        fault = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        fault = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        fault = f"pod {name} has non-empty .spec.schedulingGates"
    if fault:
        raise conflict("", "pods/binding", name, fault)
    spec["nodeName"] = node
    for field in ("annotations", "labels"):
        if meta.get(field):
            own[field] = {**(own.get(field) or {}), **meta[field]}
    pod.setdefault("status", {}).pop("nominatedNodeName", None)
    _set_condition(pod, "PodScheduled", now)
    return pod


def _set_condition(pod: Json, kind: str, now: str, **more: str) -> None:
    status: Json = pod.setdefault("status", {})
    others = [c for c in status.get("conditions") or () if c.get("type") != kind]
    condition = {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": now, **more}
    status["conditions"] = [*others, condition]
