"""TenantControlPlanes in the hands of users who delete, edit and name things as they like."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from homeport.api.meta import Resource
from homeport.api.steward.v1alpha1 import DataStore, KubeconfigGenerator, TenantControlPlane
from homeport.builtin.workload.address import Pool
from homeport.client.errors import Invalid, NotFound
from homeport.client.protocol import Key, MergePatch
from homeport.hosted.content.inputs import DAEMON_SET
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from scenario.hosted.stage import SERVICE
from scenario.hosted.test_tenant import CONFIG_MAP, SECRET, Site, site, tenant

ADOPT = {"metadata": {"annotations": {"steward.butlerlabs.dev/adopt-schema": "true"}}}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def reports(s: Site, reason: str, name: str = "demo") -> str:
    """Waits for a reason; the message."""

    async def said() -> bool:
        return f" {reason}: " in await s.why(name)

    await s.stage.plane.until(said, f"{name} reports {reason}", seconds=300.0)
    return await s.why(name)


async def have(s: Site, kind: Resource, name: str, **more: Any) -> None:
    body = {"metadata": {"name": name, "namespace": "default"}, **more}
    await s.client.create({"apiVersion": kind.api_version, "kind": kind.kind, **body}, kind=kind)


async def change(s: Site, kind: Resource, name: str, **body: Any) -> None:
    await s.client.patch(kind, Key("default", name), MergePatch(body))


@virtual
async def test_a_lost_authority_is_reported_and_a_lost_leaf_is_renewed(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.until("Ready")
        for suffix in ("ca", "sa-certificate"):
            key = Key("default", f"demo-{suffix}")
            kept = await s.client.get(SECRET, key)
            await s.client.delete(SECRET, key)
            text = await reports(s, "CertificateLost")
            assert f"Secret {key} is missing or empty" in text
            assert "restore it from a backup" in text
            with pytest.raises(NotFound):
                await s.client.get(SECRET, key)
            assert await s.state() == ("Ready", "v1.33.1")  # the Pods still serve

            restored = {"metadata": {"name": key.name, "namespace": "default"}, "data": kept["data"]}
            await s.client.create({"apiVersion": "v1", "kind": "Secret", **restored}, kind=SECRET)
            await reports(s, "Ready")
        remote = await s.tenant_client()
        for suffix in (
            "api-server-certificate",
            "admin-kubeconfig",
            "datastore-certificate",
            "front-proxy-ca-certificate",
        ):
            await s.client.delete(SECRET, Key("default", f"demo-{suffix}"))

        async def back() -> bool:
            try:
                for suffix in ("api-server-certificate", "admin-kubeconfig", "datastore-certificate"):
                    await s.client.get(SECRET, Key("default", f"demo-{suffix}"))
            except NotFound:
                return False
            return "True Ready" in await s.why()

        await s.stage.plane.until(back, "certificates are renewed", seconds=300.0)
        assert (await remote.get(CONFIG_MAP, Key("kube-public", "cluster-info"))).name == "cluster-info"


@virtual
async def test_a_datastore_that_lost_the_data_does_not_become_an_empty_cluster(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.until("Ready")
        await s.stop()
        (keys,) = s.stage.hosting.datastores.etcds.values()
        claim = "/homeport.dev/tenants/default_demo"
        kept = keys.keys.pop(claim)
        await s.start()
        text = await reports(s, "DataLost")
        assert "the schema 'default_demo' of this control plane is not there" in text
        keys.keys[claim] = kept
        await reports(s, "Ready")


@virtual
async def test_what_a_user_writes_into_the_datastore_secret_opens_no_other_data(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.until("Ready")
        await s.create(tenant("evil"))
        await s.until("Ready", name="evil")
        name = "evil-datastore-config"
        await s.client.patch(TenantControlPlane, Key("default", "evil"), MergePatch(ADOPT))
        await change(s, SECRET, name, data={"DB_SCHEMA": encoded("default_demo/registry")})
        await reports(s, "SchemaChanged", "evil")
        await change(s, SECRET, name, data={"DB_SCHEMA": encoded("default_evil"), "CLAIM": None})
        assert "which proves whose the data is" in await reports(s, "ClaimLost", "evil")

        # before anything is set up there is nothing to compare with
        await have(
            s,
            SECRET,
            "worse-datastore-config",
            data={
                "DB_SCHEMA": encoded("default_demo/registry"),
                "DB_USER": encoded("worse"),
                "CLAIM": encoded("x"),
                "DATASTORE": encoded("default"),
            },
        )
        body = tenant("worse")
        await s.create({**body, "metadata": {**body["metadata"], **ADOPT["metadata"]}})
        assert "default/worse-datastore-config exists and belongs to something else" in await reports(
            s, "NameTaken", "worse"
        )
        (keys,) = s.stage.hosting.datastores.etcds.values()
        allowed = {each.key for role in keys.roles.values() for each in role}
        assert allowed <= {b"/default_demo/", b"/default_evil/", b"\0"}


@virtual
async def test_objects_of_users_with_our_names_are_left_alone(tmp_path: Path) -> None:
    data = {"mine": encoded("keep")}
    async with site(tmp_path) as s:
        await have(s, SECRET, "demo-admin-kubeconfig", data=data)
        await s.create(tenant())
        text = await reports(s, "NameTaken")
        assert "Secret default/demo-admin-kubeconfig exists and belongs to something else" in text
        await have(s, SERVICE, "late", spec={"ports": [{"port": 80}]})
        await s.create(tenant("late"))
        assert "Service default/late exists and belongs to something else" in await reports(s, "NameTaken", "late")
        for name in ("demo", "late"):
            await s.client.delete(TenantControlPlane, Key("default", name))

        async def gone() -> bool:
            return not [each async for each in _tenants(s)]

        await s.stage.plane.until(gone, "both are gone", seconds=120.0)
        assert (await s.client.get(SECRET, Key("default", "demo-admin-kubeconfig")))["data"] == data
        assert (await s.client.get(SERVICE, Key("default", "late")))["spec"]["ports"][0]["port"] == 80


async def _tenants(s: Site) -> Any:
    for each in (await s.client.list(TenantControlPlane)).items:
        yield each


@virtual
async def test_two_control_planes_never_share_an_address(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        chosen: dict[str, Any] = {"networkProfile": {"address": "10.240.0.77"}}
        await s.create(tenant(**chosen))
        await s.until("Ready")
        await s.create(tenant("second", **chosen))
        assert "10.240.0.77 is the address of another control plane" in await reports(s, "AddressTaken", "second")
        await s.client.delete(TenantControlPlane, Key("default", "demo"))
        await s.until("Ready", name="second")


@virtual
async def test_a_control_plane_says_that_the_pool_of_addresses_is_exhausted_and_takes_the_next_free_one(
    tmp_path: Path,
) -> None:
    async with site(tmp_path, Pool("10.240.0.50-10.240.0.50")) as s:
        await s.create(tenant())
        await s.until("Ready")
        await s.create(tenant("second"))

        async def told() -> bool:
            return "no address of the pool 10.240.0.50-10.240.0.50 is free: extend it" in await s.why("second")

        await s.stage.plane.until(told, "the second names the pool", seconds=60.0)
        assert " WaitingForLoadBalancer: Service default/second" in await s.why("second")
        await s.client.delete(TenantControlPlane, Key("default", "demo"))
        await s.until("Ready", name="second")
        found = await s.client.get(SERVICE, Key("default", "second"))
        assert found["status"] == {"loadBalancer": {"ingress": [{"ip": "10.240.0.50", "ipMode": "VIP"}]}}


@virtual
async def test_what_a_cluster_was_made_with_can_not_be_changed(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.until("Ready")
        for spec, where in (
            ({"dataStoreSchema": "other"}, "spec.dataStoreSchema"),
            ({"dataStoreUsername": "other"}, "spec.dataStoreUsername"),
            ({"networkProfile": {"serviceCidr": "10.97.0.0/16"}}, "spec.networkProfile.serviceCidr"),
            ({"networkProfile": {"podCidr": "10.97.0.0/16"}}, "spec.networkProfile.podCidr"),
            ({"networkProfile": {"clusterDomain": "a.b"}}, "spec.networkProfile.clusterDomain"),
        ):
            with pytest.raises(Invalid, match=rf"{where}: Forbidden: immutable"):
                await s.patch(spec)
        await s.patch({"dataStoreSchema": "default_demo"})  # what it is anyway


@virtual
async def test_a_generator_does_not_overwrite_the_secrets_of_a_control_plane(tmp_path: Path) -> None:
    """Generator `demo` and control plane `ca` make the Secret `demo-ca`, which is the CA of control plane `demo`."""
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.create(tenant("ca"))
        await s.until("Ready")
        await s.until("Ready", name="ca")
        before = await s.client.get(SECRET, Key("default", "demo-ca"))
        await s.create(
            {
                "apiVersion": "steward.butlerlabs.dev/v1alpha1",
                "kind": "KubeconfigGenerator",
                "metadata": {"name": "demo"},
                "spec": {"user": {"stringValue": "me"}, "namespaceSelector": {}, "tenantControlPlaneSelector": {}},
            }
        )

        async def refused() -> bool:
            found = await s.client.get(KubeconfigGenerator, Key("", "demo"))
            return [each.resource for each in found.status.errors] == ["default/ca"]

        await s.stage.plane.until(refused, "the generator reports it", seconds=60.0)
        after = await s.client.get(SECRET, Key("default", "demo-ca"))
        assert after["data"] == before["data"]
        assert (await s.client.get(SECRET, Key("default", "demo-demo"))).name == "demo-demo"


@virtual
async def test_a_lost_certificate_of_the_datastore_is_made_again_and_everybody_follows(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.until("Ready")
        before = await s.client.get(SECRET, Key("default", "demo-datastore-certificate"))
        await s.client.delete(SECRET, Key("homeport-system", "datastore-tls"))

        async def healed() -> bool:
            after = await s.client.get(SECRET, Key("default", "demo-datastore-certificate"))
            return after["data"]["ca.crt"] != before["data"]["ca.crt"] and "True Ready" in await s.why()

        await s.stage.plane.until(healed, "the control plane uses the new CA", seconds=300.0)
        store = await s.client.get(DataStore, Key("", "default"))
        assert condition.is_true(store.status.conditions, "Ready")
        remote = await s.tenant_client()
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "after", "namespace": "default"}}
        await remote.create(body, kind=CONFIG_MAP)


@virtual
async def test_node_ports_are_reached_at_the_plane_and_never_shared(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        chosen: dict[str, Any] = {
            "controlPlane": {"deployment": {"replicas": 1}, "service": {"serviceType": "NodePort"}},
            "networkProfile": {"port": 30443},
        }
        await s.create(tenant(**chosen))
        await s.until("Ready")
        found = await s.client.get(TenantControlPlane, Key("default", "demo"))
        assert found.status.control_plane_endpoint == "10.240.0.1:30443"
        await s.create(tenant("second", **chosen))
        assert "30443: provided port is already allocated" in await reports(s, "ServiceRefused", "second")


@virtual
async def test_agents_of_konnectivity_dial_the_node_port_of_their_server(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(
            tenant(
                controlPlane={"deployment": {"replicas": 1}, "service": {"serviceType": "NodePort"}},
                networkProfile={"port": 30443},
                addons={"konnectivity": {}},
            )
        )
        await s.until("Ready")
        service = await s.client.get(SERVICE, Key("default", "demo"))
        [port] = [each["nodePort"] for each in service["spec"]["ports"] if each["name"] == "konnectivity"]
        inside = await s.tenant_client()
        try:
            agent = await inside.get(DAEMON_SET, Key("kube-system", "konnectivity-agent"))
        finally:
            await inside.close()
        args = agent["spec"]["template"]["spec"]["containers"][0]["args"]
        assert "--proxy-server-host=10.240.0.1" in args
        assert f"--proxy-server-port={port}" in args
