"""DataStore `default` of an installation: an etcd in the cluster that answers as its objects say."""

from __future__ import annotations

import asyncio
import base64
import re
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from homeport.api.meta import Resource, Unstructured
from homeport.api.steward.v1alpha1 import DataStore
from homeport.apiserver.embedded import EmbeddedServer
from homeport.app.definition import install_definitions
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.hosted.datastore.content import access_of, is_ours, read_credentials
from homeport.hosted.datastore.provision import DefaultDatastore
from homeport.hosted.definition import definitions
from homeport.hosted.etcd.dial import DatastoreError, connect
from homeport.hosted.etcd.tenancy import prepare_datastore
from homeport.hosted.flavour import STEWARD
from homeport.runtime.clock import SystemClock
from homeport.runtime.testing import shared_pki
from realetcd import missing
from realkube import find_binaries, free_port

KEY = Key("homeport-system", "datastore")
SECRET = Resource("", "v1", "Secret", "secrets")
STATEFUL_SET = Resource("apps", "v1", "StatefulSet", "statefulsets")


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    server = await EmbeddedServer.open(None, shared_pki())
    await install_definitions(server.client(), definitions(STEWARD))
    yield server.client()
    await server.close()


async def provisioned(client: Client) -> tuple[DefaultDatastore, Unstructured]:
    made = DefaultDatastore(client, Write(field_manager="test"), SystemClock(), embedded=False)
    wait = await made.ensure(STEWARD, None)
    assert wait is not None
    assert wait.reason == "WaitingForDataStore"
    assert "kubectl -n homeport-system describe pods" in wait.message
    return made, await client.get(STATEFUL_SET, KEY)


async def test_it_is_reached_by_the_name_of_its_service_and_its_pod_is_restricted(client: Client) -> None:
    made, workload = await provisioned(client)
    store = await client.get(DataStore, Key("", "default"))
    assert store.spec.endpoints == ["datastore.homeport-system.svc:2379"]
    pod = workload["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    # As the namespace of an installation demands it (Pod Security Standard "restricted").
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    ready = MergePatch({"status": {"replicas": 1, "readyReplicas": 1}})
    await client.patch(STATEFUL_SET, KEY, ready, subresource="status")
    assert await made.ensure(STEWARD, store) is None


async def test_one_of_a_user_is_left_alone(client: Client) -> None:
    made = DefaultDatastore(client, Write(field_manager="test"), SystemClock(), embedded=False)
    body: dict[str, Any] = {"metadata": {"name": "default"}, "spec": {"driver": "etcd", "endpoints": ["10.0.0.5:2379"]}}
    content = {"content": base64.b64encode(b"x").decode()}
    pair = {"certificate": content, "privateKey": content}
    body["spec"]["tlsConfig"] = {"certificateAuthority": pair, "clientCertificate": pair}
    await client.create(body, kind=DataStore.__resource__)
    assert await made.ensure(STEWARD, await client.get(DataStore, Key("", "default"))) is None
    assert not (await client.list(STATEFUL_SET)).items


@pytest.mark.skipif(bool(missing()), reason=missing() or "-")
async def test_etcd_starts_as_the_pod_describes_it_and_lets_the_controllers_in(client: Client, tmp_path: Path) -> None:
    _, workload = await provisioned(client)
    store = await client.get(DataStore, Key("", "default"))
    secret = await client.get(SECRET, Key("homeport-system", "datastore-tls"))
    for name, content in secret["data"].items():
        (tmp_path / name).touch(mode=0o600)
        (tmp_path / name).write_bytes(base64.b64decode(content))
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    port, peer = free_port(), free_port()
    places = {"/etc/etcd/pki": str(tmp_path), "/var/lib/etcd": str(tmp_path / "data"), "0.0.0.0": "127.0.0.1"}
    command = [_moved(each, places, port, peer) for each in container["command"][1:]]
    binaries = find_binaries()
    assert isinstance(binaries, dict)
    process = _start([str(binaries["etcd"]), *command], tmp_path / "log")
    try:
        access = replace(access_of(store, await read_credentials(client, store)), endpoints=(f"127.0.0.1:{port}",))
        async with asyncio.timeout(120):
            while not await _answers(access, store):
                assert process.poll() is None, (tmp_path / "log").read_text()
    finally:
        process.kill()
        process.wait()


def _start(command: list[str], path: Path) -> subprocess.Popen[bytes]:
    with open(path, "wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


async def _answers(access: Any, store: DataStore) -> bool:
    try:
        async with connect(access) as etcd:
            await prepare_datastore(etcd, ours=is_ours(store), name="default")
            return True
    except DatastoreError as error:
        if error.reason != "DatastoreUnreachable":
            raise
        await asyncio.sleep(0.2)
        return False


def _moved(argument: str, places: dict[str, str], port: int, peer: int) -> str:
    for inside, here in places.items():
        argument = argument.replace(inside, here)
    argument = re.sub(r"127\.0\.0\.1:2379", f"127.0.0.1:{port}", argument)
    return argument.replace("127.0.0.1:2380", f"127.0.0.1:{peer}")
