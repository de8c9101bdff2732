"""The simulated etcd as its clients see it: tenants, their prefixes, and moves between datastores."""

from __future__ import annotations

from pathlib import Path

import pytest

from capikit.handmade import HandmadeEtcd, HandmadePlane
from homeport.apiserver.auth import certificate as certs
from homeport.capi.remote.pki import KeyPair
from homeport.client.protocol import Key, MergePatch
from homeport.hosted.etcd.dial import Access, DatastoreError, connect
from homeport.hosted.etcd.tenancy import Tenant, copy, ensure, prepare_datastore, remove
from homeport.runtime.clock import run_virtual
from homeport.sim.machine.workload.kind import CONFIG_MAP
from scenario.hosted.stage import DEPLOYMENT, Stage, stage

NOTE = {"metadata": {"name": "note", "namespace": "default"}, "data": {"a": "b"}}


def _access(etcd: HandmadeEtcd, server: str, user: str = "root") -> Access:
    certificate, key = etcd.client(user)
    return Access(etcd.name, (server,), certs.certificate_pem(etcd.issuer.certificate), KeyPair(certificate, key))


def _tenant(name: str) -> Tenant:
    return Tenant(f"default_{name}", name, "token")


async def _start(s: Stage, name: str, server: str) -> HandmadePlane:
    made = HandmadePlane(name, s.etcd, server)
    await s.have(made.service())
    made.address = await s.address(name)
    await s.have(*made.objects())
    await s.plane.until(lambda: s.ready(DEPLOYMENT, name, 1), f"{name} is ready", seconds=120)
    return made


def test_a_tenant_is_made_and_removed_with_its_data(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            server = await s.datastore()
            async with connect(_access(s.etcd, server)) as etcd:
                await prepare_datastore(etcd, ours=True, name="datastore")
                await ensure(etcd, _tenant("one"), "datastore")
            one = await _start(s, "one", server)
            await s.client(one).create(NOTE, kind=CONFIG_MAP)
            async with connect(_access(s.etcd, server)) as etcd:
                found = await etcd.get(b"/default_one/configmaps/default/note")
                assert found is not None
                assert b'"a":"b"' in found.value
                assert await etcd.count(b"/default_one/") > 20
                assert await remove(etcd, _tenant("one"))
                assert await etcd.count(b"/default_one/") == 0
                assert "one" not in await etcd.users()
            assert not s.fleet.hosted

    run_virtual(main())


def test_a_user_sees_its_own_prefix_and_no_other(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            server = await s.datastore()
            async with connect(_access(s.etcd, server)) as etcd:
                await prepare_datastore(etcd, ours=True, name="datastore")
                for name in ("one", "two"):
                    await ensure(etcd, _tenant(name), "datastore")
            async with connect(_access(s.etcd, server, "one")) as etcd:
                await etcd.put(b"/default_one/a", b"1")
                assert await etcd.count(b"/default_one/") == 1
            for key in (b"/default_two/", b"/", b"/homeport.dev/tenants/"):
                with pytest.raises(DatastoreError, match="permission denied"):
                    async with connect(_access(s.etcd, server, "one")) as etcd:
                        await etcd.count(key)

    run_virtual(main())


def test_a_control_plane_moves_to_another_datastore_with_all_it_has(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            server = await s.datastore()
            old = s.etcd
            async with connect(_access(old, server)) as etcd:
                await prepare_datastore(etcd, ours=True, name="datastore")
                await ensure(etcd, _tenant("one"), "datastore")
            one = await _start(s, "one", server)
            made = await s.client(one).create(NOTE, kind=CONFIG_MAP)
            s.etcd = new = HandmadeEtcd(s.now, name="second")
            target = await s.datastore()
            async with connect(_access(old, server)) as source, connect(_access(new, target)) as sink:
                await prepare_datastore(sink, ours=True, name="second")
                await ensure(sink, _tenant("one"), "second")
                assert await copy(source, sink, _tenant("one")) > 20
            one.etcd, one.etcd_server = new, target
            secret, _, deployment = one.objects()
            await s.plane.client.patch(s.kind(secret), Key("default", "one-pki"), MergePatch({"data": secret["data"]}))
            body = MergePatch({"spec": {"template": deployment["spec"]["template"]}})
            await s.plane.client.patch(DEPLOYMENT, Key("default", "one"), body)
            await s.plane.settle(20)
            await s.plane.until(lambda: s.ready(DEPLOYMENT, "one", 1), "it is ready with the other datastore")
            async with connect(_access(old, server)) as etcd:
                assert await remove(etcd, _tenant("one"))
            await s.plane.settle(5)
            moved = await s.client(one).get(CONFIG_MAP, Key("default", "note"))
            assert (moved.uid, moved["data"]) == (made.uid, {"a": "b"})

    run_virtual(main())
