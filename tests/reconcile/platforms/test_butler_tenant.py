"""TenantClusters where no webhook checked them, as on another Kubernetes."""

from __future__ import annotations

from homeport.api.butler.v1alpha1 import TenantCluster
from homeport.app.platform import chosen
from homeport.client.protocol import Key, Query
from homeport.machinery.condition import find
from homeport.platforms.butler.tenant.install import install
from reconcile.platforms.butler_kit import NAMESPACE, butler, butler_plane

WATCHED = ("Cluster", "MachineDeployment", "KubeadmControlPlane", "StewardControlPlane", "ClusterAddon")


async def test_a_name_that_is_too_long_is_reported_before_anything_is_made() -> None:
    crds = tuple(dict(each) for each in chosen().definitions() if each["spec"]["names"]["kind"] in WATCHED)
    async with butler_plane(install, crds=crds) as p:
        key = Key("default", "a" * 70)
        before = {each.name for each in (await p.client.list(NAMESPACE, Query())).items}
        await p.client.create(
            butler("TenantCluster", key.name, {}, namespace="default"), kind=TenantCluster.__resource__
        )
        found = await p.until(TenantCluster, key, lambda each: bool(each.status.phase), timeout=30)
        ready = find(found.status.conditions, "Ready") or {}
        assert (found.status.phase, ready.get("reason")) == ("Failed", "InvalidConfiguration")
        assert "metadata.name: " in ready["message"]
        assert "at most 50 are possible" in ready["message"]
        assert "create it with another name" in ready["message"]
        assert {each.name for each in (await p.client.list(NAMESPACE, Query())).items} == before
        await p.client.delete(TenantCluster.__resource__, key)
        await p.gone(TenantCluster, key, timeout=30)
