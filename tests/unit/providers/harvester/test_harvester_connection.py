"""Connections to an infrastructure cluster, and what is said when there is none."""

from __future__ import annotations

import base64
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import EmbeddedServer
from homeport.client.dial import DIRECT
from homeport.infra.error import Denied, Misconfigured, Unreachable
from homeport.providers.harvester.infracluster.connection import Connector
from homeport.providers.harvester.infracluster.resource import VM
from homeport.runtime.clock import SystemClock
from homeport.runtime.testing import shared_pki
from homeport.sim.harvester.harvester import Harvester
from homeport.sim.harvester.world import default_world

Json = dict[str, Any]


def kubeconfig(server: str, user: Json, **cluster: Any) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "x", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "x", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x", "namespace": "default"}}],
        "current-context": "x",
    }
    return json.dumps(config)


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def admin(pki: PKI) -> Json:
    issued = pki.issue_client("admin", ("system:masters",))
    return {"client-certificate-data": encoded(issued.certificate), "client-key-data": encoded(issued.key)}


@asynccontextmanager
async def connector() -> AsyncIterator[Connector]:
    server = await EmbeddedServer.open(None, shared_pki())
    made = Connector(server.client(), SystemClock(), DIRECT)
    try:
        yield made
    finally:
        await made.close()
        await server.close(drain_seconds=0.1)


@asynccontextmanager
async def served(**world: Any) -> AsyncIterator[tuple[Harvester, str]]:
    import msgspec

    found = await Harvester.open(shared_pki(), world=msgspec.structs.replace(default_world(), **world))
    try:
        yield found, await found.serve()
    finally:
        await found.close()


@pytest.mark.parametrize("harvester", [True, False])
async def test_harvester_is_distinguished_from_kubevirt_by_its_kinds(harvester: bool) -> None:
    async with connector() as made, served(harvester=harvester) as (_, url):
        ca = {"certificate-authority-data": encoded(shared_pki().ca_pem)}
        session = await made.open({}, {"kubeconfig": kubeconfig(url, admin(shared_pki()), **ca)})
        assert session.harvester is harvester
        assert session.namespace == "default"


async def test_one_kubeconfig_is_one_session_and_another_one_is_another() -> None:
    async with connector() as made, served() as (_, url):
        ca = {"certificate-authority-data": encoded(shared_pki().ca_pem)}
        user = admin(shared_pki())
        first = await made.open({}, {"kubeconfig": kubeconfig(url, user, **ca)})
        assert await made.open({}, {"kubeconfig": kubeconfig(url, user, **ca)}) is first
        other = await made.open({"namespace": "vms"}, {"kubeconfig": kubeconfig(url, user, **ca)})
        assert other is not first
        assert other.namespace == "vms"
        for number in range(5):
            first.watches.follow(f"machine-{number}", lambda: None, ())
            await first.watches.list(VM, "default")
        assert len(first.watches) == 1


async def test_a_certificate_that_does_not_verify_is_reported_with_the_cure() -> None:
    async with connector() as made, served() as (_, url):
        with pytest.raises(Unreachable) as failed:
            await made.open({}, {"kubeconfig": kubeconfig(url, admin(shared_pki()))})
        assert "certificate-authority-data" in failed.value.message
        assert "insecure-skip-tls-verify: true" in failed.value.message
        insecure = {"insecure-skip-tls-verify": True}
        session = await made.open({}, {"kubeconfig": kubeconfig(url, admin(shared_pki()), **insecure)})
        assert session.harvester


async def test_a_port_that_nobody_answers_is_reported_with_the_cure() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    async with connector() as made:
        with pytest.raises(Unreachable) as failed:
            await made.open({}, {"kubeconfig": kubeconfig(f"https://127.0.0.1:{port}", {"token": "x"})})
        assert "must be the external address" in failed.value.message


async def test_credentials_that_are_refused_are_reported_without_being_shown() -> None:
    async with connector() as made, served() as (_, url):
        ca = {"certificate-authority-data": encoded(shared_pki().ca_pem)}
        with pytest.raises(Denied) as failed:
            await made.open({}, {"kubeconfig": kubeconfig(url, {"token": "s3cret"}, **ca)})
        assert "download the kubeconfig again" in failed.value.message
        assert "s3cret" not in failed.value.message


async def test_a_cluster_without_kubevirt_is_reported() -> None:
    async with connector() as made:
        server = await EmbeddedServer.open(None, shared_pki())
        try:
            url = await server.serve()
            ca = {"certificate-authority-data": encoded(shared_pki().ca_pem)}
            with pytest.raises(Misconfigured, match="is not a Harvester or KubeVirt cluster"):
                await made.open({}, {"kubeconfig": kubeconfig(url, admin(shared_pki()), **ca)})
        finally:
            await server.close(drain_seconds=0.1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "has no key kubeconfig"),
        ("[", "the Secret"),
        (kubeconfig("https://x", {"exec": {"command": "sh"}}), "can't be used in a Secret"),
        (
            kubeconfig("https://x", {"token": "t"}, **{"certificate-authority": "/etc/passwd"}),
            "can't be used in a Secret",
        ),
        (kubeconfig("x:6443", {"token": "t"}), "must start with https"),
    ],
)
async def test_a_kubeconfig_that_can_not_be_used_is_refused_by_its_field(content: str, said: str) -> None:
    async with connector() as made:
        with pytest.raises(Misconfigured, match=said):
            await made.open({}, {"kubeconfig": content})
