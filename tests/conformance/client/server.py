"""The servers of the client suite: ours in process, ours over HTTP, a real kube-apiserver; and a workload cluster.

The last one is the API server of a cluster that Homeport made on a simulated Nutanix, reached as its users reach it: by
the kubeconfig of the cluster's Secret.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import pytest
from cryptography import x509

from homeport.api.cluster.v1beta2 import Cluster
from homeport.api.meta import Resource
from homeport.apiserver.auth.certificate import Issuer, load_private_key
from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.config import Config
from homeport.client.credential import Certificate, Static
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.protocol import Key, Query
from homeport.machinery import condition
from realkube import RealKube
from scenario.nutanix import manifest

_CLUSTER = "conform"


class Server(Protocol):
    name: str

    def client(self) -> Any:
        """A client with all rights."""

    def as_user(self, user: str, groups: Sequence[str] = ()) -> HttpClient:
        """A client that RBAC applies to."""

    async def forget(self) -> None:
        """Drop the history up to now: older versions are gone, and watches that are open may be cut."""


class Ours:
    """The embedded server, without controllers, as the real one runs here."""

    def __init__(self, name: str, server: EmbeddedServer) -> None:
        self.name = name
        self._server = server

    def client(self) -> Any:
        if self.name == "local":
            return self._server.client()
        return self.as_user("kubernetes-admin", ["system:masters"])

    def as_user(self, user: str, groups: Sequence[str] = ()) -> HttpClient:
        issued = self._server.pki.issue_client(user, groups)
        credential = Static(cert=Certificate(issued.certificate, issued.key))
        return HttpClient(Config(self._server.url, credential, self._server.pki.ca_pem))

    async def forget(self) -> None:
        await self._server.store.compact(self._server.store.revision)


class Real:
    name = "real"

    def __init__(self, kube: RealKube) -> None:
        self._kube = kube

    def client(self) -> HttpClient:
        return HttpClient(load(self._kube.kubeconfig))

    def as_user(self, user: str, groups: Sequence[str] = ()) -> HttpClient:
        path = self._kube.write_kubeconfig(user.replace(":", "-"), self._kube.issue(user, groups))
        return HttpClient(load(path))

    async def forget(self) -> None:
        code, body = self._kube.request("/api/v1/namespaces?limit=1")
        assert code == 200, body
        self._kube.compact(int(json.loads(body)["metadata"]["resourceVersion"]))
        self._kube.restart_apiserver()  # it keeps history in memory, whatever etcd forgets


class Workload:
    """A cluster of one machine on Nutanix, with its controllers and its kubelet."""

    name = "workload"

    def __init__(self, config: Config, authority: Issuer) -> None:
        self._config = config
        self._authority = authority

    def client(self) -> HttpClient:
        return HttpClient(self._config)

    def as_user(self, user: str, groups: Sequence[str] = ()) -> HttpClient:
        issued = self._authority.client(user, groups, datetime.datetime.now(datetime.UTC))
        credential = Static(cert=Certificate(issued.certificate, issued.key))
        return HttpClient(replace(self._config, credential=credential))

    async def forget(self) -> None:
        pytest.skip("nobody can reach the database of a cluster by its kubeconfig")


@asynccontextmanager
async def workload(folder: Path) -> AsyncIterator[Workload]:
    def homeport(*args: str) -> None:
        command = [sys.executable, "-m", "homeport", *args, "--data", str(folder / "data")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    homeport("up", "--detach", "--sim", "--listen", "127.0.0.1:0")
    try:
        async with HttpClient(load(folder / "data" / "kubeconfig")) as plane:
            for obj in manifest.cluster_objects(_CLUSTER, 1, 0):
                group, _, version = obj["apiVersion"].rpartition("/")
                await plane.create(obj, kind=Resource(group, version, obj["kind"], f"{obj['kind'].lower()}s"))
            query = Query(namespace="default", fields=f"metadata.name={_CLUSTER}")
            async with asyncio.timeout(120), plane.watch(Cluster, query, initial_events=True) as events:
                async for event in events:
                    if event.type != "BOOKMARK" and condition.is_true(event.object.status.conditions, "Available"):
                        break
            secrets = Resource("", "v1", "Secret", "secrets")
            found = await plane.get(secrets, Key("default", f"{_CLUSTER}-kubeconfig"))
            authority = await plane.get(secrets, Key("default", f"{_CLUSTER}-ca"))
        path = folder / "kubeconfig"
        path.write_bytes(base64.b64decode(found["data"]["value"]))
        pems = {name: base64.b64decode(value) for name, value in authority["data"].items()}
        certificate = x509.load_pem_x509_certificate(pems["tls.crt"])
        yield Workload(load(path), Issuer(certificate, load_private_key(pems["tls.key"])))
    finally:
        homeport("down")


@asynccontextmanager
async def start(name: str, folder: Path) -> AsyncIterator[Server]:
    if name == "real":
        with RealKube() as kube:
            yield Real(kube)
        return
    if name == "workload":
        async with workload(folder) as made:
            yield made
        return
    if name not in ("local", "http"):
        raise ValueError(f"no such server: {name}")
    server = await EmbeddedServer.open(folder / "homeport.db", PKI.ensure(folder / "pki"))
    try:
        if name == "http":
            await server.serve()
        yield Ours(name, server)
    finally:
        await server.close()
