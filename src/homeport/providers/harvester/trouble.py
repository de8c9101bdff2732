"""What Harvester records about machines that do not come up: Events, and quotas of the namespace."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.infra.error import ProviderError
from homeport.infra.vendor.trouble import RECENT_SECONDS, Quota, Trouble, judge
from homeport.machinery.quantity import parse_quantity
from homeport.providers.harvester.infracluster.connection import HarvesterSession
from homeport.runtime.clock import parse_time

_EVENT = Resource("", "v1", "Event", "events")
_QUOTA = Resource("", "v1", "ResourceQuota", "resourcequotas")
_CURE = "raise the quota of the namespace in Harvester, or use fewer or smaller machines"
_LAUNCHER = "virt-launcher-"


async def troubles(session: HarvesterSession, machines: Collection[str]) -> list[Trouble]:
    """`machines`: names of VMs that are not up. What the account may not read is left out."""
    found: list[Trouble] = []
    for quota in await _listed(session, _QUOTA):
        owner = f"ResourceQuota {quota.namespace}/{quota.name} of Harvester"
        found += judge(owner, _amounts(quota), _CURE)
    events = await _listed(session, _EVENT) if machines else []
    newest = {(_about(each), str(each.get("reason"))): each for each in sorted(events, key=_time)}
    for (about, reason), event in newest.items():
        warning = event.get("type") == "Warning" and session.clock.now() - _time(event) < RECENT_SECONDS
        if warning and about in machines:
            text = f"Harvester warns about VM {about}: {reason}: {event.get('message')}"
            found.append(Trouble("VendorWarning", about, text))
    return found


async def _listed(session: HarvesterSession, kind: Resource) -> list[Unstructured]:
    try:
        return await session.list(kind, session.namespace)
    except ProviderError:
        return []


def _amounts(quota: Unstructured) -> list[Quota]:
    status: Mapping[str, Any] = quota.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    return [
        Quota(name, float(parse_quantity(str(limit)).amount), float(parse_quantity(str(used.get(name, 0))).amount))
        for name, limit in hard.items()
    ]


def _about(event: Unstructured) -> str:
    """The VM: of a launcher's Pod, `virt-launcher-NAME-xxxxx`, or of an object that has its name."""
    name = str((event.get("involvedObject") or {}).get("name") or "")
    return name.removeprefix(_LAUNCHER).rpartition("-")[0] if name.startswith(_LAUNCHER) else name


def _time(event: Unstructured) -> float:
    seen = event.get("lastTimestamp") or event.get("eventTime") or event.metadata.get("creationTimestamp")
    return parse_time(str(seen)) if seen else 0.0
