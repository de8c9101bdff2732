"""The permissions of a Deployment's ServiceAccount: what its controllers follow and do, and nothing else.

Kinds that controllers follow are known from their informers. What they write, each component declares as rules; tests
run whole clusters on a real API server with exactly these permissions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from homeport.api.clusterctl.v1alpha3 import Provider
from homeport.api.meta import Resource
from homeport.app.kubernetes.layout import Placement
from homeport.app.platform import Platform, definitions_of
from homeport.capi.component import Component
from homeport.capi.definition.inventory import is_inventory
from homeport.capi.environment import Environment
from homeport.capi.name import BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP
from homeport.capi.rule import DEFINED, Rule, merged
from homeport.client.config import Config
from homeport.client.http import HttpClient
from homeport.client.protocol import Key
from homeport.runtime.event import NEW as EVENT
from homeport.runtime.lease import LEASE
from homeport.runtime.manager import Manager
from homeport.runtime.permission import Need
from homeport.runtime.webhook.configuration import DEFINITION

_CONTRACT_GROUPS = (BOOTSTRAP_GROUP, CONTROL_PLANE_GROUP, INFRASTRUCTURE_GROUP)
_OFFLINE = Config("https://localhost")  # nothing connects there: only informers are asked for


async def cluster_rules(platform: Platform, placement: Placement) -> list[Rule]:
    """Of the ClusterRole. Asynchronous, because controllers are made in an event loop."""
    platform = replace(platform, placement=placement)
    manager = platform.manage(Manager(HttpClient(_OFFLINE)), Environment(HttpClient(_OFFLINE)))
    followed = (informer.resource for informer in manager.informers)
    return controller_rules(platform, followed, contracts=follows_contracts(manager))


def follows_contracts(manager: Manager) -> bool:
    """Whether it follows kinds as objects refer to them: their definitions say which contract they keep."""
    return any(informer.resource.plural == DEFINITION.plural for informer in manager.informers)


def controller_rules(platform: Platform, followed: Iterable[Resource], *, contracts: bool) -> list[Rule]:
    """Of the controllers of the platform's placement, which follow these kinds."""
    placement = platform.placement
    rules = [Rule(each.group, (each.plural,), ("get", "list", "watch")) for each in followed]
    chosen = [component for component in platform.components if placement.has(component)]
    rules += [rule for component in chosen for rule in _written(component, placement)]
    rules += [Rule(group, DEFINED, ("get", "list", "watch")) for group in _CONTRACT_GROUPS if contracts]
    # The message of an Event that exists can be changed through the core group alone.
    rules += [Rule(EVENT.group, ("events",), ("create", "patch")), Rule("", ("events",), ("patch",))]
    rules += _start_rules(platform) if placement.home else ()
    return merged(each for rule in rules for each in _spelled_out(platform, rule))


def needs_of_rules(rules: Iterable[Rule], namespace: str = "") -> list[Need]:
    return [
        Need(rule.verbs, Resource(rule.group, "*", "", resource), namespace, name)
        for rule in rules
        for resource in rule.resources
        for name in rule.names or ("",)
    ]


def _written(component: Component, placement: Placement) -> Iterable[Rule]:
    given = placement.rules(component)
    return (*_own_rules(component), *component.rules) if given is None else given


def _own_rules(component: Component) -> Iterable[Rule]:
    """A controller keeps a finalizer and annotations on objects of its kinds, and reports their status."""
    for definition in definitions_of(component):
        spec = definition["spec"]
        plural = spec["names"]["plural"]
        if not is_inventory(definition) and plural not in component.unwritten:
            reported = (f"{plural}/status",) if _has_status(spec) else ()
            yield Rule(spec["group"], (plural, *reported), ("patch",))


def _has_status(spec: Mapping[str, Any]) -> bool:
    """Templates, for example, report nothing."""
    return any("status" in (version.get("subresources") or {}) for version in spec["versions"])


def _spelled_out(platform: Platform, rule: Rule) -> Iterable[Rule]:
    """Kinds of other providers are not among those that components define: they are added by aggregation."""
    (defined,) = DEFINED
    if not rule.resources[0].startswith(defined):
        return (rule,)
    ending, _, part = rule.resources[0].removeprefix(defined).partition("/")
    specs = [each["spec"] for each in platform.definitions() if each["spec"]["group"] == rule.group]
    plurals = [spec["names"]["plural"] for spec in specs if not part or _has_status(spec)]
    tail = f"/{part}" if part else ""
    return (replace(rule, resources=tuple(f"{each}{tail}" for each in plurals if each.endswith(ending))),)


def _start_rules(platform: Platform) -> Iterable[Rule]:
    """For what exists from the start: it is created if it is missing, and the inventory is kept up to date."""
    if platform.inventory():
        listed = Provider.__resource__
        yield Rule(listed.group, (listed.plural,), ("get", "create", "patch"))
    for resource, _ in platform.objects():
        yield Rule(resource.group, (resource.plural,), ("create",))


def hook_rules(platform: Platform) -> Iterable[Rule]:
    """Of the replicas that serve webhooks: their hooks look up what an object refers to, of any component."""
    for definition in platform.definitions():
        yield Rule(definition["spec"]["group"], (definition["spec"]["names"]["plural"],), ("get", "list"))
    yield Rule("", ("configmaps", "namespaces"), ("get",))


def rules_of(needs: Iterable[Need]) -> list[Rule]:
    """Needs of several objects of a kind become one rule that names them."""
    names: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for need in needs:
        found = names.setdefault((need.resource.group, need.resource.plural, need.verbs), [])
        found += [need.name] if need.name else []
    return [Rule(group, (plural,), verbs, tuple(found)) for (group, plural, verbs), found in names.items()]


def lease_rules() -> list[Rule]:
    """Of the Role in the namespace of the Lease: replicas elect one leader, or know each other's shares."""
    return [Rule(LEASE.group, (LEASE.plural,), ("get", "list", "create", "update", "delete"))]


def common_rules(lease: str) -> list[Rule]:
    """Of the Role in the namespace of the Lease that all Deployments of the split layout hold together."""
    return [
        Rule(LEASE.group, (LEASE.plural,), ("create",)),
        Rule(LEASE.group, (LEASE.plural,), ("get", "update"), (lease,)),
    ]


def layout_rules(leases: Iterable[Key], *, split: bool) -> list[Rule]:
    """Of all Deployments: those of the split layout give back the Lease that they hold together when the last of them
    ends, and the combined one works while none of them does."""
    verbs = ("get",) if split else ("get", "watch")
    return [Rule(LEASE.group, (LEASE.plural,), verbs, tuple(sorted({each.name for each in leases})))]
