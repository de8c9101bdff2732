from __future__ import annotations

import asyncio

import pytest
import yaml

from homeport.client.protocol import Key
from homeport.runtime.testing import virtual
from homeport.sim.machine.workload.kind import CONFIG_MAP, DAEMON_SET, DEPLOYMENT, POD
from unit.sim.machine.sim_kit import Secrets, init_data, kube_vip, make_pair, simulation


@virtual
async def test_a_first_control_plane_brings_up_a_cluster() -> None:
    async with simulation() as sim:
        cluster = await sim.cluster_up(args={"cloud-provider": "external", "node-labels": "team=a"})
        node = await sim.node("cp-0")
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.30.2"
        assert {"type": "InternalIP", "address": "10.0.0.11"} in node["status"]["addresses"]
        assert {taint["key"] for taint in node["spec"]["taints"]} == {
            "node-role.kubernetes.io/control-plane",
            "node.cloudprovider.kubernetes.io/uninitialized",
        }
        assert node["metadata"]["labels"]["team"] == "a"
        assert sim.network.holder("10.0.0.100").name == "cp-0"  # type: ignore[union-attr]
        client = cluster.client()
        config = await client.get(CONFIG_MAP, Key("kube-system", "kubeadm-config"))
        shown = yaml.safe_load(config["data"]["ClusterConfiguration"])
        assert shown["controlPlaneEndpoint"] == "10.0.0.100:6443"
        assert shown["networking"]["podSubnet"] == "172.20.0.0/16"
        info = await client.get(CONFIG_MAP, Key("kube-public", "cluster-info"))
        assert "https://10.0.0.100:6443" in info["data"]["kubeconfig"]
        for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-vip"):
            pod = await client.get(POD, Key("kube-system", f"{name}-cp-0"))
            assert pod["status"]["phase"] == "Running", name
            assert pod["metadata"]["annotations"]["kubernetes.io/config.source"] == "file"
        daemons = await client.get(DAEMON_SET, Key("kube-system", "kube-proxy"))
        assert daemons["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.k8s.io/kube-proxy:v1.30.2"
        assert daemons["status"]["numberReady"] == 1
        assert (await client.get(DEPLOYMENT, Key("kube-system", "coredns")))["spec"]["replicas"] == 2
        machine = sim.fleet.find("cp-0")
        assert machine is not None
        assert machine.disk.text("/run/cluster-api/bootstrap-success.complete") == "success\n"


def without(secrets: Secrets, *names: str) -> Secrets:
    """Files left out."""
    original = secrets.files

    class Fewer(Secrets):
        def files(self) -> list[dict[str, object]]:
            return [file for file in original() if not file["path"].endswith(names)]

    return Fewer(secrets.ca, secrets.etcd, secrets.proxy, secrets.sa)


@virtual
async def test_certificates_that_are_missing_are_made() -> None:
    async with simulation() as sim:
        data = init_data(without(sim.secrets, ".crt", ".key"))
        assert "initialized successfully" in await sim.boot("cp-0", data)


@virtual
async def test_an_authority_with_another_key_does_not_boot() -> None:
    async with simulation() as sim:
        sim.secrets.ca.key = make_pair(sim.clock).key
        console = await sim.boot("cp-0", init_data(sim.secrets))
        assert "the private key for ca doesn't match its certificate" in console
        assert sim.fleet.clusters() == []
        machine = sim.fleet.find("cp-0")
        assert machine is not None
        assert machine.running
        assert machine.disk.text("/run/cluster-api/bootstrap-success.complete") is None


@virtual
async def test_an_expired_authority_does_not_boot() -> None:
    async with simulation() as sim:
        sim.secrets.etcd = make_pair(sim.clock, days=1)
        await asyncio.sleep(2 * 24 * 3600)
        assert "has expired" in await sim.boot("cp-0", init_data(sim.secrets))


@virtual
async def test_an_authority_without_its_key_does_not_boot() -> None:
    async with simulation() as sim:
        console = await sim.boot("cp-0", init_data(without(sim.secrets, "front-proxy-ca.key")))
        assert "open /etc/kubernetes/pki/front-proxy-ca.key: no such file or directory" in console


@virtual
async def test_an_endpoint_that_nobody_holds_times_out() -> None:
    async with simulation() as sim:
        console = await sim.boot("cp-0", init_data(sim.secrets, vip=kube_vip("10.0.0.99")))
        assert "timed out waiting for the condition" in console
        assert "no machine has the address 10.0.0.100" in console
        assert await sim.node("cp-0") is None


@virtual
async def test_kube_vip_with_admin_conf_deadlocks_from_1_29_on_and_not_before() -> None:
    for version, works in (("1.28.4", True), ("1.30.2", False)):
        async with simulation() as sim:
            data = init_data(sim.secrets, vip=kube_vip(conf="admin"), version=f"v{version}")
            console = await sim.boot("cp-0", data, image=f"ubuntu-22.04-kube-v{version}")
            assert ("initialized successfully" in console) is works, version


@virtual
async def test_the_usual_command_that_names_super_admin_conf_helps() -> None:
    fix = "if [ -f /run/kubeadm/kubeadm.yaml ]; then sed -i 's#path: /etc/kubernetes/admin.conf#path: /etc/kubernetes/super-admin.conf#' /etc/kubernetes/manifests/kube-vip.yaml; fi"
    async with simulation() as sim:
        console = await sim.boot("cp-0", init_data(sim.secrets, vip=kube_vip(conf="admin"), pre=(fix,)))
        assert "initialized successfully" in console


@pytest.mark.parametrize(
    ("image", "version", "api", "reason"),
    [
        ("ubuntu-22.04-kube-v1.30.2", "v1.28.0", "v1beta3", "control plane version >= 1.29.0"),
        (
            "ubuntu-22.04-kube-v1.30.2",
            "v1.29.0",
            "v1beta3",
            "the kubelet version is higher than the control plane version",
        ),
        ("ubuntu-22.04-kube-v1.30.2", "v1.30.2", "v1beta4", 'no kind "ClusterConfiguration" is registered for version'),
        ("ubuntu-22.04-kube-v1.30.2", "v1.30.2", "v1beta2", "old API spec"),
        ("ubuntu-22.04-kube-v1.30.2", "latest", "v1beta3", "doesn't match patterns"),
        ("rocky-9-cloud", "v1.30.2", "v1beta3", "kubeadm: not found"),
        ("talos-1.9", "v1.30.2", "v1beta3", "maintenance mode"),
        ("flatcar-stable", "v1.30.2", "v1beta3", "does not read"),
    ],
)
def test_an_image_that_does_not_fit_does_not_boot(image: str, version: str, api: str, reason: str) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            console = await sim.boot("cp-0", init_data(sim.secrets, version=version, api=api), image=image)
            assert reason in console, console
            assert sim.fleet.clusters() == []

    run()


@virtual
async def test_v1beta4_is_read_from_1_31_on() -> None:
    async with simulation() as sim:
        console = await sim.boot(
            "cp-0", init_data(sim.secrets, version="v1.31.1", api="v1beta4"), image="ubuntu-24.04-kube-v1.31.1"
        )
        assert "initialized successfully" in console


@virtual
async def test_an_iso_does_not_boot_as_a_disk_but_the_machine_stays_up() -> None:
    async with simulation() as sim:
        console = await sim.boot("cp-0", init_data(sim.secrets), image="ubuntu-22.04.iso", image_type="ISO_IMAGE")
        assert "No bootable device." in console
        machine = sim.fleet.find("cp-0")
        assert machine is not None
        assert machine.state == "booting"


@virtual
async def test_a_small_machine_fails_the_preflight_checks() -> None:
    async with simulation() as sim:
        console = await sim.boot("cp-0", init_data(sim.secrets), vcpus=1, memory_gib=1)
        assert "[ERROR NumCPU]: the number of available CPUs 1 is less than the required 2" in console
        assert "[ERROR Mem]" in console


@virtual
async def test_labels_that_a_kubelet_may_not_set_keep_it_from_starting() -> None:
    async with simulation() as sim:
        console = await sim.boot(
            "cp-0", init_data(sim.secrets, args={"node-labels": "node-role.kubernetes.io/worker="})
        )
        assert "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels" in console
        assert "The kubelet is not running" in console


@virtual
async def test_a_template_variable_that_does_not_exist_is_no_node_name() -> None:
    async with simulation() as sim:
        data = init_data(sim.secrets).replace(b"ds.meta_data.hostname", b"ds.meta_data.local_name")
        assert "nodeRegistration.name: Invalid value" in await sim.boot("cp-0", data)


@virtual
async def test_packages_are_installed_from_the_repository_that_files_name() -> None:
    async with simulation() as sim:
        source = "echo 'deb [signed-by=/k.gpg] https://pkgs.k8s.io/core:/stable:/v1.30/deb/ /' > /etc/apt/sources.list.d/kubernetes.list"
        data = init_data(
            sim.secrets, version="v1.30.0", pre=(source, "apt-get update && apt-get install -y kubelet kubeadm kubectl")
        )
        assert "initialized successfully" in await sim.boot("cp-0", data, image="ubuntu-22.04-server")


@virtual
async def test_kubeadm_is_not_found_before_its_package_is_installed() -> None:
    async with simulation() as sim:
        install = "command -v kubeadm || dnf install -y kubelet-1.30.0 kubeadm-1.30.0"
        data = init_data(sim.secrets, version="v1.30.0", pre=(install,))
        assert "initialized successfully" in await sim.boot("cp-0", data, image="rocky-9-cloud")


@virtual
async def test_a_configuration_that_is_not_there_is_named() -> None:
    async with simulation() as sim:
        console = await sim.boot("cp-0", b"#cloud-config\nruncmd:\n- kubeadm init --config /run/kubeadm/kubeadm.yaml\n")
        assert "open /run/kubeadm/kubeadm.yaml: no such file or directory" in console


@virtual
async def test_a_disk_that_was_made_from_no_image_does_not_boot() -> None:
    async with simulation() as sim:
        console = await sim.boot("cp-0", init_data(sim.secrets), image="")
        assert "the disk has no system on it" in console


@virtual
async def test_the_console_sink_gets_every_line() -> None:
    lines: list[tuple[str, str]] = []
    async with simulation(consoles=lambda ext_id, line: lines.append((ext_id, line))) as sim:
        console = await sim.boot("cp-0", b"#cloud-config\nruncmd: [echo hello]\n")
        assert "".join(f"{line}\n" for _, line in lines) == console
        assert {ext_id for ext_id, _ in lines} == {sim.id("cp-0")}
        assert "hello" in console
