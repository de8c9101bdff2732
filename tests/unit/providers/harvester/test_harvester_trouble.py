"""What Harvester records about machines that do not come up."""

from __future__ import annotations

from typing import Any

from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch
from homeport.providers.harvester.trouble import troubles
from homeport.runtime.clock import SystemClock, rfc3339
from homeport.runtime.testing import shared_pki
from unit.providers.harvester.test_harvester_connection import admin, connector, encoded, kubeconfig, served

EVENT = Resource("", "v1", "Event", "events")
QUOTA = Resource("", "v1", "ResourceQuota", "resourcequotas")


def event(name: str, kind: str, about: str, age_seconds: float = 0.0, type_: str = "Warning") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": kind, "name": about, "namespace": "default"},
        "type": type_,
        "reason": "FailedScheduling",
        "message": "0/3 nodes are available: insufficient memory",
        "lastTimestamp": rfc3339(SystemClock().now() - age_seconds),
    }


async def test_quotas_and_warnings_of_machines_are_named() -> None:
    async with connector() as made, served() as (_, url):
        ca = {"certificate-authority-data": encoded(shared_pki().ca_pem)}
        session = await made.open({}, {"kubeconfig": kubeconfig(url, admin(shared_pki()), **ca)})
        assert await troubles(session, ["harbour-cp-1"]) == []
        body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "team", "namespace": "default"}}
        hard = {"limits.memory": "16Gi", "limits.cpu": "8", "pods": "50"}
        await session.client.create({**body, "spec": {"hard": hard}}, kind=QUOTA)
        used = {"limits.memory": "16Gi", "limits.cpu": "7500m", "pods": "3"}
        await session.client.patch(
            QUOTA, Key("default", "team"), MergePatch({"status": {"hard": hard, "used": used}}), subresource="status"
        )
        for each in (
            event("a", "Pod", "virt-launcher-harbour-cp-1-abcde"),
            event("b", "VirtualMachineInstance", "other"),
            event("c", "VirtualMachineInstance", "harbour-cp-2", age_seconds=7200),
            event("d", "VirtualMachineInstance", "harbour-cp-2", type_="Normal"),
        ):
            await session.client.create(each, kind=EVENT)
        found = await troubles(session, ["harbour-cp-1", "harbour-cp-2"])
        assert [(each.reason, each.about.rpartition(" ")[0]) for each in found if "Quota" in each.reason] == [
            ("QuotaUsedUp", "ResourceQuota default/team of"),
            ("QuotaNearlyUsedUp", "ResourceQuota default/team of"),
        ]
        warnings = [each for each in found if each.reason == "VendorWarning"]
        assert [each.about for each in warnings] == ["harbour-cp-1"]
        assert "insufficient memory" in warnings[0].message
