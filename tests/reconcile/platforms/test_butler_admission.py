"""What is refused when an object of Butler's kinds is written, with the field and the cure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from homeport.api.butler.v1alpha1 import ButlerConfig, IPAllocation, ProviderConfig, Team, TenantCluster
from homeport.client.errors import ApiError, BadRequest, Invalid
from homeport.client.protocol import Key, MergePatch, Write
from homeport.infra.error import Misconfigured
from homeport.platforms.butler.admission import register
from homeport.platforms.butler.provider.site import NAMESPACE, read_site
from homeport.providers.harvester.component import COMPONENT as HARVESTER_COMPONENT
from homeport.runtime.testing import Plane
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from reconcile.platforms.butler_kit import butler, butler_plane

STRICT = Write(field_validation="Strict")
HARVESTER = {
    "type": "harvester",
    "harvester": {"credentialsRef": {"name": "harvester-kubeconfig"}, "networkName": "default/workloads"},
}


@asynccontextmanager
async def admitting() -> AsyncIterator[Plane]:
    async with butler_plane() as p:
        hooks = Hooks()
        register(hooks, p.client)
        install_hooks(hooks, p.server)
        yield p


async def create(p: Plane, kind: str, name: str, spec: dict[str, Any], **meta: Any) -> Any:
    kinds: dict[str, Any] = {"ProviderConfig": ProviderConfig, "ButlerConfig": ButlerConfig}
    at = kinds.get(kind, TenantCluster).__resource__
    place = {"namespace": meta.pop("namespace", "default")} if at.namespaced else {}
    return await p.client.create(butler(kind, name, spec, **place, **meta), STRICT, kind=at)


async def refused(p: Plane, kind: str, name: str, spec: dict[str, Any], **meta: Any) -> str:
    with pytest.raises(ApiError) as found:
        await create(p, kind, name, spec, **meta)
    assert isinstance(found.value, Invalid | BadRequest)
    return str(found.value)


@pytest.mark.parametrize(
    ("kind", "spec", "words"),
    [
        ("ProviderConfig", {"type": "nutanix", "provider": "harvester"}, 'spec.type: Invalid value: "nutanix" contra'),
        ("ProviderConfig", {"type": "nutanix"}, "spec.nutanix: Required value: the provider is nutanix"),
        ("ProviderConfig", {"tipe": "nutanix"}, 'unknown field "spec.tipe" (did you mean "type"?)'),
        (
            "TenantCluster",
            {"workers": {"machineTemplate": {"diskSise": "10Gi"}}},
            'unknown field "spec.workers.machineTemplate.diskSise" (did you mean "diskSize"?)',
        ),
        (
            "TenantCluster",
            {"workers": {"machineTemplate": {"disk": "100Gi", "diskSize": "50Gi"}}},
            "contradicts spec.workers.machineTemplate.diskSize",
        ),
        ("TenantCluster", {"networking": {"podCIDR": "10.96.0.0/16"}}, "overlaps spec.networking.podCIDR"),
        ("TenantCluster", {"kubernetesVersion": "1.30"}, "spec.kubernetesVersion"),
    ],
)
async def test_a_wrong_object_is_refused_with_its_field(kind: str, spec: dict[str, Any], words: str) -> None:
    async with admitting() as p:
        assert words in await refused(p, kind, "a", spec)


async def test_an_unknown_field_without_a_near_match_is_refused_as_kubernetes_does() -> None:
    async with admitting() as p:
        text = await refused(p, "TenantCluster", "a", {"zzz": 1})
        assert text.endswith('unknown field "spec.zzz"')


async def test_what_is_far_too_large_or_has_a_name_that_is_too_long_is_refused() -> None:
    async with admitting() as p:
        text = await refused(p, "TenantCluster", "a", {"workers": {"machineTemplate": {"memory": "4Ei"}}})
        assert "spec.workers.machineTemplate.memory: Invalid value: 4Ei is above the maximum of 16Ti" in text
        text = await refused(p, "TenantCluster", "b" * 70, {})
        assert "metadata.name: Invalid value" in text
        assert "has 70 characters; at most 50 are possible" in text
        await create(p, "TenantCluster", "a", {})
        patch = MergePatch({"spec": {"replicas": 2000000000}})
        with pytest.raises(Invalid, match=r"spec\.workers\.replicas: Invalid value: 2000000000 is above the maximum"):
            await p.client.patch(TenantCluster.__resource__, Key("default", "a"), patch, subresource="scale")


async def test_pools_that_overlap_are_refused() -> None:
    async with admitting() as p:
        pool = {"platform": {"metalLBPool": "10.127.14.30-10.127.14.50"}}
        await create(p, "TenantCluster", "a", pool)
        text = await refused(p, "TenantCluster", "b", {"addons": {"loadBalancer": {"addressPool": "10.127.14.50/32"}}})
        assert (
            "spec.addons.loadBalancer.addressPool: Forbidden: 10.127.14.50 overlaps the pool of TenantCluster" in text
        )
        text = await refused(p, "ButlerConfig", "butler", pool)
        assert "spec.platform.metalLBPool: Invalid value: 10.127.14.30-10.127.14.50 overlaps the pool of" in text
        await create(p, "ButlerConfig", "butler", {"platform": {"metalLBPool": "10.127.14.60/30"}})
        text = await refused(p, "TenantCluster", "b", {"platform": {"metalLBPool": "10.127.14.60"}})
        assert "the platform's own pool" in text


async def test_a_cluster_that_exists_upgrades_one_minor_version_at_a_time_and_stays_where_it_is() -> None:
    async with admitting() as p:
        await create(p, "ProviderConfig", "harvester-prod", HARVESTER)
        await create(p, "TenantCluster", "a", {"kubernetesVersion": "v1.32.0"})
        at, key = TenantCluster.__resource__, Key("default", "a")
        status = {
            "tenantNamespace": "a-12345678",
            "providerConfigRef": {"name": "harvester-prod", "namespace": "default"},
            "observedState": {"kubernetesVersion": "v1.32.0"},
        }
        await p.client.patch(at, key, MergePatch({"status": status}), subresource="status")

        async def change(spec: dict[str, Any]) -> str:
            with pytest.raises(Invalid) as found:
                await p.client.patch(at, key, MergePatch({"spec": spec}))
            return str(found.value)

        assert "upgrade one minor version at a time" in await change({"kubernetesVersion": "v1.34.0"})
        assert "downgrades are not supported" in await change({"kubernetesVersion": "v1.31.9"})
        assert "immutable: the cluster runs on" in await change({"providerConfigRef": {"name": "other"}})
        elsewhere = {"name": "harvester-prod", "namespace": "butler-system"}
        assert "immutable: the cluster runs on default/harv" in await change({"providerConfigRef": elsewhere})
        assert "immutable: the cluster already uses" in await change({"networking": {"podCIDR": "10.200.0.0/16"}})
        assert "spec.controlPlane.type" in await change({"controlPlane": {"type": "standalone"}})
        await p.client.patch(at, key, MergePatch({"spec": {"kubernetesVersion": "v1.33.1"}}))


async def test_an_object_with_faults_can_be_labelled_and_deleted() -> None:
    async with butler_plane() as p:
        await create(p, "ProviderConfig", "a", {"type": "nutanix"})
        hooks = Hooks()
        register(hooks, p.client)
        install_hooks(hooks, p.server)
        at, key = ProviderConfig.__resource__, Key("default", "a")
        await p.client.patch(at, key, MergePatch({"metadata": {"annotations": {"note": "to be repaired"}}}))
        with pytest.raises(Invalid):
            await p.client.patch(at, key, MergePatch({"spec": {"network": {"mode": "cloud"}}}))
        await p.client.delete(at, key)


async def test_the_stored_object_stays_as_it_was_written() -> None:
    async with admitting() as p:
        spec = {"workers": {"machineTemplate": {"disk": "100Gi"}}, "platform": {"metalLBPool": "10.0.0.0/30"}}
        await create(p, "TenantCluster", "a", spec)
        assert (await p.client.get(TenantCluster.__resource__, Key("default", "a")))["spec"] == spec


async def test_a_team_cannot_use_credentials_of_others() -> None:
    """Neither when it is written nor when it is read: the address in the ProviderConfig would get them."""
    spec = {
        "type": "harvester",
        "harvester": {
            "credentialsRef": {"name": "harvester-kubeconfig", "namespace": "butler-system"},
            "networkName": "default/workloads",
        },
    }
    async with admitting() as p:
        await p.client.create(butler("Team", "harbour", {}), kind=Team.__resource__)
        labels = {"butler.butlerlabs.dev/team": "harbour"}
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "harbour", "labels": labels}}
        await p.client.create(namespace, kind=NAMESPACE)
        text = await refused(p, "ProviderConfig", "theirs", spec, namespace="harbour")
        assert "spec.harvester.credentialsRef.namespace: Forbidden: butler-system is not the namespace of team" in text
        await create(p, "ProviderConfig", "ours", spec, namespace="default")
        stored = msgspec.convert(butler("ProviderConfig", "theirs", spec, namespace="harbour"), ProviderConfig)
        support = HARVESTER_COMPONENT.platform
        assert support is not None
        with pytest.raises(Misconfigured, match="is not the namespace of team harbour"):
            await read_site(p.client, {"harvester": support}, stored)


async def test_the_type_of_a_provider_is_immutable() -> None:
    async with admitting() as p:
        await create(p, "ProviderConfig", "site", HARVESTER)
        other = {"type": "nutanix", "nutanix": {"credentialsRef": {"name": "x"}}}
        with pytest.raises(Invalid, match=r'spec.type: Invalid value: "nutanix": immutable: it is harvester; create'):
            await p.client.patch(ProviderConfig, Key("default", "site"), MergePatch({"spec": other}))
        same = MergePatch({"spec": {"type": None, "provider": "harvester"}})
        await p.client.patch(ProviderConfig, Key("default", "site"), same)


async def test_an_allocation_stays_with_its_pool_and_its_cluster() -> None:
    async with admitting() as p:
        refs = {"poolRef": {"name": "lan"}, "tenantClusterRef": {"name": "shop", "namespace": "red"}}
        at = IPAllocation.__resource__
        body = butler("IPAllocation", "one", {**refs, "type": "endpoint", "count": 1}, namespace="default")
        await p.client.create(body, kind=at)
        for field, value in (("poolRef", {"name": "other"}), ("tenantClusterRef", {"name": "x", "namespace": "red"})):
            with pytest.raises(Invalid, match=f"spec.{field}: Invalid value: immutable"):
                await p.client.patch(at, Key("default", "one"), MergePatch({"spec": {field: value}}))
