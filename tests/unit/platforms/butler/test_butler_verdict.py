"""Whether a cluster may be: tenancy modes, quotas, provider access, allow-lists, policies."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.api.butler import v1alpha1 as api
from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment
from homeport.platforms.butler.normal.provider import normal_provider_config
from homeport.platforms.butler.normal.team import normal_team
from homeport.platforms.butler.team.demand import Demand
from homeport.platforms.butler.team.existing import Existing, measure
from homeport.platforms.butler.team.rule import chart_refusal
from homeport.platforms.butler.team.verdict import Verdict, World, judge
from homeport.platforms.butler.tenant.provider import Provider
from homeport.providers.nutanix.component import COMPONENT as NUTANIX
from present import present

LABEL = "butler.butlerlabs.dev/environment"


def read(kind: Any, name: str, spec: dict[str, Any], namespace: str = "", **more: Any) -> Any:
    meta = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", **more.pop("meta", {})}
    return msgspec.convert({"metadata": meta, "spec": spec, **more}, kind)


def tenant(name: str = "a", spec: dict[str, Any] | None = None, namespace: str = "harbour", **more: Any) -> Any:
    return read(api.TenantCluster, name, spec or {}, namespace, **more)


def provider(name: str = "nutanix-prod", namespace: str = "butler-system", **spec: Any) -> Any:
    part = {"credentialsRef": {"name": "c"}, "image": {"name": "talos-1.9"}}
    return read(api.ProviderConfig, name, {"type": "nutanix", "nutanix": part, **spec}, namespace)


def team(name: str = "harbour", **spec: Any) -> Any:
    return read(api.Team, name, spec)


def world(mode: str = "Optional", *, limits: dict[str, Any] | None = None, **more: Any) -> World:
    spec: dict[str, Any] = {"multiTenancy": {"mode": mode}, **({"defaultTeamLimits": limits} if limits else {})}
    held: dict[str, Any] = {"teams": [team()], "providers": [provider()], **more}
    return World(config=read(api.ButlerConfig, "butler", spec), **held)


def said(found: Verdict) -> str:
    texts = [
        *map(str, found.normal.faults),
        *(f"{each.reason} {each.field}: {each.message}" for each in found.refusals),
    ]
    return "; ".join(texts)


@pytest.mark.parametrize(
    ("mode", "namespace", "ref", "words"),
    [
        ("Disabled", "anywhere", "", ""),
        ("Disabled", "anywhere", "nobody", ""),
        ("Optional", "anywhere", "", ""),
        ("Optional", "harbour", "", ""),
        ("Optional", "harbour", "harbour", ""),
        ("Optional", "anywhere", "harbour", "clusters of team harbour are in namespace harbour"),
        ("Optional", "harbour", "nobody", 'Team "nobody" not found'),
        ("Enforced", "harbour", "", ""),
        ("Enforced", "anywhere", "", "multi-tenancy is Enforced"),
        ("Enforced", "butler-tenants", "", "create the cluster in the namespace of a team"),
    ],
)
def test_the_mode_decides_where_clusters_may_be(mode: str, namespace: str, ref: str, words: str) -> None:
    spec = {"teamRef": {"name": ref}} if ref else {}
    text = said(judge(tenant(spec=spec, namespace=namespace), world(mode)))
    assert words in text
    assert bool(words) == bool(text)


def test_a_cluster_in_the_namespace_of_a_team_counts_though_it_does_not_say_so() -> None:
    found = judge(tenant(), world(teams=[team(resourceLimits={"maxClusters": 0})]))
    assert found.team is not None
    assert "QuotaExceeded metadata.name: team harbour would use 1 clusters of 0" in said(found)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"maxClusters": 1}, "metadata.name: team harbour would use 2 clusters of 1"),
        ({"maxNodesPerCluster": 2}, "spec.workers.replicas: 3 workers: team harbour allows 2 per cluster"),
        ({"maxTotalNodes": 3}, "spec.workers.replicas: team harbour would use 4 workers of 3"),
        ({"maxCPUCores": "15"}, "spec.workers.machineTemplate.cpu: team harbour would use 16 CPUs of 15"),
        ({"maxMemory": "31Gi"}, "team harbour would use 32Gi memory of 31Gi"),
        ({"maxStorage": "100Gi"}, "team harbour would use 160Gi disk space of 100Gi"),
        ({"maxClusters": 2, "maxTotalNodes": 4, "maxCPUCores": 16, "maxMemory": "32Gi", "maxStorage": "160Gi"}, ""),
    ],
)
def test_each_limit_of_a_team_is_enforced(limits: dict[str, Any], words: str) -> None:
    there = world(teams=[team(resourceLimits=limits)], tenants=[tenant("other")])
    text = said(judge(tenant(spec={"workers": {"replicas": 3}}), there))
    assert words in text
    assert bool(words) == bool(text)


def test_a_team_without_limits_has_those_of_the_platform() -> None:
    there = world(limits={"maxClusters": 1}, tenants=[tenant("other")])
    assert "would use 2 clusters of 1" in said(judge(tenant(), there))
    own = world(limits={"maxClusters": 1}, tenants=[tenant("other")], teams=[team(quotas={"maxClusters": 5})])
    assert said(judge(tenant(), own)) == ""


def test_a_team_over_its_limit_can_scale_down_and_not_up() -> None:
    big, small, bigger = (tenant(spec={"workers": {"replicas": count}}) for count in (5, 4, 6))
    there = world(teams=[team(resourceLimits={"maxTotalNodes": 3})], tenants=[big])
    assert said(judge(small, there, before=big)) == ""
    assert "would use 6 workers of 3" in said(judge(bigger, there, before=big))


def test_of_two_clusters_that_were_admitted_at_once_the_younger_one_is_over_the_limit() -> None:
    old = tenant("old", meta={"creationTimestamp": "2026-01-01T00:00:00Z"})
    young = tenant("young", meta={"creationTimestamp": "2026-01-02T00:00:00Z"})
    there = world(teams=[team(resourceLimits={"maxClusters": 1})], tenants=[old, young])
    assert said(judge(old, there, earlier=True)) == ""
    assert "QuotaExceeded" in said(judge(young, there, earlier=True))
    # A cluster that exists keeps its place.
    running = tenant("young", meta={"creationTimestamp": "2026-01-02T00:00:00Z"}, status={"tenantNamespace": "young-1"})
    there = world(teams=[team(resourceLimits={"maxClusters": 1})], tenants=[old, running])
    assert said(judge(running, there, earlier=True)) == ""


def test_limits_of_environments_and_their_members() -> None:
    limited = team(environments=[{"name": "prod", "limits": {"maxClusters": 2, "maxClustersPerMember": 1}}])

    def in_prod(name: str, owner: str) -> Any:
        meta = {"labels": {LABEL: "prod"}, "annotations": {"butler.butlerlabs.dev/owner": owner}}
        return tenant(name, meta=meta)

    one, two = in_prod("b", "ada"), in_prod("c", "bob")
    assert "PerMemberCapExceeded" in said(judge(in_prod("a", "ada"), world(teams=[limited], tenants=[one])))
    assert said(judge(in_prod("a", "bob"), world(teams=[limited], tenants=[one]))) == ""
    assert "EnvQuotaExceeded" in said(judge(in_prod("a", "eve"), world(teams=[limited], tenants=[one, two])))
    assert said(judge(tenant(), world(teams=[limited], tenants=[one, two]))) == ""


@pytest.mark.parametrize(
    ("scope", "limits", "words"),
    [
        ({}, {}, ""),
        ({"scope": {"type": "team", "teamRef": {"name": "harbour"}}}, {}, ""),
        ({"scope": {"type": "team", "teamRef": {"name": "dock"}}}, {}, "belongs to team dock: team harbour may not"),
        ({}, {"allowedProviders": ["nutanix"]}, ""),
        ({}, {"allowedProviders": ["nutanix-prod"]}, ""),
        ({}, {"allowedProviders": ["harvester"]}, "is not allowed for team harbour; allowed are harvester"),
        ({"limits": {"maxClustersPerTeam": 1}}, {}, "the team has 1 clusters on ProviderConfig nutanix-prod"),
        ({"limits": {"maxNodesPerTeam": 1}}, {}, "the team would have 2 workers on ProviderConfig nutanix-prod"),
    ],
)
def test_providers_are_for_those_who_may_use_them(scope: dict[str, Any], limits: dict[str, Any], words: str) -> None:
    there = world(teams=[team(resourceLimits=limits)], providers=[provider(**scope)], tenants=[tenant("other")])
    spec = {"providerConfigRef": {"name": "nutanix-prod"}}
    text = said(judge(tenant(spec=spec), there))
    assert words in text
    assert bool(words) == bool(text)


def test_a_provider_in_the_namespace_of_another_team_is_not_found() -> None:
    there = world(teams=[team(), team("dock")], providers=[provider("theirs", "dock")])
    for ref in ({"name": "theirs"}, {"name": "theirs", "namespace": "dock"}):
        found = judge(tenant(spec={"providerConfigRef": ref}), there)
        assert found.provider.config is None
        assert "not found" in found.provider.message
    assert judge(tenant(namespace="dock"), there).provider.config is not None


@pytest.mark.parametrize(
    ("limits", "spec", "words"),
    [
        ({"allowedKubernetesVersions": ["v1.33"]}, {"kubernetesVersion": "v1.33.9"}, ""),
        ({"allowedKubernetesVersions": ["v1.33"]}, {"kubernetesVersion": "v1.34.0"}, "team harbour allows v1.33"),
        ({"allowedAddons": ["metallb"]}, {"addons": {"loadBalancer": {}}}, ""),
        ({"allowedAddons": ["metallb"]}, {"addons": {"storage": {}}}, 'add-on "longhorn" is not allowed'),
        ({"deniedAddons": ["longhorn"]}, {"addons": {"storage": {}}}, 'add-on "longhorn" is denied'),
    ],
)
def test_versions_and_addons_are_those_that_the_team_allows(
    limits: dict[str, Any], spec: dict[str, Any], words: str
) -> None:
    text = said(judge(tenant(spec=spec), world(teams=[team(resourceLimits=limits)])))
    assert words in text
    assert bool(words) == bool(text)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({}, 'ValidationFailed spec.providerConfigRef: "talos-1.9" is not allowed by ClusterCreationPolicy images'),
        ({"infrastructureOverride": {"nutanix": {"image": {"name": "rocky-9-cloud"}}}}, ""),
        ({"workers": {"machineTemplate": {"os": {"imageRef": "rocky-9-cloud"}}}}, ""),
        (
            {"workers": {"machineTemplate": {"os": {"imageRef": "debian"}}}},
            "spec.workers.machineTemplate.os.imageRef",
        ),
    ],
)
def test_a_policy_limits_what_clusters_are_made_of(spec: dict[str, Any], words: str) -> None:
    rules = {"scope": {"platformWide": {}}, "options": {"image": {"mode": "pin", "values": ["rocky-9-cloud"]}}}
    there = world(policies=[read(api.ClusterCreationPolicy, "images", rules)])
    text = said(judge(tenant(spec=spec), there))
    assert words in text
    assert bool(words) == bool(text)


def test_a_reference_without_a_namespace_goes_on_meaning_the_provider_that_the_cluster_runs_on() -> None:
    used = {"providerConfigRef": {"name": "nutanix-prod", "namespace": "butler-system"}}
    cluster = tenant(spec={"providerConfigRef": {"name": "nutanix-prod"}}, status=used)
    held = world(providers=[provider(), provider(namespace="harbour")])
    found = judge(cluster, held).provider.config
    assert found is not None
    assert found.metadata.namespace == "butler-system"


def test_a_cluster_that_is_labelled_into_a_full_environment_is_refused() -> None:
    environments = [{"name": "dev", "limits": {"maxClusters": 1}}, {"name": "prod"}]
    other = tenant("b", meta={"labels": {LABEL: "dev"}})
    held = world(teams=[team(environments=environments)], tenants=[other])
    before, now = (tenant(meta={"labels": {LABEL: each}}) for each in ("prod", "dev"))
    assert "environment dev of team harbour has 1 clusters; the most is 1" in said(judge(now, held, before=before))
    assert said(judge(now, held, before=now)) == ""


@pytest.mark.parametrize(
    ("limits", "repository", "words"),
    [
        ({}, "https://charts.example.com", ""),
        ({"allowedAddons": ["cilium"]}, "https://charts.example.com", "may have add-ons of the catalogue alone"),
        ({"deniedAddons": ["cilium"]}, "https://charts.example.com", 'add-on "cilium" is denied'),
        ({}, "http://169.254.169.254/latest", "spec.helm.repository: 169.254.169.254 is the management plane's own"),
        ({}, "https://localhost:6443", "spec.helm.repository: localhost is the management plane's own"),
        ({}, "oci://[::1]/charts", "spec.helm.repository: ::1 is the management plane's own"),
    ],
)
def test_a_chart_of_a_team_proves_nothing_by_its_name(limits: dict[str, Any], repository: str, words: str) -> None:
    model = present(normal_team(team(resourceLimits=limits)).model)
    found = chart_refusal("harbour", model.limits, "cilium", repository)
    assert words in found
    assert bool(words) == bool(found)


def test_a_provider_of_another_type_is_not_the_one_that_a_cluster_runs_on() -> None:
    cluster = msgspec.convert(
        {"spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "KubevirtCluster"}}},
        Cluster,
        strict=False,
    )
    config = provider()
    model, support = present(normal_provider_config(config).model), present(NUTANIX.platform)
    found = Provider(config, model, support, site=None)
    assert "is of type nutanix, and the cluster runs on a KubevirtCluster" in found.mismatch(cluster)
    assert found.mismatch(None) == ""
    assert found.finding().reason == "ProviderNotProbed"
    # What it says about itself then names clusters of other teams.
    config.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    config.status.conditions = [
        {"type": "Ready", "status": "False", "reason": "InUse", "message": "it is used by TenantCluster dock/theirs"}
    ]
    assert found.finding().reason == "ProviderDeleting"
    assert "theirs" not in found.finding().message


def test_addresses_of_a_cluster_and_of_a_network_pool_must_not_overlap() -> None:
    pool = read(api.NetworkPool, "lan", {"cidr": "10.40.0.0/24"}, "butler-system")
    cluster = tenant(spec={"networking": {"loadBalancerPool": {"start": "10.40.0.9", "end": "10.40.0.12"}}})
    assert "overlaps NetworkPool butler-system/lan (10.40.0.0-10.40.0.255)" in said(judge(cluster, world(pools=[pool])))


SOURCE = {
    "app.kubernetes.io/managed-by": "butler",
    "butler.butlerlabs.dev/source-namespace": "harbour",
    "butler.butlerlabs.dev/source-name": "a",
}


def exists(space: str, machines: int, replicas: int = 1, labels: dict[str, str] = SOURCE) -> list[Existing]:
    """A Cluster of TenantCluster a, with machines of 4 CPUs, 8Gi and 40Gi."""
    size = {"butler.butlerlabs.dev/machine-size": "cpu=4,memoryMiB=8192,diskGiB=40"}
    notes = {"butler.butlerlabs.dev/environment": "prod", "butler.butlerlabs.dev/runs-on": "butler-system/nutanix-prod"}
    cluster = read(Cluster, "a", {}, space, meta={"labels": labels, "annotations": notes})
    workers = read(MachineDeployment, "a-workers", {"replicas": replicas}, space, meta={"annotations": size})
    of = {"labels": {"cluster.x-k8s.io/deployment-name": "a-workers"}, "annotations": size}
    made = [read(Machine, f"a-{number}", {}, space, meta=of) for number in range(machines)]
    found = measure(cluster, [workers], None, made)
    return [] if found is None else [found]


def test_machines_that_exist_and_those_that_are_still_to_be_made_count() -> None:
    three = Demand(1, 3, 12, 3 * 8192 << 20, 3 * 40 << 30)
    assert exists("a-1", machines=3)[0].demand == three
    assert exists("a-1", machines=0, replicas=3)[0].demand == three
    assert exists("a-1", machines=3, replicas=3)[0].demand == three
    assert exists("a-1", machines=3, labels={}) == []


def test_what_exists_counts_though_its_tenant_cluster_is_gone() -> None:
    limited = team(resourceLimits={"maxClusters": 1, "maxTotalNodes": 3}, environments=[{"name": "prod"}])
    there = world(teams=[limited], existing=lambda team: exists("a-1", 3))
    text = said(judge(tenant("b"), there))
    assert "would use 2 clusters of 1" in text
    assert "would use 4 workers of 3" in text
    # Nor may a new one of the same name take its place.
    assert "would use 2 clusters of 1" in said(judge(tenant("a"), there))


def test_what_exists_counts_though_its_tenant_cluster_asks_for_less() -> None:
    observed = tenant("a", {"workers": {"replicas": 0}}, status={"tenantNamespace": "a-1"})
    limited = team(resourceLimits={"maxTotalNodes": 3})
    there = world(teams=[limited], tenants=[observed], existing=lambda team: exists("a-1", 3))
    assert "would use 4 workers of 3" in said(judge(tenant("b"), there))
    gone = world(teams=[limited], tenants=[observed])
    assert said(judge(tenant("b"), gone)) == ""


def test_limits_of_environments_and_providers_count_what_was_left_behind() -> None:
    environments = [{"name": "prod", "limits": {"maxClusters": 1}}]
    there = world(teams=[team(environments=environments)], existing=lambda team: exists("a-1", 1))
    assert "EnvQuotaExceeded" in said(judge(tenant("b", meta={"labels": {LABEL: "prod"}}), there))
    config = provider(limits={"maxClustersPerTeam": 1})
    there = world(providers=[config], existing=lambda team: exists("a-1", 1))
    assert "the team has 1 clusters on ProviderConfig nutanix-prod" in said(judge(tenant("b"), there))


def test_a_cluster_that_exists_does_not_grow_over_the_limit_though_it_was_admitted() -> None:
    """Of two that were scaled at the same moment, only as much is made as the team may have."""
    young = tenant(
        "a", {"workers": {"replicas": 4}}, status={"tenantNamespace": "a-1"}, meta={"creationTimestamp": "2"}
    )
    old = tenant("b", {"workers": {"replicas": 4}}, status={"tenantNamespace": "b-1"}, meta={"creationTimestamp": "1"})
    there = world(
        teams=[team(resourceLimits={"maxTotalNodes": 6})],
        tenants=[young, old],
        existing=lambda team: exists("a-1", 2, replicas=2),
    )
    assert [each.field for each in judge(young, there, earlier=True).growth] == ["spec.workers.replicas"]
    assert judge(old, there, earlier=True).growth == ()
    # What is there already takes precedence over an older wish.
    full = World(
        config=there.config,
        teams=there.teams,
        tenants=there.tenants,
        providers=there.providers,
        existing=lambda team: exists("a-1", 4, replicas=4),
    )
    assert judge(young, full, earlier=True).growth == ()
    assert [each.field for each in judge(old, full, earlier=True).growth] == ["spec.workers.replicas"]
