"""Which controllers of an installation wait for a Lease, and for whom, as its objects show it.

Replicas decide by their own clocks and know better (`/readyz` tells it); whoever only reads objects has to believe the
times in them. Nothing is decided by this but what a person is shown.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.meta import Resource, Unstructured
from homeport.app.kubernetes.layout import COMBINED, SPLIT_HOLDER, split_leases
from homeport.app.report.description import Finding
from homeport.client.absence import find_object
from homeport.client.errors import Forbidden, NotFound
from homeport.client.protocol import Client, Key, Query
from homeport.runtime.clock import parse_time
from homeport.runtime.lease import LEASE, LeaseTiming, explain_wait
from homeport.runtime.shard import GROUP_LABEL

DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
OURS = "app.kubernetes.io/name=homeport"
_HOME = Key(*COMBINED.lease)
_SLACK_SECONDS = 5.0  # clocks of machines differ
_QUIET_SECONDS = 60.0  # holders renew every few seconds


@dataclass(frozen=True, slots=True)
class LeaseState:
    """A Lease with a holder, who has not necessarily survived."""

    key: Key
    holder: str
    renewed: float
    duration: float
    part: bool = False  # of a Deployment of the split layout

    def expired(self, now: float) -> bool:
        return now - self.renewed > self.duration + _SLACK_SECONDS

    def left_behind(self, now: float) -> bool:
        """Its holder seems to be gone, but it does not expire soon."""
        return now - self.renewed > _QUIET_SECONDS and not self.expired(now)

    def explain(self, now: float) -> str:
        if not self.left_behind(now):
            return explain_wait(self.key, self.holder)
        return (
            f"held by {self.holder}, who last renewed it at {_shown(self.renewed)}; it expires at "
            f"{_shown(self.renewed + self.duration)}, and no other replica takes it before that. If {self.holder} "
            f"no longer runs, delete it with '{_delete(self.key)}'"
        )


async def read_deployments(client: Client) -> list[Unstructured]:
    """Of installations. Users of clusters often may not see them."""
    try:
        return list((await client.list(DEPLOYMENT, Query(labels=OURS))).items)
    except (Forbidden, NotFound):
        return []


async def read_leases(client: Client) -> list[LeaseState]:
    """Those that controllers of any layout hold. Users of clusters often may not see them."""
    from homeport.app.components import COMPONENTS  # late: everything is imported with it

    try:
        home = await find_object(client, LEASE, _HOME)
        parts = await asyncio.gather(*(find_object(client, LEASE, each) for each in split_leases(COMPONENTS)))
        members = (await client.list(LEASE, Query(namespace=_HOME.namespace, labels=GROUP_LABEL))).items
    except (Forbidden, NotFound):
        return []
    found = [_state(each) for each in (home, *members) if each is not None]
    found += [_state(each, part=True) for each in parts if each is not None]
    return [each for each in found if each.holder]


def find_waits(deployments: Iterable[Mapping[str, Any]], leases: Sequence[LeaseState], now: float) -> list[Finding]:
    """Deployments whose controllers wait for others, and Leases that nobody renews and nobody gets."""
    found: list[Finding] = []
    named: set[Key] = set()
    for each in deployments:
        held = [lease for lease in _others(each, leases) if not lease.expired(now)]
        if held:
            named |= {lease.key for lease in held}
            meta = each["metadata"]
            found.append(Finding("Deployment", f"{meta['namespace']}/{meta['name']}", _explain(held, now)))
    behind = [each for each in leases if each.left_behind(now) and each.key not in named]
    return [*found, *(Finding("Lease", str(each.key), each.explain(now)) for each in behind)]


def _explain(held: Sequence[LeaseState], now: float) -> str:
    first, *more = sorted(held, key=lambda each: not each.left_behind(now))
    text = f"its controllers do not work: they wait for Lease {first.key}, {first.explain(now)}"
    return f"{text}. They also wait for Lease {', '.join(str(each.key) for each in more)}" if more else text


def _others(deployment: Mapping[str, Any], leases: Iterable[LeaseState]) -> Iterable[LeaseState]:
    """Those that its replicas do not work beside, as the manager of a replica chooses them."""
    spec = deployment.get("spec") or {}
    containers = ((spec.get("template") or {}).get("spec") or {}).get("containers") or ()
    arguments = [str(each) for container in containers for each in container.get("args") or ()]
    if "up" not in arguments or spec.get("replicas") == 0:
        return []  # the dashboard, for example
    if any(each.startswith("--deployment") for each in arguments):
        return [each for each in leases if each.key == _HOME and each.holder != SPLIT_HOLDER]
    # Replicas of one Lease stand by for each other. Holders of other Leases are named by these.
    foreign = [each for each in leases if each.key == _HOME and (each.holder == SPLIT_HOLDER or "/" in each.holder)]
    return [*foreign, *(each for each in leases if each.part)]


def _state(lease: Unstructured, *, part: bool = False) -> LeaseState:
    spec = lease.get("spec") or {}
    since = spec.get("renewTime") or lease.metadata.get("creationTimestamp")
    return LeaseState(
        Key(lease.namespace, lease.name),
        str(spec.get("holderIdentity") or ""),
        parse_time(str(since)) if since else 0.0,
        float(spec.get("leaseDurationSeconds") or LeaseTiming().duration),
        part,
    )


def _shown(moment: float) -> str:
    try:
        return f"{datetime.datetime.fromtimestamp(moment, datetime.UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError):
        return "a time after the year 9999"


def _delete(key: Key) -> str:
    return f"kubectl delete lease -n {key.namespace} {key.name}"
