"""PodDisruptionBudgets: how many Pods may leave now."""

from __future__ import annotations

from typing import Any

from homeport.sim.machine.workload.kind import BUDGET, Json
from homeport.sim.machine.workload.view import View, finished, leaving, matches, ready


async def settle_budgets(view: View) -> None:
    for budget in view.all(BUDGET):
        if not leaving(budget):
            await _settle(view, budget)


async def _settle(view: View, budget: Json) -> None:
    spec, meta = budget.get("spec") or {}, budget["metadata"]
    selected = [
        pod
        for pod in view.pods
        if pod["metadata"].get("namespace") == meta["namespace"]
        and not finished(pod)
        and matches(spec.get("selector"), pod["metadata"].get("labels"))
    ]
    expected = len(selected)
    healthy = sum(1 for pod in selected if ready(pod) and not leaving(pod))
    if spec.get("maxUnavailable") is not None:
        desired = expected - _share(spec["maxUnavailable"], expected)
    else:
        desired = _share(spec.get("minAvailable", 1), expected)
    allowed = max(healthy - max(desired, 0), 0) if expected else 0
    status = {
        "observedGeneration": meta.get("generation", 1),
        "expectedPods": expected,
        "currentHealthy": healthy,
        "desiredHealthy": max(desired, 0),
        "disruptionsAllowed": allowed,
    }
    await view.set_status(BUDGET, budget, status)


def _share(value: Any, of: int) -> int:
    """A number, or a percentage rounded up."""
    text = str(value)
    return -(-int(text[:-1]) * of // 100) if text.endswith("%") else int(text)
