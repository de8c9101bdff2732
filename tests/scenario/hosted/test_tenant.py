"""TenantControlPlanes on a plane that runs their Pods in simulation, in virtual time: life, faults and deaths."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import dataclasses
import fnmatch
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509

from homeport.api.meta import Resource
from homeport.api.steward.v1alpha1 import DataStore, KubeconfigGenerator, TenantControlPlane
from homeport.builtin.workload.address import Pool
from homeport.capi.remote import kubeconfig as stored
from homeport.client.errors import ApiError, Invalid, NotFound
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import merge, parse, resolve
from homeport.client.protocol import Key, MergePatch, Query
from homeport.hosted.admission import register
from homeport.hosted.certificate import subject
from homeport.hosted.definition import definitions
from homeport.hosted.etcd.dial import connect
from homeport.hosted.flavour import STEWARD
from homeport.hosted.install import install_tenants
from homeport.hosted.tenant.setup import Connect as DatastoreConnect
from homeport.machinery import condition
from homeport.runtime.definition import establish
from homeport.runtime.manager import Manager
from homeport.runtime.testing import virtual
from homeport.runtime.webhook.embedded import install as install_hooks
from homeport.runtime.webhook.hook import Hooks
from scenario.capi.fault import Killer
from scenario.hosted.stage import DEPLOYMENT, SERVICE, Stage, stage

SECRET = Resource("", "v1", "Secret", "secrets")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
KEY = Key("default", "demo")


def tenant(name: str = "demo", **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "steward.butlerlabs.dev/v1alpha1",
        "kind": "TenantControlPlane",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "controlPlane": {"deployment": {"replicas": 1}, "service": {"serviceType": "LoadBalancer"}},
            "kubernetes": {"version": "v1.33.1", "kubelet": {"cgroupfs": "systemd"}},
            "addons": {"coreDNS": {}},
            **spec,
        },
    }


class Site:
    """A stage with the controllers of hosted control planes on it."""

    def __init__(self, on: Stage, folder: Path) -> None:
        self.stage = on
        self.client = on.plane.server.client(field_manager="user")
        self._folder = folder
        self._running: asyncio.Task[None] | None = None
        self.killer: Killer | None = None
        self.connect: DatastoreConnect = connect
        self.images: tuple[str, ...] = ("*",)  # that the plane can run

    async def start(self) -> None:
        client: Any = self.stage.plane.server.client()
        if self.killer is not None:
            client = self.killer.wrap(client)
        self.manager = Manager(client, name="hosted", clock=self.stage.plane.clock)
        images = self.images

        def can_run(image: str) -> bool:
            return any(fnmatch.fnmatchcase(image, each) for each in images)

        install_tenants(
            self.manager,
            STEWARD,
            proxy=self.stage.proxy.url(),
            embedded=True,
            can_run=can_run,
            connect_datastore=self.connect,
        )
        self._running = asyncio.create_task(self.manager.run())
        await self.manager.ready.wait()

    async def stop(self) -> None:
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await running

    async def create(self, body: dict[str, Any]) -> None:
        kinds: dict[str, Any] = {each.__name__: each for each in (TenantControlPlane, DataStore, KubeconfigGenerator)}
        await self.client.create(body, kind=kinds[body["kind"]].__resource__)

    async def patch(self, spec: dict[str, Any]) -> None:
        await self.client.patch(TenantControlPlane, KEY, MergePatch({"spec": spec}))

    async def state(self, name: str = "demo") -> tuple[str, str]:
        found = await self.client.get(TenantControlPlane, Key("default", name))
        known = found.status.kubernetes_resources.version
        return known.status, known.version

    async def why(self, name: str = "demo") -> str:
        found = await self.client.get(TenantControlPlane, Key("default", name))
        known = condition.find(found.status.conditions, "Ready") or {}
        return f"{known.get('status')} {known.get('reason')}: {known.get('message')}"

    async def until(self, state: str, version: str = "v1.33.1", name: str = "demo", seconds: float = 900.0) -> None:
        async def reached() -> bool:
            return await self.state(name) == (state, version)

        await self.stage.plane.until(reached, f"{name} is {state} {version}", seconds=seconds)

    async def tenant_client(self, name: str = "demo") -> HttpClient:
        secret = await self.client.get(SECRET, Key("default", f"{name}-admin-kubeconfig"))
        text = base64.b64decode(secret["data"]["admin.conf"])
        config = resolve(merge([parse(text, self._folder / "kubeconfig")]))
        made = HttpClient(dataclasses.replace(config, proxy=self.stage.proxy.url()))
        self.stage._clients.append(made)
        return made

    def keys(self) -> dict[str, Any]:
        (found,) = self.stage.hosting.datastores.etcds.values()
        return {"users": sorted(found.users), "roles": sorted(found.roles)}


@contextlib.asynccontextmanager
async def site(folder: Path, pool: Pool | None = None) -> AsyncIterator[Site]:
    async with stage(folder, pool) as on:
        hooks = Hooks()
        register(hooks, STEWARD)
        install_hooks(hooks, on.plane.server)
        await establish(on.plane.server.client(), *definitions(STEWARD))
        made = Site(on, folder)
        await made.start()
        try:
            yield made
        finally:
            await made.stop()


@virtual
async def test_a_control_plane_lives_from_creation_to_deletion(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.until("Ready")
        remote = await s.tenant_client()
        info = await remote.get(CONFIG_MAP, Key("kube-public", "cluster-info"))
        assert "10.240.0" in info["data"]["kubeconfig"]
        assert (await remote.get(DEPLOYMENT, Key("kube-system", "coredns"))).name == "coredns"
        assert s.keys()["users"] == ["default_demo", "root"]

        # what somebody deletes in the cluster comes back, without a poll
        await remote.delete(CONFIG_MAP, Key("kube-system", "kubeadm-config"))

        async def back() -> bool:
            try:
                await remote.get(CONFIG_MAP, Key("kube-system", "kubeadm-config"))
            except NotFound:
                return False
            return True

        await s.stage.plane.until(back, "kubeadm-config is back", seconds=30.0)

        await s.client.delete(TenantControlPlane, KEY)

        async def gone() -> bool:
            pages = [await s.client.list(kind, Query(namespace="default")) for kind in (SECRET, SERVICE, DEPLOYMENT)]
            return not [each for page in pages for each in page.items if each.name.startswith("demo")]

        await s.stage.plane.until(gone, "nothing of demo is left", seconds=120.0)
        assert s.keys()["users"] == ["root"]


@virtual
async def test_an_upgrade_goes_one_minor_version_at_a_time_and_never_back(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.until("Ready")
        for wrong, why in (
            ("v1.35.0", "skips a minor version"),
            ("v1.32.9", "a downgrade is not possible"),
            ("1.x", "not a valid version"),
        ):
            with pytest.raises((Invalid, ApiError), match=why):
                await s.patch({"kubernetes": {"version": wrong}})
        await s.patch({"kubernetes": {"version": "v1.34.0"}})
        await s.until("Ready", "v1.34.0")
        remote = await s.tenant_client()
        config = await remote.get(CONFIG_MAP, Key("kube-system", "kubeadm-config"))
        assert "kubernetesVersion: v1.34.0" in config["data"]["ClusterConfiguration"]


@virtual
async def test_a_control_plane_sleeps_and_wakes_with_its_data(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.until("Ready")
        remote = await s.tenant_client()
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept", "namespace": "default"}}
        await remote.create(body, kind=CONFIG_MAP)
        await s.patch({"controlPlane": {"deployment": {"replicas": 0}}})
        await s.until("Sleeping")
        await s.patch({"controlPlane": {"deployment": {"replicas": 1}}})
        await s.until("Ready")
        assert (await (await s.tenant_client()).get(CONFIG_MAP, Key("default", "kept"))).name == "kept"


@virtual
async def test_two_control_planes_share_a_datastore_and_no_address(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant("one"))
        await s.create(tenant("two"))
        await s.until("Ready", name="one")
        await s.until("Ready", name="two")
        found = [await s.client.get(TenantControlPlane, Key("default", each)) for each in ("one", "two")]
        assert len({each.status.control_plane_endpoint for each in found}) == 2
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mine", "namespace": "default"}}
        await (await s.tenant_client("one")).create(body, kind=CONFIG_MAP)
        with pytest.raises(NotFound):
            await (await s.tenant_client("two")).get(CONFIG_MAP, Key("default", "mine"))
        store = await s.client.get(DataStore, Key("", "default"))
        assert store.status.used_by == ["default/one", "default/two"]


@virtual
async def test_a_generator_makes_kubeconfigs_for_selected_control_planes(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.until("Ready")
        generator = {
            "apiVersion": "steward.butlerlabs.dev/v1alpha1",
            "kind": "KubeconfigGenerator",
            "metadata": {"name": "viewers"},
            "spec": {
                "user": {"fromDefinition": "metadata.name"},
                "groups": [{"stringValue": "viewers"}],
                "controlPlaneEndpointFrom": "admin.conf",
            },
        }
        await s.create(generator)

        async def made() -> bool:
            found = await s.client.get(KubeconfigGenerator, Key("", "viewers"))
            return (found.status.resources, found.status.available_resources) == (1, 1)

        await s.stage.plane.until(made, "the kubeconfig is made", seconds=60.0)
        secret = await s.client.get(SECRET, Key("default", "viewers-demo"))
        config = stored.parse(base64.b64decode(secret["data"]["value"]))
        pair = config.credential.certificate()
        assert pair is not None
        assert subject(x509.load_pem_x509_certificate(pair.cert)) == ("demo", frozenset({"viewers"}))

        # A kubeconfig goes with its control plane, and when the generator no longer selects that.
        mine = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "viewers-mine", "namespace": "default"}}
        await s.client.create(mine, kind=SECRET)
        await s.create(tenant("other"))

        async def kubeconfigs() -> list[str]:
            found = (await s.client.list(SECRET, Query(namespace="default"))).items
            return sorted(each.name for each in found if each.name.startswith("viewers-"))

        async def are(*names: str) -> bool:
            return await kubeconfigs() == sorted(f"viewers-{each}" for each in names)

        await s.stage.plane.until(lambda: are("demo", "mine", "other"), "the second kubeconfig", seconds=60.0)
        await s.client.delete(TenantControlPlane, Key("default", "other"))
        await s.stage.plane.until(lambda: are("demo", "mine"), "it goes with its control plane", seconds=60.0)
        selector = {"spec": {"tenantControlPlaneSelector": {"matchLabels": {"for": "viewers"}}}}
        await s.client.patch(KubeconfigGenerator, Key("", "viewers"), MergePatch(selector))
        await s.stage.plane.until(lambda: are("mine"), "it is no longer selected", seconds=60.0)


@virtual
async def test_a_missing_datastore_is_named(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant(dataStore="big"))
        await s.stage.plane.settle(30.0)
        assert "DataStoreNotFound: DataStore big does not exist" in await s.why()


@virtual
async def test_certificates_are_renewed_before_they_expire(tmp_path: Path) -> None:
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.until("Ready")
        before = await s.client.get(SECRET, Key("default", "demo-api-server-certificate"))
        await s.stop()
        s.stage.plane.clock.jump(340 * 86_400)
        await s.start()

        async def renewed() -> bool:
            after = await s.client.get(SECRET, Key("default", "demo-api-server-certificate"))
            return bool(after["data"] != before["data"])

        await s.stage.plane.until(renewed, "the certificate is renewed")
        ca = await s.client.get(SECRET, Key("default", "demo-ca"))
        assert ca["data"]["ca.crt"] == ca["data"]["tls.crt"]


@pytest.mark.parametrize("writes", [1, 2, 3, 5])
def test_a_process_that_dies_after_every_write_gets_there_all_the_same(tmp_path: Path, writes: int) -> None:
    @virtual
    async def run() -> None:
        async with site(tmp_path) as s:
            await s.stop()
            killer = s.killer = Killer(lambda: writes)
            await s.create(tenant())
            for _ in range(200):
                await s.start()
                await killer.death(20.0)
                await s.stop()
                if await s.state() == ("Ready", "v1.33.1"):
                    break
            assert await s.state() == ("Ready", "v1.33.1"), await s.why()
            assert s.keys()["users"] == ["default_demo", "root"]
            await s.client.delete(TenantControlPlane, KEY)
            for _ in range(100):
                await s.start()
                await killer.death(20.0)
                await s.stop()
                if s.keys()["users"] == ["root"]:
                    break
            s.killer = None
            await s.start()
            await s.stage.plane.settle(60.0)
            with pytest.raises(NotFound):
                await s.client.get(TenantControlPlane, KEY)
            assert s.keys() == {"users": ["root"], "roles": ["root"]}
            assert killer.kills >= 20 // writes

    run()
