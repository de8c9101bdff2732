from __future__ import annotations

import asyncio
import base64
import gzip
from typing import Any

import pytest
import yaml

from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import virtual
from homeport.sim.machine.image import describe_image
from homeport.sim.machine.workload.k0smember import CONTROL_NODE, ETCD_MEMBER
from homeport.sim.machine.workload.kind import DAEMON_SET
from homeport.sim.machine.workload.object import bootstrap_token
from unit.sim.machine.sim_kit import VIP, Secrets, Sim, b64, cloud_config, simulation

K0S_IMAGE = "ubuntu-22.04-k0s"
GET = "curl -sSfL --retry 5 https://get.k0s.sh | K0S_INSTALL_PATH=/usr/local/bin K0S_VERSION=v1.31.5+k0s.0 sh"
START = "(command -v systemctl > /dev/null 2>&1 && systemctl start k0scontroller) || /usr/local/bin/k0s start"


def controller_data(secrets: Secrets, *flags: str, config: dict[str, Any] | None = None) -> bytes:
    files = [{**file, "path": file["path"].replace("/etc/kubernetes", "/var/lib/k0s")} for file in secrets.files()]
    balancing = {
        "enabled": True,
        "type": "Keepalived",
        "keepalived": {"vrrpInstances": [{"virtualIPs": [f"{VIP}/24"]}]},
    }
    spec = (
        {"api": {"externalAddress": VIP}, "network": {"controlPlaneLoadBalancing": balancing}}
        if config is None
        else config
    )
    files.append({"path": "/etc/k0s.yaml", "content": yaml.safe_dump({"kind": "ClusterConfig", "spec": spec})})
    return cloud_config(
        files,
        GET,
        f"/usr/local/bin/k0s install controller --force --enable-dynamic-config --config /etc/k0s.yaml {' '.join(flags)}",
        START,
    )


async def k0s_token(sim: Sim, **more: Any) -> str:
    cluster = sim.cluster
    secret, kind = bootstrap_token(
        {"token": "k0stok.0123456789abcdef", "groups": ["system:bootstrappers:worker"], **more}, sim.clock.now()
    )
    await cluster.put([(secret, kind)])
    config = yaml.safe_load(cluster.pki.cluster_info(cluster.facts.server))
    config["clusters"][0]["name"] = "k0s"
    config |= {
        "users": [{"name": "u", "user": {"token": "k0stok.0123456789abcdef"}}],
        "contexts": [{"name": "k0s", "context": {"cluster": "k0s", "user": "u"}}],
        "current-context": "k0s",
    }
    return base64.b64encode(gzip.compress(yaml.safe_dump(config).encode())).decode()


def worker_data(token: str) -> bytes:
    install = '/usr/local/bin/k0s install worker --token-file /etc/k0s.token --labels=k0smotron.io/machine-name=md-0 --kubelet-extra-args="--hostname-override=md-0 --cloud-provider=external"'
    return cloud_config(
        [{"path": "/etc/k0s.token", "permissions": "0600", "content": token}], GET, install, "systemctl start k0sworker"
    )


@virtual
async def test_a_k0s_controller_and_a_worker_make_a_cluster() -> None:
    async with simulation() as sim:
        console = await sim.boot("cp-0", controller_data(sim.secrets, "--enable-worker"), image=K0S_IMAGE)
        assert sim.fleet.clusters(), console
        assert sim.cluster.initialized, console
        console = await sim.boot("md-0", worker_data(await k0s_token(sim)), image=K0S_IMAGE)
        node = await sim.node("md-0")
        assert node is not None, console
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.31.5+k0s.0"
        assert node["metadata"]["labels"]["k0smotron.io/machine-name"] == "md-0"
        assert node["spec"]["taints"][0]["key"] == "node.cloudprovider.kubernetes.io/uninitialized"
        router = await sim.cluster.client().get(DAEMON_SET, Key("kube-system", "kube-router"))
        assert router["status"]["numberReady"] == 2


@virtual
async def test_a_k0s_controller_is_no_node_unless_it_is_asked_to_be() -> None:
    async with simulation() as sim:
        await sim.boot("cp-0", controller_data(sim.secrets), image=K0S_IMAGE)
        assert sim.cluster.initialized
        assert await sim.node("cp-0") is None


@virtual
async def test_a_k0s_endpoint_that_nobody_holds_is_waited_for_in_vain() -> None:
    async with simulation() as sim:
        console = await sim.boot(
            "cp-0", controller_data(sim.secrets, config={"api": {"externalAddress": "10.1.1.201"}}), image=K0S_IMAGE
        )
        assert "no machine has the address 10.1.1.201" in console
        assert not sim.cluster.initialized


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("nonsense", "failed to decode token"),
        (b64(gzip.compress(b"kind: Config\n", mtime=0)), "failed to load kubeconfig"),
    ],
)
def test_a_k0s_worker_with_a_bad_token_file_says_so(token: str, reason: str) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            await sim.boot("cp-0", controller_data(sim.secrets), image=K0S_IMAGE)
            assert reason in await sim.boot("md-0", worker_data(token), image=K0S_IMAGE)
            assert await sim.node("md-0") is None

    run()


@virtual
async def test_a_second_k0s_controller_needs_a_token_for_controllers() -> None:
    async with simulation() as sim:
        await sim.boot("cp-0", controller_data(sim.secrets), image=K0S_IMAGE)
        data = controller_data(sim.secrets, "--token-file /etc/k0s.token")
        for usages, joins in ((["authentication"], False), (["authentication", "controller-join"], True)):
            token = await k0s_token(sim, usages=usages)
            if joins:
                secret, kind = bootstrap_token({"token": "k0stok.0123456789abcdef"}, sim.clock.now())
                secret["data"]["usage-controller-join"] = b64(b"true")
                await sim.cluster.put([(secret, kind)])
            name = f"cp-{1 + joins}"
            given = data.replace(b"runcmd:", b"bootcmd:\n- mkdir -p /etc\nruncmd:").replace(
                b"write_files:", f"write_files:\n- path: /etc/k0s.token\n  content: {token}".encode()
            )
            console = await sim.boot(name, given, image=K0S_IMAGE)
            assert (name in sim.cluster.etcd.members) is joins, console
        await the_second_is_told_to_leave(sim)


async def the_second_is_told_to_leave(sim: Sim) -> None:
    client = sim.cluster.client()
    nodes = (await client.list(CONTROL_NODE)).items
    assert {node["metadata"]["name"]: node["status"]["k0sVersion"] for node in nodes} == {
        "cp-0": "v1.31.5+k0s.0",
        "cp-2": "v1.31.5+k0s.0",
    }
    member = await client.get(ETCD_MEMBER, Key("", "cp-2"))
    assert member["status"]["memberID"] == f"{sim.cluster.etcd.members['cp-2'].id:x}"
    assert member["status"]["conditions"][0]["status"] == "True"
    await client.patch(ETCD_MEMBER, Key("", "cp-2"), MergePatch({"spec": {"leave": True}}))
    await asyncio.sleep(1)
    assert set(sim.cluster.etcd.members) == {"cp-0"}
    member = await client.get(ETCD_MEMBER, Key("", "cp-2"))
    assert member["status"]["conditions"][0]["status"] == "False"
    assert member["status"]["reconcileStatus"] == "Success"
    await client.patch(ETCD_MEMBER, Key("", "cp-0"), MergePatch({"spec": {"leave": True}}))
    await asyncio.sleep(1)
    assert not sim.cluster.serving()  # the last member takes the data with it


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
    machine: dict[str, Any] = {
        "type": kind,
        "token": "mmmmmm.0123456789abcdef",
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
        assert "invalid machine type" in await sim.boot(
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
        ("flatcar-stable-4152-kube-v1.30.2", "ignition", "1.30.2", True),
        ("Windows2022.iso", "none", "", False),
    ],
)
def test_an_image_is_known_by_its_name(name: str, reader: str, kubernetes: str, bootable: bool) -> None:
    found = describe_image(name)
    assert (found.reader, found.kubernetes, found.bootable) == (reader, kubernetes, bootable)
    assert bool(found.k0s) is ("k0s" in name)
