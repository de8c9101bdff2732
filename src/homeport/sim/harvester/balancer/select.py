"""Which IPPool serves a load balancer: by network and scope, the highest priority first, else the global one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from homeport.sim.harvester.kind import Json
from homeport.sim.harvester.object import labels

GROUP = "loadbalancer.harvesterhci.io"
GLOBAL = f"{GROUP}/global-ip-pool"
_ANY = "*"


@dataclass(frozen=True, slots=True)
class Requirement:
    network: str = ""
    project: str = ""
    namespace: str = ""
    cluster: str = ""


def select_pool(pools: Iterable[Json], wanted: Requirement, *, loose: bool = False) -> Json | None:
    found: Json | None = None
    everyones: Json | None = None
    for pool in sorted(pools, key=lambda each: str(each["metadata"]["name"])):
        if labels(pool).get(GLOBAL) == "true":
            everyones = pool
        elif matches(selector_of(pool), wanted, loose=loose) and (found is None or _priority(pool) >= _priority(found)):
            found = pool
    return found or everyones


def matches(selector: Json, wanted: Requirement, *, loose: bool = False) -> bool:
    if selector.get("network", "") != wanted.network:
        return False
    return any(_fits(scope, wanted, loose) for scope in selector.get("scope") or ())


def is_global(pool: Json) -> bool:
    scopes = selector_of(pool).get("scope") or []
    return len(scopes) == 1 and all(scopes[0].get(name) == _ANY for name in ("namespace", "project", "guestCluster"))


def selector_of(pool: Json) -> Json:
    return pool["spec"].get("selector") or {}


def _priority(pool: Json) -> int:
    return int(selector_of(pool).get("priority") or 0)


def _fits(scope: Json, wanted: Requirement, loose: bool) -> bool:
    """`loose`: a project or guest cluster that is not given means any."""
    return (
        _same(scope.get("project", ""), wanted.project, loose)
        and _same(scope.get("namespace", ""), wanted.namespace, False)
        and _same(scope.get("guestCluster", ""), wanted.cluster, loose)
    )


def _same(given: str, wanted: str, loose: bool) -> bool:
    return _ANY in (given, wanted) or given == wanted or (loose and not given)
