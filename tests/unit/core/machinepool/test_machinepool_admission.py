"""Authors of MachinePools learn that no machine comes of them."""

from __future__ import annotations

from typing import Any

from homeport.core import machinepool
from homeport.runtime.webhook.hook import Hooks
from present import present

POOL: dict[str, Any] = {"metadata": {"name": "crew"}, "spec": {"clusterName": "harbour", "replicas": 3}}


async def warnings(pool: dict[str, Any], old: dict[str, Any] | None) -> list[str]:
    hooks = Hooks()
    machinepool.register(hooks)
    return await present(hooks.find("cluster.x-k8s.io", "machinepools")).find_warnings(pool, old)


async def test_a_new_or_changed_pool_leads_to_machine_deployments() -> None:
    (text,) = await warnings(POOL, None)
    assert "no controller acts on them" in text
    assert "use a MachineDeployment" in text
    changed = POOL | {"spec": POOL["spec"] | {"replicas": 5}}
    assert await warnings(changed, POOL) == [text]


async def test_a_label_repeats_nothing() -> None:
    assert await warnings(POOL | {"metadata": {"name": "crew", "labels": {"a": "b"}}}, POOL) == []
