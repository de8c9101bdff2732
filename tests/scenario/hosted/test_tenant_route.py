"""TenantControlPlanes behind an Ingress or a Gateway, and with databases behind kine."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from cryptography import x509

from homeport.api.meta import Resource
from homeport.api.steward.v1alpha1 import DataStore, TenantControlPlane
from homeport.apiserver.auth.certificate import host_names
from homeport.client.errors import NotFound
from homeport.client.protocol import Key, Query
from homeport.hosted.tenant.route import INGRESS
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from scenario.hosted.test_tenant import SECRET, Site, site, tenant
from scenario.hosted.test_tenant_hostile import reports

EVENT = Resource("", "v1", "Event", "events")
KEY = Key("default", "demo")


def exposed(**how: Any) -> dict[str, Any]:
    plane = {"deployment": {"replicas": 1}, "service": {"serviceType": "LoadBalancer"}, **how}
    return tenant(controlPlane=plane)


@virtual
async def test_an_ingress_comes_and_goes_with_its_setting(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(exposed(ingress={"hostname": "k.example", "controllerType": "nginx"}))
        await s.until("Ready")
        await reports(s, "Ready")
        made = await s.client.get(INGRESS, KEY)
        assert made["spec"]["rules"][0]["host"] == "k.example"
        secret = await s.client.get(SECRET, Key("default", "demo-api-server-certificate"))
        served = x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["apiserver.crt"]))
        assert "k.example" in host_names(served)
        found = await s.client.get(TenantControlPlane, KEY)
        assert found.status.kubernetes_resources.ingress is not None

        await s.patch({"controlPlane": {"ingress": None}})

        async def gone() -> bool:
            try:
                await s.client.get(INGRESS, KEY)
            except NotFound:
                return (await s.client.get(TenantControlPlane, KEY)).status.kubernetes_resources.ingress is None
            return False

        await s.stage.plane.until(gone, "the Ingress is gone", seconds=60.0)


@virtual
async def test_a_route_of_a_kind_that_is_not_installed_is_reported_and_the_control_plane_works(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(exposed(gateway={"hostname": "k.example", "parentRefs": [{"name": "gw"}]}))
        await s.until("Ready")
        assert "this cluster does not serve TLSRoute" in await reports(s, "RouteKindMissing")
        assert (await (await s.tenant_client()).list(SECRET, Query(namespace="kube-system"))).items is not None


@virtual
async def test_an_ingress_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        rule = {"host": "mine.example", "http": {"paths": []}}
        backend = {"service": {"name": "mine", "port": {"number": 80}}}
        rule["http"] = {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}
        body = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "demo"}}
        body["metadata"] = {"name": "demo", "namespace": "default"}
        await s.client.create({**body, "spec": {"rules": [rule]}}, kind=INGRESS)
        await s.create(exposed(ingress={"hostname": "k.example"}))
        assert "Ingress default/demo exists and belongs to something else" in await reports(s, "NameTaken")
        assert (await s.client.get(INGRESS, KEY))["spec"]["rules"][0]["host"] == "mine.example"


def database(driver: str = "PostgreSQL") -> dict[str, Any]:
    def value(text: str) -> dict[str, str]:
        return {"content": base64.b64encode(text.encode()).decode()}

    return {
        "apiVersion": "steward.butlerlabs.dev/v1alpha1",
        "kind": "DataStore",
        "metadata": {"name": "sql"},
        "spec": {
            "driver": driver,
            "endpoints": ["db.example:5432"],
            "basicAuth": {"username": value("app"), "password": value("p@ss/word")},
        },
    }


@virtual
async def test_a_database_is_reached_through_kine_and_what_is_left_in_it_is_said(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(database())
        await s.create(tenant(dataStore="sql"))
        await s.until("Ready")
        config = await s.client.get(SECRET, Key("default", "demo-datastore-config"))
        assert base64.b64decode(config["data"]["DB_PASSWORD"]) == b"p%40ss%2Fword"
        await s.client.delete(TenantControlPlane, KEY)

        async def said() -> bool:
            events = (await s.client.list(EVENT, Query(namespace="default"))).items
            return any(
                "the schema default_demo was left in DataStore sql: Homeport does not remove databases"
                in each.get("message", "")
                for each in events
            )

        await s.stage.plane.until(said, "what is left is said", seconds=120.0)


@virtual
async def test_a_plane_that_can_not_run_kine_says_so_at_once(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.stop()
        s.images = ("*kube-apiserver:*",)
        await s.start()
        await s.create(database("MySQL"))
        await s.create(tenant(dataStore="sql"))
        text = await reports(s, "DriverNotSupported")
        assert "DataStore sql: driver MySQL needs kine" in text
        store = await s.client.get(DataStore, Key("", "sql"))
        ready = condition.find(store.status.conditions, "Ready") or {}
        assert ready.get("reason") == "DriverNotSupported"
        assert await _children(s) == []


@virtual
async def test_a_plane_that_can_not_run_konnectivity_says_so_and_starts_without_it(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.stop()
        s.images = ("*kube-apiserver:*", "*kube-controller-manager:*", "*kube-scheduler:*", "*etcd:*")
        await s.start()
        await s.create(tenant(addons={"konnectivity": {}}))
        text = await reports(s, "KonnectivityNotSupported")
        assert "put the program proxy-server into the folder of --hosted-binaries" in text
        await s.patch({"addons": {"konnectivity": None}})
        await s.until("Ready")


async def _children(s: Site) -> list[str]:
    found = await s.client.list(SECRET, Query(namespace="default"))
    return [each.name for each in found.items if each.name.startswith("demo")]
