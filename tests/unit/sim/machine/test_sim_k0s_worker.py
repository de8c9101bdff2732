from __future__ import annotations

import asyncio
import gzip
from typing import Any

import pytest

from homeport.client.protocol import Key
from homeport.machinery import condition
from homeport.runtime.testing import virtual
from homeport.sim.machine.k0s import release
from homeport.sim.machine.workload.kind import DAEMON_SET, POD
from unit.sim.machine.k0s_kit import (
    K0S_IMAGE,
    controller_data,
    controller_token,
    download,
    k0s_token,
    worker_data,
)
from unit.sim.machine.sim_kit import VIP, Sim, b64, simulation


async def cluster_up(sim: Sim, *flags: str) -> str:
    """A controller; gives a token for workers."""
    console = await sim.boot("cp-0", controller_data(sim.secrets, *flags), image=K0S_IMAGE)
    assert sim.fleet.clusters(), console
    return await k0s_token(sim)


@virtual
async def test_a_worker_joins_with_its_labels_taints_and_version() -> None:
    async with simulation() as sim:
        token = await cluster_up(sim, "--enable-worker")
        data = worker_data(token, "md-0", "--taints dedicated=gpu:NoSchedule,slow:PreferNoSchedule", "--labels pool=a")
        console = await sim.boot("md-0", data, image=K0S_IMAGE)
        node = await sim.node("md-0")
        assert node is not None, console
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.31.5+k0s"
        labels = node["metadata"]["labels"]
        assert (labels["k0smotron.io/machine-name"], labels["pool"]) == ("md-0", "a")
        assert [(each["key"], each.get("value"), each["effect"]) for each in node["spec"]["taints"]] == [
            ("dedicated", "gpu", "NoSchedule"),
            ("slow", None, "PreferNoSchedule"),
            ("node.cloudprovider.kubernetes.io/uninitialized", "true", "NoSchedule"),
        ]
        router = await sim.cluster.client().get(DAEMON_SET, Key("kube-system", "kube-router"))
        assert router["status"]["numberReady"] == 2


@pytest.mark.parametrize(
    ("flags", "taints"),
    [
        (("--enable-worker",), ["node-role.kubernetes.io/control-plane"]),
        (("--enable-worker", "--no-taints"), []),
        (("--single",), []),
        (("--enable-worker", "--taints x=y:NoExecute"), ["x", "node-role.kubernetes.io/control-plane"]),
    ],
)
def test_a_controller_with_a_worker_is_tainted_unless_it_is_told_not_to_be(flags: Any, taints: list[str]) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            console = await sim.boot("cp-0", controller_data(sim.secrets, *flags, config={}), image=K0S_IMAGE)
            node = await sim.node("cp-0")
            assert node is not None, console
            assert [each["key"] for each in node["spec"].get("taints") or ()] == taints
            assert node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] == "true"
            assert node["metadata"]["labels"]["node.k0sproject.io/role"] == "control-plane"

    run()


@virtual
async def test_a_kubelet_refuses_a_label_of_a_role_and_the_service_goes_on_trying() -> None:
    async with simulation() as sim:
        token = await cluster_up(sim)
        console = await sim.boot(
            "md-0", worker_data(token, "md-0", "--labels node-role.kubernetes.io/worker="), image=K0S_IMAGE
        )
        assert await sim.node("md-0") is None
        assert "unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: " in console
        assert "[node-role.kubernetes.io/worker]" in console
        await asyncio.sleep(300)
        assert "restart counter is at 2" in sim.console("md-0")


@virtual
async def test_a_taint_that_is_none_ends_the_worker() -> None:
    async with simulation() as sim:
        token = await cluster_up(sim)
        console = await sim.boot("md-0", worker_data(token, "md-0", "--taints nonsense"), image=K0S_IMAGE)
        assert "can't parse taints for profile config map: invalid taint spec: nonsense" in console
        assert "k0sworker.service: Failed with result 'exit-code'" in console


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("nonsense", "failed to decode join token"),
        (b64(gzip.compress(b"kind: Config\n", mtime=0)), "failed to load kubeconfig from join token"),
        ("", 'token file "/etc/k0s.token" is empty'),
    ],
)
def test_a_worker_with_a_bad_token_file_says_so(token: str, reason: str) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            await cluster_up(sim)
            assert reason in await sim.boot("md-0", worker_data(token), image=K0S_IMAGE)
            assert await sim.node("md-0") is None

    run()


@virtual
async def test_a_worker_is_refused_with_a_token_for_controllers() -> None:
    async with simulation() as sim:
        await cluster_up(sim)
        console = await sim.boot("md-0", worker_data(await controller_token(sim)), image=K0S_IMAGE)
        assert "wrong token type controller-bootstrap, expected type: kubelet-bootstrap" in console


@virtual
async def test_a_worker_joins_as_soon_as_its_expired_token_is_renewed() -> None:
    async with simulation() as sim:
        await cluster_up(sim)
        token = await k0s_token(sim, ttl="1m")
        await asyncio.sleep(120)
        console = await sim.boot("md-0", worker_data(token), image=K0S_IMAGE)
        assert "cannot create certificate signing request: Unauthorized" in console
        assert await sim.node("md-0") is None
        await k0s_token(sim)
        await asyncio.sleep(200)
        assert await sim.node("md-0") is not None


@virtual
async def test_a_worker_waits_for_its_endpoint_even_over_a_restart() -> None:
    async with simulation() as sim:
        token = await cluster_up(sim)
        sim.power_off("cp-0")
        console = await sim.boot("md-0", worker_data(token), image=K0S_IMAGE)
        assert f"dial tcp {VIP}:6443: no route to host" in console
        assert "k0sworker: Error: failed to bootstrap kubelet client configuration" in console
        sim.power_off("md-0")
        await sim.boot("cp-0", image=K0S_IMAGE, again=True)
        await sim.boot("md-0", image=K0S_IMAGE, again=True)
        assert await sim.node("md-0") is not None, sim.console("md-0")


@virtual
async def test_a_worker_takes_over_the_node_of_its_predecessor() -> None:
    async with simulation() as sim:
        token = await cluster_up(sim)
        await sim.boot("md-0", worker_data(token), image=K0S_IMAGE)
        before = await sim.node("md-0")
        sim.remove("md-0")
        console = await sim.boot("md-0", worker_data(token), image=K0S_IMAGE)
        after = await sim.node("md-0")
        assert after["metadata"]["uid"] == before["metadata"]["uid"]
        assert after["status"]["nodeInfo"]["systemUUID"] != before["status"]["nodeInfo"]["systemUUID"], console


@virtual
async def test_a_worker_newer_than_its_controllers_finds_no_configuration() -> None:
    async with simulation() as sim:
        token = await cluster_up(sim)
        console = await sim.boot("md-0", worker_data(token, get=download("v1.32.2+k0s.0")), image=K0S_IMAGE)
        assert 'configmaps "worker-config-default-1.32" not found' in console
        console = await sim.boot("md-1", worker_data(token, "md-1", "--profile gpu"), image=K0S_IMAGE)
        assert 'configmaps "worker-config-gpu-1.31" not found' in console


@pytest.mark.parametrize(
    ("lacks", "error"),
    [
        (("dns",), "curl: (6) Could not resolve host: get.k0s.sh"),
        (("internet",), "curl: (28) Failed to connect to get.k0s.sh port 443"),
    ],
)
def test_k0s_is_not_downloaded_without_name_resolution_or_internet(lacks: tuple[str, ...], error: str) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            token = await cluster_up(sim)
            console = await sim.boot("md-0", worker_data(token), image="ubuntu-22.04", lacks=lacks)
            assert error in console
            assert "sh: 1: /usr/local/bin/k0s: not found" in console
            assert await sim.node("md-0") is None

    run()


@virtual
async def test_a_version_that_does_not_exist_is_not_found() -> None:
    async with simulation() as sim:
        token = await cluster_up(sim)
        for name, version in (("a", "v1.31.99+k0s.0"), ("b", "v1.29.2"), ("c", "v1.31.5-k0s.0")):
            console = await sim.boot(name, worker_data(token, name, get=download(version)), image="ubuntu-22.04")
            assert "curl: (22) The requested URL returned error: 404" in console
            assert await sim.node(name) is None


@pytest.mark.parametrize(
    ("version", "found"),
    [
        ("v1.29.2+k0s.0", True),
        ("v1.29.1+k0s.1", True),
        ("v1.29.2+k0s.1", False),
        ("v1.29.99+k0s.0", False),
        ("v1.99.0+k0s.0", False),
        ("1.29.2+k0s.0", False),
    ],
)
def test_releases_are_known(version: str, found: bool) -> None:
    assert release.exists(version) is found


@pytest.mark.parametrize(
    ("url", "version"),
    [
        ("https://mirror.example.com/k0s-v1.30.4%2Bk0s.0-amd64", "v1.30.4+k0s"),
        ("http://10.0.0.5/k0s/v1.30.1+k0s.0/k0s", "v1.30.1+k0s"),
    ],
)
def test_a_binary_from_a_mirror_decides_the_version_of_the_node(url: str, version: str) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            token = await cluster_up(sim)
            get = f"curl -sSfL --retry 5 {url} -o /usr/local/bin/k0s"
            console = await sim.boot("md-0", worker_data(token, get=get), image="ubuntu-22.04")
            assert "sh: 1: /usr/local/bin/k0s: Permission denied" in console
            get += " && chmod +x /usr/local/bin/k0s"
            console = await sim.boot("md-1", worker_data(token, "md-1", get=get), image="ubuntu-22.04")
            node = await sim.node("md-1")
            assert node is not None, console
            assert node["status"]["nodeInfo"]["kubeletVersion"] == version

    run()


@virtual
async def test_an_image_without_curl_needs_its_package() -> None:
    async with simulation() as sim:
        token = await cluster_up(sim)
        image: dict[str, Any] = {"image": "ubuntu-22.04", "image_without": ("curl",)}
        console = await sim.boot("md-0", worker_data(token), **image)
        assert "sh: 1: curl: not found" in console
        assert await sim.node("md-0") is None
        data = worker_data(token, "md-1", get="apt-get install -y curl\n" + download())
        console = await sim.boot("md-1", data, **image)
        assert await sim.node("md-1") is not None, console
        console = await sim.boot("md-2", data, **image, lacks=("internet",))
        assert "E: Failed to fetch http://archive.ubuntu.com" in console


@virtual
async def test_a_node_without_a_registry_is_not_ready_and_its_pods_say_why() -> None:
    async with simulation() as sim:
        token = await cluster_up(sim)
        console = await sim.boot("md-0", worker_data(token), image=K0S_IMAGE, lacks=("registry",))
        node = await sim.node("md-0")
        assert node is not None, console
        assert not condition.is_true(node["status"]["conditions"], "Ready")
        pods = (await sim.cluster.client().list(POD)).items
        router = next(pod for pod in pods if pod["metadata"]["name"].startswith("kube-router"))
        waiting = router["status"]["containerStatuses"][0]["state"]["waiting"]
        assert waiting["reason"] == "ImagePullBackOff"
        assert "dial tcp quay.io: i/o timeout" in waiting["message"]
        sim.power_off("md-0")
        await sim.boot("md-0", again=True, image=K0S_IMAGE)
        await asyncio.sleep(120)
        node = await sim.node("md-0")
        assert condition.is_true(node["status"]["conditions"], "Ready")


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("k0s install worker --enable-worker", "Error: unknown flag: --enable-worker"),
        ("k0s install boss", 'Error: unknown command "boss" for "k0s install"'),
        ("k0s install controller --config /nowhere", "failed to load node config: open /nowhere: no such file"),
        ("k0s start", "Error: the k0s service is not installed"),
        ("systemctl start k0sworker", "Unit k0sworker not found."),
    ],
)
def test_k0s_refuses_commands_that_it_does_not_know(command: str, error: str) -> None:
    @virtual
    async def run() -> None:
        async with simulation() as sim:
            data = f"#cloud-config\nruncmd: [{command}]\n".encode()
            assert error in await sim.boot("a", data, image="ubuntu-22.04-k0s-v1.31.5")

    run()


@virtual
async def test_a_proxy_or_an_artifact_brings_k0s_where_the_internet_does_not() -> None:
    async with simulation() as sim:
        token = await cluster_up(sim)
        proxy = f"export HTTPS_PROXY=http://10.0.0.3:3128\n{download()}"
        console = await sim.boot("md-0", worker_data(token, get=proxy), image=K0S_IMAGE, lacks=("internet", "dns"))
        assert await sim.node("md-0") is not None, console
        proxy = proxy.replace("10.0.0.3", "proxy.example.com")
        console = await sim.boot("md-1", worker_data(token, "md-1", get=proxy), image=K0S_IMAGE, lacks=("dns",))
        assert "curl: (5) Could not resolve proxy: proxy.example.com" in console
        pull = "oras pull --output /usr/local/bin 10.0.0.4:5000/k0s:v1.31.2-k0s.0 && chmod +x /usr/local/bin/k0s"
        console = await sim.boot("md-2", worker_data(token, "md-2", get=pull), image=K0S_IMAGE)
        assert "oras: not found" in console
        more: dict[str, Any] = {"image_programs": ("oras",), "lacks": ("internet",)}
        console = await sim.boot("md-3", worker_data(token, "md-3", get=pull), image=K0S_IMAGE, **more)
        node = await sim.node("md-3")
        assert node is not None, console
        assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.31.2+k0s"


@virtual
async def test_a_bundle_of_images_replaces_the_registry() -> None:
    async with simulation() as sim:
        token = await cluster_up(sim)
        bundle = "mkdir -p /var/lib/k0s/images && echo images > /var/lib/k0s/images/bundle.tar\n"
        data = worker_data(token, get=bundle + download())
        await sim.boot("md-0", data, image=K0S_IMAGE, lacks=("registry",))
        node = await sim.node("md-0")
        assert condition.is_true(node["status"]["conditions"], "Ready")
