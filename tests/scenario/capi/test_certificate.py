"""Credentials run out: kubeconfigs, certificates of machines and tokens are renewed in time, authorities never."""

from __future__ import annotations

import base64
from typing import Any

from capikit import manifest
from capikit.yard import Yard, yard
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.capi.remote import kubeconfig
from homeport.client.protocol import Key
from homeport.runtime.clock import parse_time
from homeport.runtime.testing import virtual
from homeport.sim.machine.pace import REALISTIC
from scenario.capi.census import Census, between

SECRET = Resource("", "v1", "Secret", "secrets")
DAY = 86_400.0
AUTHORITIES = ("one-ca", "one-etcd", "one-proxy", "one-sa")


async def secret(y: Yard, name: str) -> dict[str, bytes]:
    found = await y.client.get(SECRET, Key("default", name))
    return {name: base64.b64decode(value) for name, value in found["data"].items()}


def expiry(machine: Machine) -> float:
    assert machine.status.certificates_expiry_date
    return parse_time(machine.status.certificates_expiry_date)


async def authorities(y: Yard) -> list[Any]:
    return [await secret(y, name) for name in AUTHORITIES]


def test_the_kubeconfig_is_renewed_at_half_of_its_life_and_the_cluster_stays_connected() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 1, 1)
            await y.steady("one", 1, 1, "v1.30.0")
            await y.available("one")
            before, known = await secret(y, "one-kubeconfig"), await authorities(y)
            due = kubeconfig.renew_at(before["value"])
            assert due is not None
            assert 180 * DAY < due - y.clock.now() < 185 * DAY
            y.clock.jump(due - y.clock.now() - 600.0)
            await y.plane.settle(quiet=300)
            assert await secret(y, "one-kubeconfig") == before
            y.clock.jump(900.0)
            renewed = await y.until(
                SECRET, "one-kubeconfig", lambda s: base64.b64decode(s["data"]["value"]) != before["value"]
            )
            later = kubeconfig.renew_at(base64.b64decode(renewed["data"]["value"]))
            assert later is not None
            assert later - y.clock.now() > 180 * DAY
            await y.available("one")
            await y.steady("one", 1, 1, "v1.30.0")
            assert await authorities(y) == known
            assert len(y.infra.created) == 2

    run()


def test_machines_are_replaced_before_their_certificates_expire() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 3, 1)
            await y.steady("one", 3, 1, "v1.30.0")
            rollout = {"rollout": {"before": {"certificatesExpiryDays": 21}}}
            await y.patch(KubeadmControlPlane, "one-cp", {"spec": rollout})
            await y.plane.settle(quiet=150)
            known = await authorities(y)
            planes = [m for m in await y.machines() if "cluster.x-k8s.io/control-plane" in m.metadata.labels]
            expiries = [expiry(m) for m in planes]
            assert all(364 * DAY < each - y.clock.now() < 366 * DAY for each in expiries)
            old = {made.name for made in y.infra.machines.values() if made.control_plane}
            y.clock.jump(min(expiries) - 21 * DAY - y.clock.now() - 900.0)
            await y.plane.settle(quiet=150)
            assert len(y.infra.created) == 4
            with Census(y) as census:
                census.rules = {"one-cp": between(2, 4)}
                y.clock.jump(1200.0)
                for name in old:
                    await y.gone(Machine, name, timeout=7200)
                await y.steady("one", 3, 1, "v1.30.0")
                await y.plane.settle(quiet=150)
            assert len(y.infra.created) == 7
            assert await authorities(y) == known
            fresh = [m for m in await y.machines() if "cluster.x-k8s.io/control-plane" in m.metadata.labels]
            assert all(expiry(m) - y.clock.now() > 360 * DAY for m in fresh)

    run()


def test_a_machine_that_boots_for_an_hour_still_finds_its_token_good() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 1, 0)
            await y.steady("one", 1, 0, "v1.30.0")
            y.fleet.pace = REALISTIC.scaled(250)  # nearly two hours until a machine is a node
            await y.plane.have(*manifest.workers("one", 1, "v1.30.0"))
            began = y.clock.monotonic()
            await y.steady("one", 1, 1, "v1.30.0", timeout=6 * 3600)
            assert y.clock.monotonic() - began > 3600
            assert len(y.infra.created) == 2

    run()


def test_a_lost_authority_is_told_and_never_made_anew() -> None:
    @virtual
    async def run() -> None:
        async with yard() as y:
            await y.create("one", 1, 1)
            await y.steady("one", 1, 1, "v1.30.0")
            kept = await y.client.get(SECRET, Key("default", "one-ca"))
            await y.client.delete(SECRET, Key("default", "one-ca"))
            await y.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 3}})
            await y.until(
                KubeadmControlPlane,
                "one-cp",
                lambda k: any(
                    c["type"] == "CertificatesAvailable" and c["status"] == "False" and "one-ca" in c["message"]
                    for c in k.status.conditions
                ),
            )
            await y.plane.settle(quiet=150)
            assert len(y.infra.created) == 2
            kept["metadata"] = {key: kept.metadata[key] for key in ("name", "namespace", "labels")}
            await y.client.create(kept, kind=SECRET)
            await y.steady("one", 3, 1, "v1.30.0")

    run()
