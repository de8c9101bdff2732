"""Credentials run out: kubeconfigs, certificates of machines and tokens are renewed in time, authorities never."""

from __future__ import annotations

import base64
from typing import Any

from capikit import manifest
from capikit.harness import Harness, harness
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


async def secret(h: Harness, name: str) -> dict[str, bytes]:
    found = await h.client.get(SECRET, Key("default", name))
    return {name: base64.b64decode(value) for name, value in found["data"].items()}


def expiry(machine: Machine) -> float:
    assert machine.status.certificates_expiry_date
    return parse_time(machine.status.certificates_expiry_date)


async def authorities(h: Harness) -> list[Any]:
    return [await secret(h, name) for name in AUTHORITIES]


def test_the_kubeconfig_is_renewed_at_half_of_its_life_and_the_cluster_stays_connected() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 1)
            await h.steady("one", 1, 1, "v1.30.0")
            await h.available("one")
            before, known = await secret(h, "one-kubeconfig"), await authorities(h)
            due = kubeconfig.renew_at(before["value"])
            assert due is not None
            assert 180 * DAY < due - h.clock.now() < 185 * DAY
            h.clock.jump(due - h.clock.now() - 600.0)
            await h.plane.settle(quiet=300)
            assert await secret(h, "one-kubeconfig") == before
            h.clock.jump(900.0)
            renewed = await h.until(
                SECRET,
                "one-kubeconfig",
                lambda s: base64.b64decode(s["data"]["value"]) != before["value"],
                timeout=660,
            )
            later = kubeconfig.renew_at(base64.b64decode(renewed["data"]["value"]))
            assert later is not None
            assert later - h.clock.now() > 180 * DAY
            await h.available("one")
            await h.steady("one", 1, 1, "v1.30.0")
            assert await authorities(h) == known
            assert len(h.infra.created) == 2

    run()


def test_machines_are_replaced_before_their_certificates_expire() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 3, 1)
            await h.steady("one", 3, 1, "v1.30.0")
            rollout = {"rollout": {"before": {"certificatesExpiryDays": 21}}}
            await h.patch(KubeadmControlPlane, "one-cp", {"spec": rollout})
            await h.plane.settle(quiet=150)
            known = await authorities(h)
            planes = [m for m in await h.machines() if "cluster.x-k8s.io/control-plane" in m.metadata.labels]
            expiries = [expiry(m) for m in planes]
            assert all(364 * DAY < each - h.clock.now() < 366 * DAY for each in expiries)
            old = {made.name for made in h.infra.machines.values() if made.control_plane}
            h.clock.jump(min(expiries) - 21 * DAY - h.clock.now() - 900.0)
            await h.plane.settle(quiet=150)
            assert len(h.infra.created) == 4
            with Census(h) as census:
                census.rules = {"one-cp": between(2, 4)}
                h.clock.jump(1200.0)
                for name in old:
                    await h.gone(Machine, name, timeout=7200)
                await h.steady("one", 3, 1, "v1.30.0")
                await h.plane.settle(quiet=150)
            assert len(h.infra.created) == 7
            assert await authorities(h) == known
            fresh = [m for m in await h.machines() if "cluster.x-k8s.io/control-plane" in m.metadata.labels]
            assert all(expiry(m) - h.clock.now() > 360 * DAY for m in fresh)

    run()


def test_a_machine_that_boots_for_an_hour_still_finds_its_token_good() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 0)
            await h.steady("one", 1, 0, "v1.30.0")
            h.fleet.pace = REALISTIC.scaled(250)  # nearly two hours until a machine is a node
            await h.plane.have(*manifest.workers("one", 1, "v1.30.0"))
            began = h.clock.monotonic()
            await h.steady("one", 1, 1, "v1.30.0", timeout=6 * 3600)
            assert h.clock.monotonic() - began > 3600
            assert len(h.infra.created) == 2

    run()


def test_a_lost_authority_is_reported_and_never_recreated() -> None:
    @virtual
    async def run() -> None:
        async with harness() as h:
            await h.create("one", 1, 1)
            await h.steady("one", 1, 1, "v1.30.0")
            kept = await h.client.get(SECRET, Key("default", "one-ca"))
            await h.client.delete(SECRET, Key("default", "one-ca"))
            await h.patch(KubeadmControlPlane, "one-cp", {"spec": {"replicas": 3}})
            await h.until(
                KubeadmControlPlane,
                "one-cp",
                lambda k: any(
                    c["type"] == "CertificatesAvailable" and c["status"] == "False" and "one-ca" in c["message"]
                    for c in k.status.conditions
                ),
            )
            await h.plane.settle(quiet=150)
            assert len(h.infra.created) == 2
            kept["metadata"] = {key: kept.metadata[key] for key in ("name", "namespace", "labels")}
            await h.client.create(kept, kind=SECRET)
            await h.steady("one", 3, 1, "v1.30.0")

    run()
