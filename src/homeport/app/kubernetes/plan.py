"""What `homeport install` puts on a cluster, as one record of choices and the objects that follow from it."""

from __future__ import annotations

from dataclasses import dataclass, field

from homeport.app.kubernetes import webhook, workload
from homeport.app.kubernetes.access import cluster_rules, common_rules, hook_rules, layout_rules, lease_rules, rules_of
from homeport.app.kubernetes.dashboard import object as page
from homeport.app.kubernetes.dashboard import place
from homeport.app.kubernetes.dashboard.object import DashboardOptions
from homeport.app.kubernetes.layout import COMBINED, SYSTEM_NAMESPACE, Layout, Placement, placements, split_leases
from homeport.app.kubernetes.role import account_of, render_binding, render_role
from homeport.app.kubernetes.workload import Json, PodOptions
from homeport.app.platform import Platform
from homeport.capi.rule import Rule, merged

_EXTENSIBLE = ("core", "k0rdent")  # they work on kinds that only users know


@dataclass(frozen=True, slots=True)
class Plan:
    platform: Platform
    layout: Layout = "combined"
    pod: PodOptions = field(default_factory=PodOptions)
    management_addons: bool = False  # the controllers may install any chart into the cluster that they run on
    dashboard: DashboardOptions | None = field(default_factory=DashboardOptions)  # None: it is not installed

    @property
    def placements(self) -> list[Placement]:
        return placements(self.platform.components, self.layout)

    @property
    def deployments(self) -> list[Placement]:
        """Everything that runs: the controllers, and the dashboard."""
        return [*self.placements, *([place.PLACE] if self.dashboard is not None else [])]

    def definitions(self) -> list[Json]:
        return [webhook.with_conversion(each, SYSTEM_NAMESPACE) for each in self.platform.definitions()]

    def namespaces(self) -> list[Json]:
        found = [SYSTEM_NAMESPACE, *self.platform.namespaces()]
        found += [place.NAMESPACE] if self.dashboard is not None else []
        return [_namespace(name) for name in dict.fromkeys(found)]

    async def objects(self) -> list[Json]:
        """In the order in which they are applied; all of them can be removed and come back."""
        found: list[Json] = []
        for placement in self.placements:
            found += await self._access(placement)
        for placement in self.placements:
            found += workload.render(placement, self.pod)
        if self.dashboard is not None:
            found += page.render(self.dashboard, self.pod)
        return [*found, *self._webhooks()]

    def _webhooks(self) -> list[Json]:
        """Last: from then on an API server refuses objects of users until a replica answers."""
        made = webhook.webhook_objects(self.platform.components, SYSTEM_NAMESPACE)
        return [{**each, "metadata": {**each["metadata"], "labels": dict(workload.LABELS)}} for each in made]

    async def everything(self) -> list[Json]:
        """For one file: enough for an empty cluster. The controllers create the rest when they start."""
        return [*self.namespaces(), *self.definitions(), *await self.objects()]

    async def _access(self, placement: Placement) -> list[Json]:
        named = [Rule("", ("namespaces",), ("get",), (placement.lease[0],))]
        named += layout_rules(split_leases(self.platform.components), split=placement.split)
        rules, own = merged([*await cluster_rules(self.platform, placement), *named]), lease_rules()
        if placement.home:
            needs = webhook.needs_of(self.platform.definitions(), SYSTEM_NAMESPACE)
            everywhere = rules_of(need for need in needs if not need.namespace)
            rules = merged([*rules, *hook_rules(self.platform), *everywhere])
            own = merged([*own, *rules_of(need for need in needs if need.namespace)])
        lease, leader = placement.lease[0], f"{placement.name}-leader-election"
        account = account_of(placement)
        role = role_name(placement)
        found = [
            workload.render_object("v1", "ServiceAccount", placement, automountServiceAccountToken=False),
            render_role(role, rules),
            render_binding(role, role, account),
            render_role(leader, own, lease),
            render_binding(leader, leader, account, lease),
        ]
        if placement.split and lease != SYSTEM_NAMESPACE:
            layout, rules = f"{placement.name}-layout", common_rules(COMBINED.lease[1])
            found += [
                render_role(layout, rules, SYSTEM_NAMESPACE),
                render_binding(layout, layout, account, SYSTEM_NAMESPACE),
            ]
        extended = f"{role}-extensions"
        if any(placement.has_component(self.platform.components, name) for name in _EXTENSIBLE):
            # Providers of others add their kinds with a labelled ClusterRole, as for upstream's controllers.
            found += [render_role(extended, [], aggregate=True), render_binding(extended, extended, account)]
        if self.management_addons and placement.has_component(self.platform.components, "butler"):
            found.append(render_binding(f"{role}-management-addons", "cluster-admin", account))
        return found


def role_name(placement: Placement) -> str:
    return placement.name if placement.home else f"homeport-{placement.name}"


def _namespace(name: str) -> Json:
    labels: dict[str, str] = {}
    if name in (COMBINED.namespace, place.NAMESPACE):
        labels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, **({"labels": labels} if labels else {})},
    }
