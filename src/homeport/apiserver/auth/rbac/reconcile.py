"""Brings the default roles and bindings into the store, and keeps aggregated ClusterRoles written out.

At each start what is missing is added; what somebody added is left; what carries the annotation
`rbac.authorization.kubernetes.io/autoupdate: "false"` is not touched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import structlog

from homeport.api.meta import Resource
from homeport.apiserver.auth.rbac.policy import AUTOUPDATE, default_bindings, default_roles
from homeport.apiserver.auth.rbac.rbac import CLUSTER_ROLES, GROUP, Rbac
from homeport.apiserver.auth.rbac.rule import compact, missing, parse_rules
from homeport.apiserver.auth.source import Json
from homeport.client.errors import ApiError, Conflict, NotFound
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.store import Change, Store

log = structlog.get_logger(__name__)

ROLE = Resource(GROUP, "v1", "ClusterRole", "clusterroles", namespaced=False)
BINDING = Resource(GROUP, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
_AGGREGATOR = Write(field_manager="clusterrole-aggregation-controller")
RETRY_SECONDS = 5.0


class Action(NamedTuple):
    """One write. The role of a binding is immutable, so such a binding is recreated: deleted first."""

    kind: Resource
    obj: Json
    exists: bool
    recreate: bool = False


def plan_policy(roles: Mapping[str, Json], bindings: Mapping[str, Json]) -> list[Action]:
    """What to write, given the ClusterRoles and ClusterRoleBindings that exist, by name."""
    actions = [_plan_role(wanted, roles.get(wanted["metadata"]["name"])) for wanted in default_roles()]
    actions += [_plan_binding(wanted, bindings.get(wanted["metadata"]["name"])) for wanted in default_bindings()]
    return [action for action in actions if action is not None]


def _plan_role(wanted: Json, found: Json | None) -> Action | None:
    if found is None:
        return Action(ROLE, wanted, exists=False)
    if _protected(found):
        return None
    merged = {**found, "metadata": _merged_metadata(wanted, found)}
    if "aggregationRule" in wanted:
        merged["aggregationRule"] = _merged_aggregation(wanted["aggregationRule"], found.get("aggregationRule") or {})
    else:
        lacking = compact(missing(parse_rules(found), parse_rules(wanted)))
        if lacking:
            merged["rules"] = [*(found.get("rules") or ()), *(rule.as_dict() for rule in lacking)]
    return None if merged == found else Action(ROLE, merged, exists=True)


def _plan_binding(wanted: Json, found: Json | None) -> Action | None:
    if found is None:
        return Action(BINDING, wanted, exists=False)
    if _protected(found):
        return None
    if any(found["roleRef"].get(field) != wanted["roleRef"][field] for field in ("kind", "name")):
        return Action(BINDING, wanted, exists=True, recreate=True)
    present = found.get("subjects") or []
    known = {(s.get("kind"), s.get("name"), s.get("namespace", "")) for s in present}
    lacking = [s for s in wanted["subjects"] if (s["kind"], s["name"], "") not in known]
    merged = {**found, "metadata": _merged_metadata(wanted, found)}
    if lacking:
        merged["subjects"] = [*present, *lacking]
    return None if merged == found else Action(BINDING, merged, exists=True)


def _protected(obj: Json) -> bool:
    return (obj["metadata"].get("annotations") or {}).get(AUTOUPDATE) == "false"


def _merged_metadata(wanted: Json, found: Json) -> Json:
    meta = dict(found["metadata"])
    for field in ("labels", "annotations"):
        meta[field] = {**wanted["metadata"][field], **(meta.get(field) or {})}
    return meta


def _merged_aggregation(wanted: Json, found: Json) -> Json:
    selectors = list(found.get("clusterRoleSelectors") or ())
    selectors += [each for each in wanted["clusterRoleSelectors"] if each not in selectors]
    return {**found, "clusterRoleSelectors": selectors}


async def ensure_policy(client: Client) -> int:
    """Writes what `plan_policy` says; gives the number of writes. All at once, so that they share their commits."""
    roles, bindings = await asyncio.gather(client.list(ROLE), client.list(BINDING))
    actions = plan_policy(
        {obj.name: obj for obj in roles.items},
        {obj.name: obj for obj in bindings.items},
    )
    await asyncio.gather(*(_write(client, action) for action in actions))
    return len(actions)


async def _write(client: Client, action: Action) -> None:
    if action.recreate:
        await client.delete(action.kind, Key("", action.obj["metadata"]["name"]))
    if action.exists and not action.recreate:
        await client.replace(action.obj, kind=action.kind)
    else:
        await client.create(action.obj, kind=action.kind)


class Aggregator:
    """Writes into every aggregated ClusterRole the rules of those it selects, whenever they change."""

    def __init__(self, rbac: Rbac, client: Client) -> None:
        self._rbac = rbac
        self._client = client
        self._changed = asyncio.Event()
        self._changed.set()

    def follow(self, store: Store) -> Callable[[], None]:
        return store.subscribe(CLUSTER_ROLES, self._take)

    def _take(self, changes: Sequence[Change]) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self.settle()
            except ApiError as failed:
                log.warning("aggregated roles could not be written; trying again", why=str(failed))
                await asyncio.sleep(RETRY_SECONDS)
                self._changed.set()

    async def settle(self) -> int:
        """Writes the roles that are not as they should be; gives their number."""
        due = [(name, rules) for name, stored, rules in self._rbac.roles.aggregated() if stored != rules]
        for name, rules in due:
            patch = MergePatch({"rules": [rule.as_dict() for rule in rules]})
            try:
                await self._client.patch(ROLE, Key("", name), patch, _AGGREGATOR)
            except (NotFound, Conflict):
                continue  # deleted or changed meanwhile: that change brings us back here
        return len(due)
