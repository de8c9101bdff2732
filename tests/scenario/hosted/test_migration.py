"""Data of a control plane moves to another DataStore: with faults, and with deaths after every single write."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest
from cryptography.hazmat.primitives import serialization

from homeport.api.meta import Resource
from homeport.api.steward.v1alpha1 import DataStore
from homeport.apiserver.auth import certificate as certs
from homeport.capi.remote.etcd import Caller
from homeport.client.errors import ApiError
from homeport.client.protocol import Key, MergePatch
from homeport.hosted.datastore.content import MANAGED_LABEL
from homeport.hosted.etcd.client import Etcd
from homeport.hosted.etcd.dial import Access, DatastoreError, connect
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from homeport.sim.hosted.keyspace import Keyspace
from scenario.hosted.test_tenant import CONFIG_MAP, SECRET, Site, site, tenant
from scenario.hosted.test_tenant_hostile import reports

READS = ("/etcdserverpb.KV/Range", "/etcdserverpb.Maintenance/Status", "Get", "List", "Status")


class Tap:
    """Between the controllers and every etcd: counts what they write, and may stop them there."""

    def __init__(self) -> None:
        self.writes = 0
        self.dies_at = 0  # the write after which nothing goes on; 0: never
        self.dead = asyncio.Event()
        self.fail: Callable[[str, str], None] = lambda datastore, path: None

    @asynccontextmanager
    async def connect(self, access: Access) -> AsyncIterator[Etcd]:
        async with connect(access) as etcd:
            yield Etcd(TappedCaller(etcd._caller, access.datastore, self))


class TappedCaller:
    def __init__(self, inner: Caller, datastore: str, tap: Tap) -> None:
        self._inner, self._datastore, self._tap = inner, datastore, tap

    async def call(self, path: str, request: bytes) -> bytes:
        if path.endswith(READS):
            return await self._inner.call(path, request)
        self._tap.fail(self._datastore, path)
        answer = await self._inner.call(path, request)
        self._tap.writes += 1
        if self._tap.writes == self._tap.dies_at:
            self._tap.dead.set()
            await asyncio.Event().wait()
        return answer

    async def close(self) -> None:
        await self._inner.close()


def value(data: bytes) -> dict[str, str]:
    return {"content": base64.b64encode(data).decode()}


async def second_datastore(s: Site) -> None:
    """DataStore `other`."""
    endpoint, etcd = await s.stage.datastore(), s.stage.etcd
    certificate, key = etcd.client("root")
    body = {
        "apiVersion": "steward.butlerlabs.dev/v1alpha1",
        "kind": "DataStore",
        "metadata": {"name": "other", "labels": {MANAGED_LABEL: "true"}},
        "spec": {
            "driver": "etcd",
            "endpoints": [endpoint.removeprefix("https://")],
            "tlsConfig": {
                "certificateAuthority": {
                    "certificate": value(certs.certificate_pem(etcd.issuer.certificate)),
                    "privateKey": value(certs.key_pem(etcd.issuer.key)),
                },
                "clientCertificate": {"certificate": value(certificate), "privateKey": value(key)},
            },
        },
    }
    await s.create(body)


@asynccontextmanager
async def two_datastores(folder: Path) -> AsyncIterator[tuple[Site, Tap]]:
    async with site(folder) as s:
        await s.stop()
        tap = Tap()
        s.connect = tap.connect
        await s.start()
        await second_datastore(s)
        await s.create(tenant())
        await s.until("Ready")
        yield s, tap


def keyspaces(s: Site) -> dict[str, Keyspace]:
    return {("other" if "default/" in name else "default"): each for name, each in _named(s)}


def _named(s: Site) -> list[tuple[str, Keyspace]]:
    return [(" ".join(each.claims), each) for each in s.stage.hosting.datastores.etcds.values()]


async def write(s: Site, name: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}
    await (await s.tenant_client()).create(body, kind=CONFIG_MAP)


async def holds(s: Site, *names: str) -> None:
    remote = await s.tenant_client()
    for name in names:
        assert (await remote.get(CONFIG_MAP, Key("default", name))).name == name


async def moved(s: Site, target: str) -> None:
    async def done() -> bool:
        config = (await s.client.get(SECRET, Key("default", "demo-datastore-config")))["data"]
        there = base64.b64decode(config["DATASTORE"]).decode() == target
        return there and "PREVIOUS_DATASTORE" not in config and (await s.state())[0] == "Ready"

    await s.stage.plane.until(done, f"the data is in {target}", seconds=900.0)


@virtual
async def test_a_process_that_dies_at_any_write_of_a_migration_loses_nothing(tmp_path: Path) -> None:
    async with two_datastores(tmp_path) as (s, tap):
        await write(s, "kept")
        places, deaths = ("other", "default"), 0
        for number in range(1, 40):
            target = places[(number - 1) % 2]
            tap.writes, tap.dies_at = 0, number
            tap.dead.clear()
            await s.patch({"dataStore": target})
            try:
                async with asyncio.timeout(120.0):
                    await tap.dead.wait()
            except TimeoutError:
                assert tap.writes < number  # a migration has no more writes than that
            else:
                deaths += 1
                await s.stop()
                tap.dies_at = 0
                await s.start()
            await moved(s, target)
            await holds(s, "kept", *(f"after-{each}" for each in range(1, number)))
            await write(s, f"after-{number}")
            if tap.writes < number:
                break
        assert deaths >= 10
        gone = keyspaces(s)["default" if target == "other" else "other"]
        assert "default_demo" not in gone.users


@virtual
async def test_while_its_data_is_copied_a_tenant_reads_and_writes_nothing(tmp_path: Path) -> None:
    async with two_datastores(tmp_path) as (s, tap):
        await write(s, "kept")

        def refuse(datastore: str, path: str) -> None:
            if datastore == "other" and path.endswith("KV/DeleteRange"):  # copying begins
                raise DatastoreError("DatastoreUnreachable", "the cable was pulled")

        tap.fail = refuse
        await s.patch({"dataStore": "other"})
        assert "the cable was pulled" in await reports(s, "DatastoreUnreachable")
        assert (await s.state())[0] == "Migrating"
        await holds(s, "kept")
        with pytest.raises(ApiError, match="permission denied"):
            await write(s, "lost")

        await s.patch({"dataStore": "default"})  # the user thinks better of it
        await s.until("Ready")
        await write(s, "again")
        tap.fail = lambda datastore, path: None
        await s.patch({"dataStore": "other"})
        await moved(s, "other")
        await holds(s, "kept", "again")


@virtual
async def test_a_target_that_can_not_be_used_is_found_out_before_the_tenant_is_frozen(tmp_path: Path) -> None:
    async with two_datastores(tmp_path) as (s, _):
        keyspaces(s)["other"].full = True
        await s.patch({"dataStore": "other"})
        assert "alarm NOSPACE" in await reports(s, "DatastoreFull")
        await write(s, "meanwhile")
        keyspaces(s)["other"].full = False
        await moved(s, "other")
        await holds(s, "meanwhile")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [("leaderless", "NoLeader"), ("full", "DatastoreFull"), ("disabled", "AuthenticationDisabled")],
)
def test_a_fault_of_etcd_shows_on_the_objects_and_heals(tmp_path: Path, fault: str, reason: str) -> None:
    @virtual
    async def run() -> None:
        async with two_datastores(tmp_path) as (s, _):
            await s.patch({"dataStore": "other"})
            await moved(s, "other")
            # As of somebody who runs it himself: then nobody enables authentication for him.
            labels = {"metadata": {"labels": {MANAGED_LABEL: None}}}
            await s.client.patch(DataStore, Key("", "other"), MergePatch(labels))
            keys = keyspaces(s)["other"]
            _set(keys, fault, True)
            await reports(s, reason)
            store = await s.client.get(DataStore, Key("", "other"))
            assert (condition.find(store.status.conditions, "Ready") or {}).get("reason") == reason
            if fault != "disabled":
                with pytest.raises(ApiError, match=r"no leader|database space exceeded"):
                    await write(s, "lost")
            _set(keys, fault, False)
            await reports(s, "Ready")
            await write(s, "healed")

    run()


def _set(keys: Keyspace, fault: str, on: bool) -> None:
    if fault == "disabled":
        keys.enabled = not on
    else:
        setattr(keys, fault, on)


@virtual
async def test_an_etcd_that_is_away_shows_on_the_objects_and_heals(tmp_path: Path) -> None:
    stateful = Resource("apps", "v1", "StatefulSet", "statefulsets")
    async with two_datastores(tmp_path) as (s, _):
        await s.patch({"dataStore": "other"})
        await moved(s, "other")
        await s.client.patch(stateful, Key("default", "datastore"), MergePatch({"spec": {"replicas": 0}}))
        assert "no endpoint answers" in await reports(s, "DatastoreUnreachable")
        await s.client.patch(stateful, Key("default", "datastore"), MergePatch({"spec": {"replicas": 1}}))
        await reports(s, "Ready")


@virtual
async def test_another_key_of_service_accounts_is_used_by_the_next_pods(tmp_path: Path) -> None:
    account = Resource("", "v1", "ServiceAccount", "serviceaccounts")
    async with site(tmp_path) as s:
        await s.create(tenant())
        await s.until("Ready")
        remote = await s.tenant_client()
        key = Key("default", "robot")

        async def token() -> str:
            path = f"/api/v1/namespaces/{key.namespace}/serviceaccounts/{key.name}/token"
            body = b'{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}'
            return str(orjson.loads((await remote.raw("POST", path, body)).body)["status"]["token"])

        async def known(text: str) -> bool:
            body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": text}}
            review = Resource("authentication.k8s.io", "v1", "TokenReview", "tokenreviews", namespaced=False)
            return bool(((await remote.create(body, kind=review)).get("status") or {}).get("authenticated"))

        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot", "namespace": "default"}}
        await remote.create(body, kind=account)
        old = await token()
        assert await known(old)
        made = certs.make_key()
        public = made.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        data = {"sa.pub": base64.b64encode(public).decode(), "sa.key": base64.b64encode(certs.key_pem(made)).decode()}
        await s.client.patch(SECRET, Key("default", "demo-sa-certificate"), MergePatch({"data": data}))

        async def rotated() -> bool:
            return not await known(old)

        await s.stage.plane.until(rotated, "tokens of the old key are refused", seconds=120.0)
        assert await known(await token())
