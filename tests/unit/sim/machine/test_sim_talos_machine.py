from __future__ import annotations

import asyncio
import datetime
from functools import cache
from typing import Any

import pytest
import yaml

from homeport.machinery.talos.certificate import KeyPair, make_authority
from homeport.runtime.testing import virtual
from homeport.sim.machine.image import describe_image
from unit.sim.machine.sim_kit import VIP, Secrets, b64, simulation


@cache
def os_authority() -> KeyPair:
    """Of the Talos API."""
    return make_authority("talos", datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), ed25519_key=True)


def talos_config(secrets: Secrets, kind: str, **more: Any) -> bytes:
    control_plane = kind != "worker"
    cluster: dict[str, Any] = {
        "clusterName": "mgmt",
        "controlPlane": {"endpoint": f"https://{VIP}:6443"},
        "token": "tttttt.0123456789abcdef",
        "ca": {"crt": b64(secrets.ca.certificate), "key": b64(secrets.ca.key) if control_plane else ""},
    }
    if control_plane:
        cluster |= {
            "serviceAccount": {"key": b64(secrets.sa)},
            "etcd": {"ca": {"crt": b64(secrets.etcd.certificate), "key": b64(secrets.etcd.key)}},
        }
    own = os_authority()
    machine: dict[str, Any] = {
        "type": kind,
        "token": "mmmmmm.0123456789abcdef",
        "ca": own.document() if control_plane else {"crt": b64(own.certificate)},
        "kubelet": {"image": "ghcr.io/siderolabs/kubelet:v1.32.0"},
    }
    if control_plane:
        machine["network"] = {"interfaces": [{"interface": "ens3", "vip": {"ip": VIP}}]}
    return yaml.safe_dump({"version": "v1alpha1", "machine": {**machine, **more}, "cluster": cluster}).encode()


@virtual
async def test_talos_control_planes_wait_for_the_bootstrap_call_and_then_join() -> None:
    async with simulation() as sim:
        for name in ("cp-0", "cp-1", "cp-2"):
            sim.power_on(name, talos_config(sim.secrets, "controlplane"), image="talos-1.9")
        sim.power_on("w-0", talos_config(sim.secrets, "worker"), image="talos-1.9")
        await asyncio.sleep(30)
        assert "talosctl bootstrap" in sim.console("cp-0")
        assert sim.fleet.clusters() == []
        sim.fleet.bootstrap(sim.id("cp-1"))
        await sim.fleet.settled()
        assert set(sim.cluster.etcd.members) == {"cp-0", "cp-1", "cp-2"}
        node = await sim.node("w-0")
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.32.0"
        assert len(sim.cluster.serving()) == 3


@virtual
async def test_a_talos_image_stays_in_maintenance_without_a_usable_configuration() -> None:
    async with simulation() as sim:
        assert "maintenance mode" in await sim.boot("a", b"", image="talos-1.9")
        assert "maintenance mode" in await sim.boot("b", b"#cloud-config\nruncmd: [kubeadm init]\n", image="talos-1.9")
        assert "unknown machine type" in await sim.boot(
            "c", talos_config(sim.secrets, "worker").replace(b"type: worker", b"type: boss"), image="talos-1.9"
        )


@virtual
async def test_a_talos_configuration_on_another_image_does_nothing() -> None:
    async with simulation() as sim:
        assert "the user data is talos data, which ubuntu-22.04" in await sim.boot(
            "a", talos_config(sim.secrets, "worker"), image="ubuntu-22.04"
        )


@virtual
async def test_ignition_writes_files_and_runs_units_on_images_that_read_it() -> None:
    async with simulation() as sim:
        document = {
            "ignition": {"version": "3.4.0"},
            "storage": {
                "files": [
                    {
                        "path": "/etc/kubeadm.sh",
                        "mode": 448,
                        "contents": {"source": "data:;base64," + b64(b"#!/bin/sh\necho hello > /a\n")},
                    }
                ]
            },
            "systemd": {
                "units": [
                    {
                        "name": "kubeadm.service",
                        "enabled": True,
                        "contents": "[Service]\nExecStart=/bin/sh /etc/kubeadm.sh\n",
                    }
                ]
            },
        }
        import orjson

        await sim.boot("a", orjson.dumps(document), image="flatcar-stable-kube-v1.30.2")
        machine = sim.fleet.find("a")
        assert machine is not None
        assert machine.disk.text("/a") == "hello\n"
        entry = machine.disk.entry("/etc/kubeadm.sh")
        assert entry is not None
        assert entry.mode == 0o700


@pytest.mark.parametrize(
    ("name", "reader", "kubernetes", "bootable"),
    [
        ("ubuntu-22.04-kube-v1.28.0", "cloud-init", "1.28.0", True),
        ("ubuntu-2204-kube-v1.29.2.qcow2", "cloud-init", "1.29.2", True),
        ("rocky-9-cloud", "cloud-init", "", True),
        ("talos-1.9", "talos", "1.32.0", True),
        ("ubuntu-22.04-k0s", "cloud-init", "", True),
        ("ubuntu-22.04-k0s-v1.29.2", "cloud-init", "", True),
        ("flatcar-stable-4152-kube-v1.30.2", "ignition", "1.30.2", True),
        ("Windows2022.iso", "none", "", False),
    ],
)
def test_an_image_is_known_by_its_name(name: str, reader: str, kubernetes: str, bootable: bool) -> None:
    found = describe_image(name)
    assert (found.reader, found.kubernetes, found.bootable) == (reader, kubernetes, bootable)
    assert found.k0s == ("1.29.2" if "k0s-v1.29.2" in name else "")
