"""`homeport up --sim` as its user meets it: Prism Central, machines and workload clusters beside the plane."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml

from e2e.cluster import Cluster, stop
from homeport.client.dial import DialOptions
from homeport.runtime.clock import SystemClock
from homeport.sim.machine.workload.trust.authority import ClusterPki, load_authority, load_key
from unit.sim.machine.sim_kit import VIP, Secrets, init_data

pytestmark = [pytest.mark.timeout(120)]

ADMIN = {"Authorization": aiohttp.encode_basic_auth("admin", "password")}
V3 = "/api/nutanix/v3"


@dataclass
class Plane:
    data: Path

    def homeport(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "homeport", *arguments, "--data", str(self.data)]
        return subprocess.run(command, capture_output=True, text=True, timeout=90)

    def up(self, *more: str) -> str:
        done = self.homeport("up", "--listen", "127.0.0.1:0", "--detach", "--sim", *more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def status(self) -> str:
        return self.homeport("status").stdout

    def told(self, pattern: str) -> str:
        found = re.search(pattern, self.status())
        assert found is not None, self.status()
        return found.group(1)

    @property
    def dial(self) -> DialOptions:
        return DialOptions(self.told(r"proxy +(http://\S+)"), (self.data / "sim" / "prism" / "ca.crt").read_bytes())

    async def prism(self, method: str, path: str, body: Any = None, host: str = "prism-central.example.com") -> Any:
        dial = await asyncio.to_thread(lambda: self.dial)
        url, tls = f"https://{host}:9440{path}", dial.tls(dial.ca_pem)
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, url, json=body, headers=ADMIN, proxy=dial.proxy, ssl=tls) as answer,
        ):
            assert answer.status < 300, await answer.text()
            return await answer.json()

    async def find(self, kind: str, name: str) -> str:
        answer = await self.prism("POST", f"{V3}/{kind}/list", {"filter": f"name=={name}"})
        return str(answer["entities"][0]["metadata"]["uuid"])

    async def create_vm(self, name: str, user_data: bytes) -> None:
        meta = yaml.safe_dump({"hostname": name}).encode()
        cloud_init = {
            "user_data": base64.b64encode(user_data).decode(),
            "meta_data": base64.b64encode(meta).decode(),
        }
        image = {"kind": "image", "uuid": await self.find("images", "ubuntu-22.04-kube-v1.30.0")}
        resources = {
            "num_sockets": 2,
            "memory_size_mib": 4096,
            "power_state": "ON",
            "disk_list": [{"data_source_reference": image, "disk_size_mib": 20480}],
            "nic_list": [{"subnet_reference": {"kind": "subnet", "uuid": await self.find("subnets", "vm-network")}}],
            "guest_customization": {"cloud_init": cloud_init},
        }
        cluster = {"kind": "cluster", "uuid": await self.find("clusters", "nutanix-cluster-1")}
        spec = {"name": name, "cluster_reference": cluster, "resources": resources}
        await self.prism("POST", f"{V3}/vms", {"metadata": {"kind": "vm"}, "spec": spec})


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[Plane]:
    plane = Plane(tmp_path / "data")
    yield plane
    plane.homeport("down")


def kubeconfig(plane: Plane, secrets: Secrets) -> str:
    """As a control plane provider makes it, by the endpoint in the manifest."""
    clock = SystemClock()
    authority = load_authority("ca", secrets.ca.certificate, secrets.ca.key, clock)
    pki = ClusterPki.of(authority, load_key("sa", secrets.sa), [], clock)
    return pki.client_kubeconfig(f"https://{VIP}:6443", "admin", ("system:masters",), plane.dial.proxy)


def follow(plane: Cluster, container: str, text: str) -> str:
    """The line of the plane's own Pod that holds `text`, as soon as there is one."""
    process = plane.start("logs", "-f", "-n", "homeport-system", "homeport", "-c", container)
    try:
        assert process.stdout is not None
        return next((line for line in process.stdout if text in line), "")
    finally:
        stop(process)


async def test_whatever_prism_address_is_named_the_simulator_answers(plane: Plane) -> None:
    told = await asyncio.to_thread(plane.up)
    assert "Simulated Prism Central is ready at https://127.0.0.1:" in told
    assert "(user admin, password password)" in told
    for host in ("prism-central.example.com", "10.0.0.10", "pc.acme.test"):
        answer = await plane.prism("POST", f"{V3}/clusters/list", {"length": 10}, host=host)
        assert "nutanix-cluster-1" in {each["status"]["name"] for each in answer["entities"]}
    admin = await asyncio.to_thread(plane.told, r"admin +(http://\S+)")
    async with aiohttp.ClientSession() as session, session.get(f"{admin}/world") as refused:
        assert refused.status == 401
    name, _, value = (plane.data / "sim" / "admin.header").read_text().strip().partition(": ")
    async with aiohttp.ClientSession(headers={name: value}) as session, session.get(f"{admin}/journal") as answer:
        assert {each["path"] for each in await answer.json()} == {f"{V3}/clusters/list"}


async def test_a_machine_becomes_a_cluster_that_kubectl_reaches_and_that_outlives_a_restart(
    plane: Plane, kubectl: str, tmp_path: Path
) -> None:
    await asyncio.to_thread(plane.up)
    secrets = Secrets.make(SystemClock())
    await plane.create_vm("cp-0", init_data(secrets, version="v1.30.0"))
    config = tmp_path / "workload"
    config.write_text(await asyncio.to_thread(kubeconfig, plane, secrets))
    workload = Cluster("workload", kubectl, config, tmp_path)

    def wait() -> str:
        workload.ok("wait", "--for=condition=Ready", "node/cp-0", "--timeout=30s")
        return workload.ok("get", "node", "cp-0", "-o", "jsonpath={.metadata.uid}")

    ours = Cluster("ours", kubectl, plane.data / "kubeconfig", tmp_path)
    assert await asyncio.to_thread(follow, ours, "sim-machine", "has initialized successfully")
    before = await asyncio.to_thread(wait)
    assert f"POST {V3}/vms 202" in ours.ok("logs", "-n", "homeport-system", "homeport", "-c", "sim-prism")
    assert "1 of 1 machines running" in plane.status()
    workload.ok("create", "configmap", "mine", "--from-literal=k=v")

    assert plane.homeport("down").returncode == 0
    without = await asyncio.to_thread(plane.homeport, "up", "--sim", "none", "--listen", "127.0.0.1:0", "--detach")
    assert without.returncode == 0
    assert "was used with --sim" in (plane.data / "homeport.log").read_text()
    assert plane.homeport("down").returncode == 0
    await asyncio.to_thread(plane.up)
    assert await asyncio.to_thread(wait) == before
    assert workload.ok("get", "configmap", "mine", "-o", "jsonpath={.data.k}") == "v"
    assert plane.homeport("down").returncode == 0
    await asyncio.to_thread(plane.up, "--sim-reset")
    assert (await plane.prism("POST", f"{V3}/vms/list", {}))["metadata"]["total_matches"] == 0


async def test_a_world_and_faults_of_ones_own(plane: Plane, tmp_path: Path) -> None:
    world, faults = tmp_path / "world.yaml", tmp_path / "faults.yaml"
    world.write_text("clusters: [{name: mine}]\nusers: [{name: me, passwords: [secret]}]\n")
    faults.write_text("faults: [{match: {method: POST}, effect: {kind: status, status: 503}}]\n")
    arguments = ("--sim-world", f"prism={world}", "--sim-faults", f"prism={faults}", "--speed", "x10")
    assert "(user me, password secret)" in await asyncio.to_thread(plane.up, *arguments)
    plane.homeport("down")
    await asyncio.to_thread(plane.up, *arguments)  # the same file: it goes on
    plane.homeport("down")
    world.write_text("clusters: [{name: other}]\nusers: [{name: me, passwords: [secret]}]\n")
    refused = plane.homeport("up", "--listen", "127.0.0.1:0", "--sim", "--sim-world", f"prism={world}")
    assert refused.returncode == 1
    assert "was created with a different --sim-world" in refused.stderr
    assert "--sim-reset" in refused.stderr
    await asyncio.to_thread(plane.up, "--sim-world", f"prism={world}", "--sim-reset")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--sim=foo"], "unknown simulator 'foo': expected all, or some of prism"),
        (["--sim=prism,"], "unknown simulator '': expected all, or some of prism"),
        (["--sim", "--speed", "soon"], "--speed: 'soon' is not a valid speed"),
        (["--sim=prism", "--sim-world", "bad.yaml"], "--sim-world: {folder}/bad.yaml:1: clusters: expected `array`"),
        (["--sim=prism", "--sim-world", "empty.yaml"], "--sim-world: the world has no user with a password"),
        (["--sim=harvester", "--sim-faults", "bad.yaml"], "--sim-faults: {folder}/bad.yaml:1: clusters: "),
        (["--sim", "--sim-faults", "prism=no.yaml"], "--sim-faults: {folder}/no.yaml: can't be read"),
        (["--sim", "--sim-world", "w.yaml"], "several simulators run: expected prism=w.yaml or harvester=w.yaml"),
        (["--sim", "--sim-listen", "prism=127.0.0.1:x"], "--sim-listen '127.0.0.1:x': the port must be a number"),
        (["--speed", "real"], "--speed requires --sim"),
        (["--sim-reset"], "--sim-reset requires --sim"),
        (["--kubeconfig", "k", "--sim"], "--sim applies to the embedded API server only"),
    ],
)
def test_bad_input_is_refused_and_the_option_named(arguments: list[str], told: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("clusters: 1\n")
    (tmp_path / "empty.yaml").write_text("clusters: []\n")
    environment = {"HOMEPORT_DATA": str(tmp_path / "data"), "HOMEPORT_LISTEN": "127.0.0.1:0", "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "homeport", "up", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=tmp_path, env=environment)
    assert done.returncode in (1, 2)
    assert told.format(folder=tmp_path) in done.stderr
    assert not (tmp_path / "data" / "state.db").exists()


async def test_a_taken_port_is_reported_with_the_option_or_given_way_to(plane: Plane) -> None:
    taken = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = taken.sockets[0].getsockname()[1]
    arguments = ("up", "--listen", "127.0.0.1:0", "--sim=prism", "--sim-listen", f"127.0.0.1:{port}")
    refused = await asyncio.to_thread(plane.homeport, *arguments)
    assert f"--sim-listen 127.0.0.1:{port}: " in refused.stderr
    taken.close()
    await asyncio.to_thread(plane.up)
    assert json.loads((plane.data / "run.json").read_bytes())["told"]
