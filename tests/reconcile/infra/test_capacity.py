"""Templates report what a machine made from them would have, and nothing else."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Unstructured
from homeport.api.nutanix.v1beta1 import NutanixMachineTemplate
from homeport.client.protocol import Key, MergePatch
from homeport.infra.machine.capacity import CapacityReconciler
from homeport.runtime.testing import definition, plane, virtual

KEY = Key("default", "small")
TEMPLATE = NutanixMachineTemplate.__resource__


def capacity(template: Any) -> dict[str, str]:
    return {} if template.metadata.labels.get("size") == "unknown" else {"cpu": "4", "memory": "16Gi"}


@virtual
async def test_a_template_reports_its_capacity_and_no_condition() -> None:
    async with plane(crds=[definition(TEMPLATE)]) as p:
        await p.have({"apiVersion": TEMPLATE.api_version, "kind": TEMPLATE.kind, "metadata": {"name": "small"}})
        reconciler = CapacityReconciler(p.manager, NutanixMachineTemplate, capacity, "nutanix")
        assert (await p.reconcile(reconciler, KEY)).error is None
        found: Unstructured = await p.client.get(TEMPLATE, KEY)
        assert found["status"] == {"capacity": {"cpu": "4", "memory": "16Gi"}}
        assert (await p.reconcile(reconciler, KEY)).written == ()


@virtual
async def test_a_capacity_that_is_no_longer_known_is_removed() -> None:
    async with plane(crds=[definition(TEMPLATE)]) as p:
        await p.have({"apiVersion": TEMPLATE.api_version, "kind": TEMPLATE.kind, "metadata": {"name": "small"}})
        reconciler = CapacityReconciler(p.manager, NutanixMachineTemplate, capacity, "nutanix")
        await p.reconcile(reconciler, KEY)
        await p.client.patch(TEMPLATE, KEY, MergePatch({"metadata": {"labels": {"size": "unknown"}}}))
        assert (await p.reconcile(reconciler, KEY)).error is None
        found: Unstructured = await p.client.get(TEMPLATE, KEY)
        assert not (found.get("status") or {}).get("capacity")
