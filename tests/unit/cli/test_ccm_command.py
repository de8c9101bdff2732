"""homeport ccm, over the wire and with no more permissions than its manifest gives it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from homeport.api.meta import Resource
from homeport.app.kubernetes import cloudcontroller
from homeport.app.kubernetes.manager import Cluster, Replica, StartError
from homeport.app.report.description import Description
from homeport.app.report.part import Part
from homeport.ccm.manifest import CLUSTER_ROLE_BINDING, LEASE_NAME, NAME, NAMESPACE, SECRET_NAME, Settings, render
from homeport.ccm.node import NODE, UNINITIALIZED, initialised
from homeport.ccm.service import SERVICE, ingress
from homeport.cli.main import group
from homeport.client.config import Config
from homeport.client.credential import bearer
from homeport.client.http import HttpClient
from homeport.client.protocol import Key, Write
from homeport.runtime.clock import SystemClock
from homeport.runtime.lease import LEASE
from homeport.runtime.testing import Plane, plane
from homeport.sim.engine.tls import Authority
from homeport.sim.prism.entity import Nic, Vm
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.wire import Wire
from homeport.sim.prism.world import default_world

ACCOUNT = Resource("", "v1", "ServiceAccount", "serviceaccounts")
NODE_INFO = {
    "architecture": "amd64", "bootID": "b", "containerRuntimeVersion": "containerd://1.7", "kernelVersion": "6.1",
    "kubeProxyVersion": "", "kubeletVersion": "v1.30.0", "machineID": "m", "operatingSystem": "linux",
    "osImage": "Debian", "systemUUID": "8c4f1f5e-0000-4000-8000-000000000001",
}  # fmt: skip
VM = "8c4f1f5e-0000-4000-8000-000000000001"


class Told:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, text: str) -> None:
        self.lines.append(text)

    def ready(self, url: str) -> None:
        self.say(url)

    def changed(self, part: Part) -> None:
        self.say(f"{part.name} {part.state} {part.error}")

    async def follow(self, describe: Callable[[], Description]) -> None:
        await asyncio.Event().wait()


def invoke(*args: str) -> str:
    result = CliRunner().invoke(group, ["ccm", *args])
    assert result.exit_code != 0
    return result.output


@pytest.fixture
async def central(tmp_path: Path) -> AsyncIterator[dict[str, Any]]:
    """A Prism Central with one VM; gives the configuration for it."""
    prism = Prism(default_world())
    authority = Authority.ensure(tmp_path / "prism", SystemClock())
    wire = Wire(prism)
    port = await wire.start(tls=authority.called("server", ("127.0.0.1",), SystemClock()).context)
    cluster = next(each.ext_id for each in prism.world.clusters if each.name == "nutanix-cluster-1")
    subnet = next(each.ext_id for each in prism.world.subnets if each.name == "vm-network")
    nic = Nic(ext_id="n", subnet=subnet, mac="50:6b:8d:00:00:01", address="10.0.0.111")
    prism.world.vms.put(Vm(ext_id=VM, name="cp-0", cluster=cluster, power="ON", nics=(nic,)))
    bundle = {"kind": "String", "data": authority.path.read_text()}
    ref = {"kind": "Secret", "name": SECRET_NAME}
    yield {
        "prismCentral": {"address": "127.0.0.1", "port": port, "credentialRef": ref, "additionalTrustBundle": bundle},
        "addressPools": {"default": "10.0.0.200-10.0.0.210"},
    }
    await wire.close()


@pytest.fixture
async def api() -> AsyncIterator[Plane]:
    async with plane(serve=True) as p:
        yield p


async def provide(api: Plane, config: dict[str, Any]) -> str:
    """Applies the manifest; gives a token of its service account."""
    listed = [{"type": "basic_auth", "data": {"prismCentral": {"username": "admin", "password": "password"}}}]
    settings = Settings("nutanix", "c.json", json.dumps(config), {"credentials": json.dumps(listed)}, services=True)
    for body, kind in render(settings):
        await api.client.apply(body, Write(field_manager="test"), kind=kind)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    made = await api.client.create(request, kind=ACCOUNT, key=Key(NAMESPACE, NAME), subresource="token")
    return str(made["status"]["token"])


def replica(api: Plane, token: str, config: Path, show: Told) -> tuple[Replica, HttpClient]:
    client = HttpClient(Config(api.server.url, bearer(token), api.server.pki.ca_pem))
    cluster = Cluster(None, namespace=NAMESPACE, lease=LEASE_NAME, health=("127.0.0.1", 0))
    return Replica(client, cluster, NAMESPACE, show, cloudcontroller.platform(cluster, "nutanix", config)), client


async def test_nodes_and_services_are_looked_after_with_the_permissions_of_the_manifest(
    api: Plane, central: dict[str, Any], tmp_path: Path
) -> None:
    config = tmp_path / "c.json"
    config.write_text(json.dumps(central))
    made, client = replica(api, await provide(api, central), config, show := Told())
    working = asyncio.create_task(made.run())
    try:
        taint = {"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}
        await api.have(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": "cp-0"},
                "spec": {"taints": [taint]},
                "status": {"nodeInfo": NODE_INFO, "conditions": [{"type": "Ready", "status": "True"}]},
            },
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {"name": "web"},
                "spec": {"type": "LoadBalancer", "ports": [{"port": 80}]},
            },
        )
        node = await api.until(NODE, Key("", "cp-0"), initialised)
        assert node["spec"]["providerID"] == f"nutanix://{VM}"
        await api.until(NODE, Key("", "cp-0"), lambda n: n["status"].get("addresses"))
        service = await api.until(SERVICE, Key("default", "web"), lambda s: bool(ingress(s)))
        assert ingress(service) == ["10.0.0.200"]
        assert (await api.client.get(LEASE, Key(NAMESPACE, LEASE_NAME)))["spec"]["holderIdentity"]
        assert made.problems() == {}
        assert any(line.startswith("health: http://127.0.0.1:") for line in show.lines)
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await client.close()


async def test_permissions_that_lack_are_named_before_anything_else(
    api: Plane, central: dict[str, Any], tmp_path: Path
) -> None:
    config = tmp_path / "c.json"
    config.write_text(json.dumps(central))
    token = await provide(api, central)
    await api.client.delete(CLUSTER_ROLE_BINDING, Key("", NAME))
    made, client = replica(api, token, config, Told())
    try:
        with pytest.raises(StartError, match="list, watch nodes"):
            await made.run()
    finally:
        await client.close()


def test_a_configuration_that_can_not_be_used_names_file_and_field(tmp_path: Path) -> None:
    config = tmp_path / "nutanix_config.json"
    assert "--config" in invoke()
    assert "No such file" in invoke("--config", str(config))
    config.write_text('{"prismCentral": {}}')
    assert f"{config}: prismCentral.address: is required" in invoke("--config", str(config))
    config.write_text(
        '{"prismCentral": {"address": "a", "credentialRef": {"name": "s"}}, "addressPools": {"p": "10.0.0.x"}}'
    )
    assert "addressPools: address pool 'p': '10.0.0.x'" in invoke("--config", str(config))
    assert "unknown cloud 'aws': expected one of nutanix, harvester" in invoke(
        "--cloud", "aws", "--config", str(config)
    )


def test_outside_of_a_cluster_a_kubeconfig_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    config = tmp_path / "nutanix_config.json"
    config.write_text('{"prismCentral": {"address": "a", "credentialRef": {"name": "s"}}}')
    told = invoke("--config", str(config))
    assert "not in a cluster" in told
    assert "--kubeconfig FILE" in told
    assert "--health" in invoke("--config", str(config), "--health", "here:there")
