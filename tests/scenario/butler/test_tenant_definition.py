"""TenantClusters whose spec.addons names AddonDefinitions that users wrote."""

from __future__ import annotations

from typing import Any

from homeport.addons.catalogue import catalogue
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.api.butler.v1alpha1 import AddonDefinition, ButlerConfig, TenantCluster
from homeport.client.protocol import Key, MergePatch, Query
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from present import present
from scenario.butler.stage import SPACE, Stage, butler, tenants

STORAGE = {"provider": "linstor", "values": {"a": {"b": 3}}}


def definition(name: str, **spec: Any) -> dict[str, Any]:
    known = catalogue()["metrics-server"]
    body = {
        "displayName": name,
        "description": "An add-on of the house",
        "category": "storage",
        "chart": {"repository": known.chart.repository, "name": "metrics-server", "defaultVersion": known.newest},
        "defaults": {"namespace": "house", "releaseName": "house", "values": {"a": {"b": 1, "c": 2}}},
        **spec,
    }
    return butler("AddonDefinition", name, "", body)


async def until(stage: Stage, phase: str, *words: str) -> TenantCluster:
    def fits(obj: TenantCluster) -> bool:
        found = condition.find(obj.status.conditions, "Ready") or {}
        said = f"{found.get('reason')}: {found.get('message')}"
        return obj.status.phase == phase and all(word in said for word in words)

    found: TenantCluster = await stage.until("shop", fits, f"{phase} {words}", 900.0)
    return found


@virtual
async def test_an_add_on_of_the_spec_may_be_an_own_definition() -> None:
    async with tenants(any_chart=True) as stage:
        await stage.have(stage.tenant("shop", workers={"replicas": 1}, addons={"storage": STORAGE}))
        await until(
            stage, "Failed", "UnknownAddon: spec.addons.storage.provider:", 'AddonDefinition "linstor" not found'
        )
        await stage.have(definition("linstor", dependsOn=["cert-manager"]))
        await until(stage, "Failed", "DependencyNotFound: spec.addons.storage: AddonDefinition linstor needs")
        spec = {"clusterRef": {"name": "shop"}, "addon": "cert-manager"}
        await stage.have(butler("TenantAddon", "certs", SPACE, spec))
        ready = await stage.ready("shop")
        child = await stage.client.get(ClusterAddon, Key(ready.status.tenant_namespace, "shop-linstor"))
        assert condition.is_true(child.status.conditions, "Ready")
        assert child.spec.values == {"a": {"b": 3, "c": 2}}
        assert (child.spec.addon, child.spec.namespace, child.spec.release_name) == ("", "house", "house")
        assert child.spec.version == catalogue()["metrics-server"].newest
        assert [each.name for each in child.spec.depends_on] == ["shop-ta-certs"]
        assert {each.name: each.status for each in present(ready.status.observed_state).addons}["storage"] == "Healthy"


@virtual
async def test_a_definition_that_is_gone_removes_nothing_and_a_block_that_is_gone_does() -> None:
    async with tenants(any_chart=True) as stage:
        await stage.have(definition("nginx"))
        await stage.have(stage.tenant("shop", workers={"replicas": 1}, addons={"ingress": {"provider": "nginx"}}))
        ready = await stage.ready("shop")
        key = Key(ready.status.tenant_namespace, "shop-nginx")
        before = await stage.client.get(ClusterAddon, key)
        await stage.client.delete(AddonDefinition, Key("", "nginx"))
        await until(stage, "Failed", "UnknownAddon", "create it, or choose one of")
        await stage.restart()
        kept = await stage.client.get(ClusterAddon, key)
        assert (kept.metadata.uid, kept.metadata.deletion_timestamp) == (before.metadata.uid, None)
        await stage.have(definition("nginx", defaults={"namespace": "house", "values": {"d": 4}}))
        changed = await stage.plane.until(ClusterAddon, key, lambda obj: obj.spec.values == {"d": 4}, 60)
        assert changed.metadata.uid == before.metadata.uid
        await stage.ready("shop")
        await stage.client.patch(TenantCluster, Key(SPACE, "shop"), MergePatch({"spec": {"addons": None}}))
        await stage.plane.gone(ClusterAddon, key, 600)
        await stage.ready("shop")


@virtual
async def test_an_own_definition_goes_before_an_add_on_of_homeport_with_the_same_name() -> None:
    async with tenants(any_chart=True) as stage:
        await stage.have(definition("traefik"))
        defaults = {"defaultAddons": ["flux", "cert-manager", "traefik"]}
        await stage.have(butler("ButlerConfig", "butler", "", {"clusterDefaults": defaults}))
        blocks = {"ingress": {}, "certManager": {"enabled": False}}
        await stage.have(stage.tenant("shop", workers={"replicas": 1}, addons=blocks))
        ready = await stage.ready("shop")
        # Defaults of the platform come along, unless the object names them itself or turns them off.
        space = Query(namespace=ready.status.tenant_namespace)
        names = {"shop-cilium", "shop-traefik", "shop-flux"}
        assert {each.metadata.name for each in (await stage.client.list(ClusterAddon, space)).items} == names
        # Another default is for other clusters: this one keeps what it got.
        body = MergePatch({"spec": {"clusterDefaults": {"defaultAddons": ["longhorn"]}}})
        await stage.client.patch(ButlerConfig, Key("", "butler"), body)
        await stage.plane.settle(30)
        assert {each.metadata.name for each in (await stage.client.list(ClusterAddon, space)).items} == names
        child = await stage.client.get(ClusterAddon, Key(ready.status.tenant_namespace, "shop-traefik"))
        assert child.spec.chart is not None
        assert (child.spec.chart.name, child.spec.parameters) == ("metrics-server", {})
