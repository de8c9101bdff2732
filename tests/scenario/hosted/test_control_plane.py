"""Simulated control planes in Pods that were written by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from capikit.handmade import HandmadePlane
from homeport.api.meta import Resource
from homeport.client.errors import ApiError
from homeport.client.protocol import Key, MergePatch
from homeport.hosted.etcd.tenancy import Tenant, ensure
from homeport.runtime.clock import run_virtual
from scenario.builtin.plane import POD
from scenario.hosted.stage import DEPLOYMENT, STATEFUL_SET, Stage, stage

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
CLAIM = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
SECRET = Resource("", "v1", "Secret", "secrets")
NOTE = {"metadata": {"name": "note", "namespace": "default"}, "data": {"a": "b"}}


def test_a_control_plane_answers_at_the_address_of_its_service(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            server = await s.datastore()
            one = await s.control_plane("one", server)
            client = s.client(one)
            await client.create(NOTE, kind=CONFIG_MAP)
            assert (await client.get(CONFIG_MAP, Key("default", "note")))["data"] == {"a": "b"}
            assert next(iter(s.fleet.hosted.values())).version() == "v1.33.1"

    run_virtual(main())


def test_tenants_of_one_datastore_do_not_see_each_other(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            server = await s.datastore()
            one, two = await s.control_plane("one", server), await s.control_plane("two", server)
            assert one.address != two.address
            await s.client(one).create(NOTE, kind=CONFIG_MAP)
            with pytest.raises(ApiError, match="not found"):
                await s.client(two).get(CONFIG_MAP, Key("default", "note"))

    run_virtual(main())


def test_data_outlive_pods_and_the_plane(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            one = await s.control_plane("one", await s.datastore())
            await s.client(one).create(NOTE, kind=CONFIG_MAP)
            for pod in (*s.pods("one"), *s.pods("datastore")):
                await s.plane.delete(POD, pod["metadata"]["name"])
            await s.plane.settle(5)
            await s.plane.until(lambda: s.ready(DEPLOYMENT, "one", 1), "it is back")
            assert (await s.client(one).get(CONFIG_MAP, Key("default", "note")))["data"] == {"a": "b"}
            await s.leave()
            await s.enter()
            await s.plane.settle(5)
            await s.plane.until(lambda: s.ready(DEPLOYMENT, "one", 1), "it is back after a restart")
            assert (await s.client(one).get(CONFIG_MAP, Key("default", "note")))["data"] == {"a": "b"}
            assert await s.address("one") == one.address

    run_virtual(main())


def test_what_was_acknowledged_outlives_a_process_that_is_killed(tmp_path: Path) -> None:
    """An object, a Secret, which is encrypted on disk, and a user of etcd: nothing was saved since."""

    async def main() -> None:
        async with stage(tmp_path, databases=True) as s:
            server = await s.datastore()
            one = await s.control_plane("one", server)
            secret = {"metadata": {"name": "token", "namespace": "default"}, "stringData": {"a": "c"}}
            async with s.root(server) as etcd:
                await ensure(etcd, Tenant("late", "late", "claim"), "datastore")
            await s.client(one).create(NOTE, kind=CONFIG_MAP)
            await s.client(one).create(secret, kind=SECRET)
            await s.die()
            await s.plane.settle(5)
            await s.plane.until(lambda: s.ready(DEPLOYMENT, "one", 1), "it is back")
            assert (await s.client(one).get(CONFIG_MAP, Key("default", "note")))["data"] == {"a": "b"}
            assert (await s.client(one).get(SECRET, Key("default", "token")))["data"] == {"a": "Yw=="}
            assert "late" in next(iter(s.hosting.datastores.etcds.values())).users

    run_virtual(main())


def test_a_cluster_whose_data_were_deleted_stays_deleted_when_the_process_is_killed(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path, databases=True) as s:
            server = await s.datastore()
            one = await s.control_plane("one", server)
            await s.plane.delete(DEPLOYMENT, "one")
            async with s.root(server) as etcd:
                await etcd.delete_prefix(f"{one.prefix}/".encode())
            await s.die()
            assert not s.fleet.hosted
            assert not list((tmp_path / "hosted").glob("*.db*"))

    run_virtual(main())


def test_a_cluster_that_an_earlier_version_saved_with_the_machines_goes_on(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            one = await s.control_plane("one", await s.datastore())
            await s.client(one).create(NOTE, kind=CONFIG_MAP)
            await s.leave()
            s.databases = True
            await s.enter()
            await s.die()  # before anything else was saved
            await s.plane.settle(5)
            await s.plane.until(lambda: s.ready(DEPLOYMENT, "one", 1), "it is back")
            assert (await s.client(one).get(CONFIG_MAP, Key("default", "note")))["data"] == {"a": "b"}
            assert not list((tmp_path / "machine").glob("*.db"))

    run_virtual(main())


def test_data_are_gone_with_the_claim_of_their_datastore(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            await s.control_plane("one", await s.datastore())
            await s.plane.delete(DEPLOYMENT, "one")
            await s.plane.delete(STATEFUL_SET, "datastore")
            await s.plane.until(lambda: not s.plane.names("pods"), "no Pod is left")
            assert s.fleet.hosted
            await s.plane.delete(CLAIM, "data-datastore-0")
            await s.plane.settle(5)
            assert not s.fleet.hosted
            assert not s.hosting.datastores.etcds

    run_virtual(main())


def test_replicas_share_their_data_and_a_rollout_keeps_the_api_reachable(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            one = await s.control_plane("one", await s.datastore(), replicas=2)
            await s.client(one).create(NOTE, kind=CONFIG_MAP)
            one.version = "v1.34.0"
            body = MergePatch({"spec": {"template": {"spec": one.pod()}}})
            await s.plane.client.patch(DEPLOYMENT, Key("default", "one"), body)
            for _ in range(200):
                await s.plane.settle(0.2)
                fresh = s.client(one)  # a connection of its own
                assert (await fresh.get(CONFIG_MAP, Key("default", "note")))["data"] == {"a": "b"}
                await fresh.close()
                if await s.ready(DEPLOYMENT, "one", 2) and len(s.pods("one")) == 2:
                    break
            assert next(iter(s.fleet.hosted.values())).version() == "v1.34.0"

    run_virtual(main())


@pytest.mark.parametrize(
    ("remove", "words"),
    [
        ("apiserver.key", "open /etc/kubernetes/pki/apiserver.key: no such file or directory"),
        ("sa.key", "open /etc/kubernetes/pki/sa.key: no such file or directory"),
        ("apiserver-etcd-client.crt", "open /etc/kubernetes/pki/apiserver-etcd-client.crt: no such file or directory"),
    ],
)
def test_a_missing_file_ends_the_api_server_with_its_words(tmp_path: Path, remove: str, words: str) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            await _start_broken(s, remove)
            await s.plane.until(lambda: words in s.log("one", "kube-apiserver"), "the words in the log")

    run_virtual(main())


async def _start_broken(s: Stage, remove: str) -> None:
    made = HandmadePlane("one", s.etcd, await s.datastore())
    s.admit("one", made.prefix)
    secret, *others = made.objects()
    del secret["data"][remove]
    await s.have(secret, *others)


def test_an_unknown_user_of_etcd_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            server = await s.datastore()
            await s.control_plane("one", server)
            two = HandmadePlane("two", s.etcd, server, user="one")
            await s.have(*two.objects())
            words = "as user 'one': etcdserver: permission denied"
            await s.plane.until(lambda: words in s.log("two", "kube-apiserver"), "the refusal in the log")
            assert not await s.ready(DEPLOYMENT, "two", 1)

    run_virtual(main())


def test_a_datastore_that_is_not_there_is_reported_and_waited_for(tmp_path: Path) -> None:
    async def main() -> None:
        async with stage(tmp_path) as s:
            one = HandmadePlane("one", s.etcd, "https://datastore.default.svc:2379")
            await s.have(*one.objects())
            await s.plane.until(
                lambda: "context deadline exceeded" in s.log("one", "kube-apiserver"), "it gives up", seconds=60
            )
            await s.datastore()
            s.admit("one", one.prefix)
            await s.plane.until(lambda: s.ready(DEPLOYMENT, "one", 1), "it starts", seconds=600)

    run_virtual(main())
