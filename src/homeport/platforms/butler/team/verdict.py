"""Whether a cluster may be as it is written: one judgement for admission and for the controller."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from homeport.api.butler.v1alpha1 import (
    ButlerConfig,
    ClusterCreationPolicy,
    NetworkPool,
    ProviderConfig,
    Team,
    TenantCluster,
)
from homeport.api.butler.v1alpha1.part import ProviderRef
from homeport.machinery.address import AddressSet
from homeport.platforms.butler.name import ENVIRONMENT_LABEL, PLATFORM_POOL
from homeport.platforms.butler.normal.addresses import overlap_messages
from homeport.platforms.butler.normal.config import ConfigModel, normal_butler_config
from homeport.platforms.butler.normal.limits import Limits
from homeport.platforms.butler.normal.lookup import Found, choose_provider
from homeport.platforms.butler.normal.network import normal_network_pool
from homeport.platforms.butler.normal.outcome import Normal
from homeport.platforms.butler.normal.policy import normal_cluster_creation_policy
from homeport.platforms.butler.normal.provider import normal_provider_config
from homeport.platforms.butler.normal.team import TeamModel, normal_team
from homeport.platforms.butler.normal.tenant import Defaults, TenantModel, normal_tenant_cluster
from homeport.platforms.butler.team.demand import Demand, demand_of
from homeport.platforms.butler.team.existing import Existing
from homeport.platforms.butler.team.holding import Holding, as_held, hold, left_behind
from homeport.platforms.butler.team.quota import Held, Refusal, check_provider_limits, check_quota
from homeport.platforms.butler.team.rule import (
    INVALID,
    check_access,
    check_addons,
    check_policies,
    check_version,
)
from homeport.platforms.butler.team.tenancy import find_team


@dataclass(frozen=True, slots=True)
class World:
    """All objects that have a say."""

    config: ButlerConfig | None = None
    teams: Sequence[Team] = ()
    tenants: Sequence[TenantCluster] = ()
    providers: Sequence[ProviderConfig] = ()
    policies: Sequence[ClusterCreationPolicy] = ()
    pools: Sequence[NetworkPool] = ()
    existing: Callable[[str], Sequence[Existing]] = lambda team: ()  # what was made for a team

    @property
    def settings(self) -> ConfigModel:
        """A ButlerConfig that was stored with faults counts as none: its own status reports them."""
        return normal_butler_config(self.config).model or ConfigModel()


@dataclass(frozen=True, slots=True)
class Verdict:
    """`normal.model` is None if the object itself is wrong. `refusals`: what the platform has against it."""

    normal: Normal[TenantModel]
    team: TeamModel | None = None
    limits: Limits = field(default_factory=Limits)
    provider: Found = field(default_factory=lambda: Found(None))
    refusals: tuple[Refusal, ...] = ()
    growth: tuple[Refusal, ...] = ()  # what it has against making more than exists for the cluster


def judge(
    tenant: TenantCluster, world: World, *, before: TenantCluster | None = None, earlier: bool = False
) -> Verdict:
    """`before`: what the cluster was. `earlier`: count only clusters that came before it, as the controller does: of
    two that were admitted at the same moment, one is over the limit."""
    settings = world.settings
    found, fault = find_team(tenant, settings.mode, world.teams)
    if fault is not None:
        return Verdict(Normal(None, (fault,)))
    team = normal_team(found).model if found is not None else None
    limits = team.limits.under(settings.limits) if team else Limits()
    defaults = Defaults(settings, team)
    normal = normal_tenant_cluster(tenant, defaults)
    model = normal.model
    if model is None:
        return Verdict(normal, team, limits)
    provider = provider_of(tenant, world, settings, team)
    account = _account(tenant, world, defaults, limits, provider, earlier=earlier)
    refusals = [*_overlaps(tenant, model, world, settings), *_rules(model, world, team, limits, provider)]
    growth: list[Refusal] = []
    if account is not None:
        enters = before is None or before.metadata.labels.get(ENVIRONMENT_LABEL, "") != model.environment
        refusals += account.refusals(_demand(before, defaults), enters=enters)
        growth += account.refusals(account.own.existing, enters=False)
    return Verdict(normal, team, limits, provider, tuple(refusals), tuple(growth))


def provider_of(tenant: TenantCluster, world: World, settings: ConfigModel, team: TeamModel | None) -> Found:
    """What the cluster runs on already stays; otherwise object, team, ButlerConfig, default, the only one."""
    refs = (
        ("object", _own_provider(tenant)),
        ("team", team.provider if team else None),
        ("ButlerConfig", settings.provider),
    )
    return choose_provider(tenant.metadata.namespace, visible_providers(world, tenant.metadata.namespace), *refs)


def _own_provider(tenant: TenantCluster) -> ProviderRef | None:
    """A reference without a namespace goes on meaning what it meant when the cluster was created, though there is
    another ProviderConfig of that name by now."""
    wanted, used = tenant.spec.provider_config_ref, tenant.status.provider_config_ref
    if wanted is None or (used is not None and used.name == wanted.name and not wanted.namespace):
        return used or wanted
    return wanted


def visible_providers(world: World, namespace: str) -> list[ProviderConfig]:
    """All but those in namespaces of other teams: what a team brings is for its own clusters."""
    others = {each.metadata.name for each in world.teams} - {namespace}
    return [each for each in world.providers if each.metadata.namespace not in others]


def _rules(
    model: TenantModel, world: World, team: TeamModel | None, limits: Limits, provider: Found
) -> Iterator[Refusal]:
    name = team.name if team else ""
    yield from check_version(name, limits, model.version)
    yield from check_addons(name, limits, model)
    read = normal_provider_config(provider.config).model if provider.config is not None else None
    if provider.config is None or read is None:
        return
    yield from check_access(name, limits, provider.config, read)
    policies = [found for each in world.policies if (found := normal_cluster_creation_policy(each).model)]
    yield from check_policies(policies, name, model, read)


@dataclass(frozen=True, slots=True)
class _Account:
    """A cluster, and all that counts against the limits of its team besides it."""

    team: TeamModel
    limits: Limits
    provider: Found
    own: Holding
    others: list[Held]

    def refusals(self, before: Demand | None, *, enters: bool) -> Iterator[Refusal]:
        """`before`: what it had. `enters`: it was not in its environment before."""
        own = self.own.wanted
        yield from check_quota(self.team, self.limits, self.others, own, before, enters=enters)
        config = self.provider.config
        read = normal_provider_config(config).model if config is not None else None
        if config is not None and read is not None:
            yield from check_provider_limits(config.metadata.name, read.limits, self.others, own, before)


def _account(
    tenant: TenantCluster, world: World, defaults: Defaults, limits: Limits, provider: Found, *, earlier: bool
) -> _Account | None:
    team = defaults.team
    if team is None:
        return None
    existing = world.existing(team.namespace)
    mine = [each for each in world.tenants if each.metadata.namespace == team.namespace]

    def provider_name(each: TenantCluster) -> str:
        found = provider_of(each, world, defaults.config, team).config
        return f"{found.metadata.namespace}/{found.metadata.name}" if found is not None else ""

    others = list(map(as_held, left_behind([*mine, tenant], existing)))
    for each in mine:
        if each.metadata.name == tenant.metadata.name:
            continue
        holding = hold(each, existing, defaults, provider_name)
        # What came later takes nothing away by being wanted, but what was made for it is there.
        held = holding.only_existing if earlier and rank(each) > rank(tenant) else holding.both
        if held is not None:
            others.append(held)
    return _Account(team, limits, provider, hold(tenant, existing, defaults, provider_name), others)


def rank(tenant: TenantCluster) -> tuple[bool, str, str]:
    """Clusters that exist come before those that are only wanted, and older ones before younger ones."""
    meta = tenant.metadata
    return not tenant.status.tenant_namespace, meta.creation_timestamp or "", meta.uid


def _demand(tenant: TenantCluster | None, defaults: Defaults) -> Demand | None:
    if tenant is None:
        return None
    model = normal_tenant_cluster(tenant, defaults).model
    return Demand() if model is None else demand_of(model)


def _overlaps(tenant: TenantCluster, model: TenantModel, world: World, settings: ConfigModel) -> Iterator[Refusal]:
    if not model.load_balancer:
        return
    others = [*pools_of(world.tenants, besides=tenant)]
    if settings.load_balancer:
        others.append(
            ("the platform's own pool, spec.platform.metalLBPool of ButlerConfig butler", settings.load_balancer)
        )
    for each in world.pools:
        found = normal_network_pool(each).model
        if found is not None and each.metadata.name != PLATFORM_POOL:
            others.append((f"NetworkPool {each.metadata.namespace}/{each.metadata.name}", found.whole))
    for message in overlap_messages(model.load_balancer, others):
        yield Refusal(INVALID, pool_field(tenant), message)


def pools_of(
    tenants: Sequence[TenantCluster], besides: TenantCluster | None = None
) -> Iterator[tuple[str, AddressSet]]:
    """The addresses that clusters announce. Defaults have no say in them."""
    own = (besides.metadata.namespace, besides.metadata.name) if besides else None
    for each in tenants:
        at = (each.metadata.namespace, each.metadata.name)
        model = normal_tenant_cluster(each, Defaults()).model
        if at != own and model is not None and model.load_balancer:
            yield f"the pool of TenantCluster {at[0]}/{at[1]}", model.load_balancer


def pool_field(tenant: TenantCluster) -> str:
    spec = tenant.spec
    if spec.networking is not None and spec.networking.load_balancer_pool is not None:
        return "spec.networking.loadBalancerPool"
    if spec.addons is not None and spec.addons.load_balancer is not None and spec.addons.load_balancer.address_pool:
        return "spec.addons.loadBalancer.addressPool"
    return "spec.platform.metalLBPool"
