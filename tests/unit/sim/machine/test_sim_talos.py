"""Simulated machines with Talos: what they refuse, and what their API answers."""

from __future__ import annotations

import asyncio
import datetime
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from homeport.bootstrap.talos.client import Refused, TalosApi, Unreachable, Untrusted, connect, connect_maintenance
from homeport.client.dial import DialOptions
from homeport.client.protocol import Key
from homeport.machinery import yaml
from homeport.machinery.talos.bundle import Bundle
from homeport.machinery.talos.certificate import KeyPair, make_authority, make_client
from homeport.machinery.talos.config import ClusterShape, MachineShape, Role, render_config
from homeport.machinery.talos.vip import VirtualAddress
from homeport.runtime.testing import virtual
from homeport.sim.machine.talos.check import ConfigRefused, check_config
from homeport.sim.machine.talos.field import CONFIG, unknown
from homeport.sim.machine.workload.kind import DAEMON_SET, NODE
from homeport.sim.network import Proxy
from unit.machinery.talos.talos_kit import bundle, shape
from unit.sim.machine.sim_kit import VIP, Sim, simulation

REFERENCE = os.environ.get("HOMEPORT_REFERENCE", "")
IMAGE = "talos-1.9"
NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
CILIUM = {
    "metadata": {"name": "cilium", "namespace": "kube-system"},
    "spec": {
        "selector": {"matchLabels": {"k8s-app": "cilium"}},
        "template": {
            "metadata": {"labels": {"k8s-app": "cilium"}},
            "spec": {
                "hostNetwork": True,
                "tolerations": [{"operator": "Exists"}],
                "containers": [
                    {
                        "name": "agent",
                        "image": "cilium",
                        "env": [{"name": "KUBERNETES_SERVICE_HOST", "value": "localhost"}],
                        "volumeMounts": [{"name": "cni", "mountPath": "/host/etc/cni/net.d"}],
                    }
                ],
                "volumes": [{"name": "cni", "hostPath": {"path": "/etc/cni/net.d"}}],
            },
        },
    },
}


def cluster(**more: Any) -> ClusterShape:
    return shape(**({"endpoint": VIP, "vip": VirtualAddress(VIP, "ens3")} | more))


def config(role: Role, name: str, given: ClusterShape | None = None, secrets: Bundle | None = None) -> bytes:
    return render_config(role, given or cluster(), MachineShape(name, {"tier": role}), secrets or bundle()).encode()


def changed(role: Role, change: Any) -> bytes:
    document = yaml.load(config(role, "a"))
    change(document["machine"], document["cluster"])
    return yaml.dump(document).encode()


@asynccontextmanager
async def outside(sim: Sim) -> AsyncIterator[DialOptions]:
    proxy = Proxy(sim.network)
    try:
        yield DialOptions(proxy=await proxy.start())
    finally:
        await proxy.close()


def address(sim: Sim, name: str) -> str:
    machine = sim.fleet.find(name)
    assert machine is not None
    return machine.address


@asynccontextmanager
async def admin(sim: Sim, dial: DialOptions, name: str, client: KeyPair | None = None) -> AsyncIterator[TalosApi]:
    async with connect(
        address(sim, name), bundle().os.certificate, client or make_client(bundle().os, NOW), dial
    ) as api:
        yield api


# -- what Talos refuses --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "change", "problem"),
    [
        ("worker", lambda m, c: m.update(colour="red"), "unknown keys found during decoding: machine.colour"),
        ("worker", lambda m, c: m["kubelet"].update(imgae="x"), "unknown keys .*machine.kubelet.imgae"),
        (
            "controlplane",
            lambda m, c: m["network"].update(interfaces=[{"interface": "ens3", "vip": {"address": "10.0.0.1"}}]),
            r"unknown keys .*machine.network.interfaces\[0\].vip.address",
        ),
        ("worker", lambda m, c: m.pop("token"), r"\.machine\.token is not a valid token"),
        ("worker", lambda m, c: c.update(token="short"), r"\.cluster\.token is not a valid token"),
        ("worker", lambda m, c: c.pop("controlPlane"), "controlplane endpoint is required"),
        ("worker", lambda m, c: c["controlPlane"].update(endpoint="10.0.0.1:6443"), "invalid controlplane endpoint"),
        ("worker", lambda m, c: m.pop("ca"), r"issuing CA is required \(.machine.ca\)"),
        ("worker", lambda m, c: m["ca"].update(key=m["ca"]["crt"]), "not allowed on non-controlplane nodes"),
        ("controlplane", lambda m, c: m["ca"].pop("key"), r"issuing CA key is required .*\(.machine.ca.key\)"),
        ("controlplane", lambda m, c: m["ca"].update(crt="aGVsbG8="), r"certificate is invalid \(.machine.ca.crt\)"),
        ("controlplane", lambda m, c: c.pop("etcd"), r"issuing CA is required \(.cluster.etcd.ca\)"),
        ("controlplane", lambda m, c: c.pop("serviceAccount"), "a service account key is required"),
        ("controlplane", lambda m, c: c["network"]["cni"].update(name="calico"), "cni name should be one of"),
        ("worker", lambda m, c: m.update(type="boss"), "unknown machine type 'boss'"),
        (
            "worker",
            lambda m, c: m["network"].update(interfaces=[{"interface": "ens3", "vip": {"ip": "10.0.0.1"}}]),
            "virtual \\(shared\\) IP is not allowed",
        ),
        ("worker", lambda m, c: m["network"].update(interfaces=[{"dhcp": True}]), "set exactly one of them"),
        (
            "controlplane",
            lambda m, c: c.update(inlineManifests=[{"name": "a", "contents": ""}, {"name": "a", "contents": ""}]),
            "inline manifest names must be set and unique",
        ),
    ],
)
def test_a_configuration_that_talos_refuses(role: Role, change: Any, problem: str) -> None:
    with pytest.raises(ConfigRefused, match=problem):
        check_config(changed(role, change))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"version: v1beta1\nmachine: {}\n", "unsupported config version 'v1beta1'"),
        (b"machine: [", "failed to parse config"),
        (b"- a\n", "a document is not a mapping"),
        (b"", "expected one v1alpha1 document, found 0"),
        (b"kind: Pod\napiVersion: v1\n", "'Pod' 'v1': not registered"),
        (b"version: v1alpha1\n", "machine instructions are required"),
        (b"version: v1alpha1\nmachine: {type: worker}\n", "cluster instructions are required"),
    ],
)
def test_a_document_that_is_no_machine_configuration(text: bytes, problem: str) -> None:
    with pytest.raises(ConfigRefused, match=problem):
        check_config(text)


def test_documents_of_other_kinds_may_follow() -> None:
    extra = b"---\napiVersion: v1alpha1\nkind: VolumeConfig\nname: EPHEMERAL\n"
    assert check_config(config("worker", "a") + extra)["machine"]["type"] == "worker"


@pytest.mark.skipif(not REFERENCE, reason="HOMEPORT_REFERENCE names no folder of upstream schemas")
def test_the_known_fields_are_those_of_talos_schema() -> None:
    path = Path(REFERENCE, "schemas/talos/talos-config-v1.9.schema.json")
    definitions = orjson.loads(path.read_bytes())["$defs"]

    def sample(schema: dict[str, Any], depth: int = 0) -> Any:
        """A value with every field of the schema."""
        if "$ref" in schema:
            schema = definitions[schema["$ref"].rpartition("/")[2]]
        if schema.get("type") == "array":
            return [sample(schema["items"], depth)]
        if schema.get("properties"):
            return {name: sample(each, depth + 1) for name, each in schema["properties"].items()}
        if "patternProperties" in schema:
            return {"x": sample(next(iter(schema["patternProperties"].values())), depth + 1)}
        return {} if schema.get("type") == "object" else "x"

    assert unknown(sample(definitions["v1alpha1.Config"]), CONFIG) == []


# -- machines ------------------------------------------------------------------------------------------------------


@virtual
async def test_machines_are_configured_in_maintenance_and_start_after_one_bootstrap_call() -> None:
    async with simulation() as sim, outside(sim) as dial:
        machines = ("cp-0", "cp-1", "cp-2", "w-0")
        for name in machines:
            sim.power_on(name, b"", image=IMAGE)
        await sim.fleet.settled()
        for name in machines:
            assert "maintenance mode" in sim.console(name)
            async with connect_maintenance(address(sim, name), dial) as api:
                await api.apply(config("worker" if name == "w-0" else "controlplane", name))
        await asyncio.sleep(30)
        assert sim.fleet.clusters() == []
        async with admin(sim, dial, "cp-1") as api:
            assert await api.bootstrap() is True
            assert await api.bootstrap() is False
        await sim.fleet.settled()
        assert set(sim.cluster.etcd.members) == {"cp-0", "cp-1", "cp-2"}
        for name in ("cp-0", "cp-2"):
            async with admin(sim, dial, name) as api:
                assert await api.bootstrap() is False
                assert {member.name for member in await api.members()} == {"cp-0", "cp-1", "cp-2"}
                assert all(service.healthy for service in await api.services())
        await nodes_become_ready_with_a_network(sim)


async def nodes_become_ready_with_a_network(sim: Sim) -> None:
    assert sim.network.holder(VIP) is not None
    nodes = {node["metadata"]["name"]: node for node in (await sim.cluster.client().list(NODE)).items}
    assert set(nodes) == {"cp-0", "cp-1", "cp-2", "w-0"}
    assert nodes["w-0"]["metadata"]["labels"]["tier"] == "worker"
    assert nodes["w-0"]["status"]["nodeInfo"]["kubeletVersion"] == "v1.32.4"
    assert not any(is_ready(node) for node in nodes.values())
    assert nodes["cp-0"]["spec"]["taints"][0]["key"] == "node-role.kubernetes.io/control-plane"
    await sim.cluster.client().create(CILIUM, kind=DAEMON_SET)
    await asyncio.sleep(60)
    assert all(is_ready(node) for node in (await sim.cluster.client().list(NODE)).items)


def is_ready(node: dict[str, Any]) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])


@virtual
async def test_a_single_machine_runs_pods_and_gives_a_kubeconfig_that_works() -> None:
    async with simulation() as sim, outside(sim) as dial:
        single = cluster(pods_on_control_planes=True, cni="flannel", vip=None, endpoint="10.0.0.11")
        sim.power_on("cp-0", config("controlplane", "cp-0", single), image=IMAGE)
        await asyncio.sleep(30)
        async with admin(sim, dial, "cp-0") as api:
            assert await api.version() == "v1.9.0"
            assert await api.bootstrap()
            await sim.fleet.settled()
            document = yaml.load(await api.kubeconfig())
        assert document["clusters"][0]["cluster"]["server"] == "https://10.0.0.11:6443"
        await asyncio.sleep(60)
        node = await sim.node("cp-0")
        assert is_ready(node)
        assert not node["spec"].get("taints")
        flannel = await sim.cluster.client().get(DAEMON_SET, Key("kube-system", "kube-flannel"))
        assert flannel["status"]["numberReady"] == 1


@virtual
async def test_the_api_asks_for_a_certificate_of_its_authority_and_for_the_role() -> None:
    async with simulation() as sim, outside(sim) as dial:
        sim.power_on("cp-0", config("controlplane", "cp-0"), image=IMAGE)
        await asyncio.sleep(30)
        other = make_authority("talos", NOW, ed25519_key=True)
        async with admin(sim, dial, "cp-0", make_client(other, NOW)) as api:
            with pytest.raises((Untrusted, Unreachable)):
                await api.version()
        with pytest.raises(Untrusted, match="no certificate of this cluster"):
            async with connect(address(sim, "cp-0"), other.certificate, make_client(other, NOW), dial):
                pass
        async with admin(sim, dial, "cp-0", make_client(bundle().os, NOW, ["os:reader"])) as api:
            assert await api.version() == "v1.9.0"
            for call in (api.bootstrap, api.kubeconfig):
                with pytest.raises(Refused, match="not authorized"):
                    await call()


@virtual
async def test_maintenance_refuses_a_bad_configuration_and_takes_a_good_one() -> None:
    async with simulation() as sim, outside(sim) as dial:
        await sim.boot("w-0", b"", image=IMAGE)
        where = address(sim, "w-0")
        async with connect_maintenance(where, dial) as api:
            with pytest.raises(Refused, match=r"machine\.colour"):
                await api.apply(changed("worker", lambda m, c: m.update(colour="red")))
            with pytest.raises(Refused, match="unknown method"):
                await api.bootstrap()
            with pytest.raises(Refused, match="not authorized"):
                await api.version()
        with pytest.raises(Untrusted):
            async with admin(sim, dial, "w-0"):
                pass
        async with connect_maintenance(where, dial) as api:
            await api.apply(config("worker", "w-0"))
        await asyncio.sleep(30)
        with pytest.raises(Unreachable, match="refused"):  # a worker's API waits for its control plane
            async with connect_maintenance(where, dial):
                pass


@virtual
async def test_a_worker_with_another_token_or_authority_does_not_join() -> None:
    async with simulation() as sim, outside(sim) as dial:
        sim.power_on("cp-0", config("controlplane", "cp-0"), image=IMAGE)
        await asyncio.sleep(30)
        async with admin(sim, dial, "cp-0") as api:
            await api.bootstrap()
        await sim.fleet.settled()
        wrong = changed("worker", lambda m, c: c.update(token="aaaaaa.0123456789abcdef"))
        foreign = changed(
            "worker", lambda m, c: c["ca"].update(make_authority("kubernetes", NOW).document() | {"key": ""})
        )
        for name, data in (("w-1", wrong), ("w-2", foreign)):
            sim.power_on(name, data, image=IMAGE)
        await asyncio.sleep(60)
        assert {node["metadata"]["name"] for node in (await sim.cluster.client().list(NODE)).items} == {"cp-0"}


@virtual
async def test_a_worker_with_another_machine_token_joins_but_its_api_does_not_answer() -> None:
    async with simulation() as sim, outside(sim) as dial:
        sim.power_on("cp-0", config("controlplane", "cp-0"), image=IMAGE)
        await asyncio.sleep(30)
        async with admin(sim, dial, "cp-0") as api:
            await api.bootstrap()
        await sim.fleet.settled()
        for name, token in (("w-1", bundle().trustd_token), ("w-2", "aaaaaa.0123456789abcdef")):
            data = changed(
                "worker", lambda m, c, token=token, name=name: m.update(token=token, network={"hostname": name})
            )
            await sim.boot(name, data, image=IMAGE)
        async with admin(sim, dial, "w-1") as api:
            assert await api.version() == "v1.9.0"
            with pytest.raises(Refused, match="bootstrap can only be performed on a control plane node"):
                await api.bootstrap()
        assert "trustd" in sim.console("w-2")
        with pytest.raises(Unreachable):
            async with admin(sim, dial, "w-2"):
                pass


@virtual
async def test_the_api_comes_back_after_a_restart() -> None:
    async with simulation() as sim, outside(sim) as dial:
        await sim.boot("cp-0", b"", image=IMAGE)
        async with connect_maintenance(address(sim, "cp-0"), dial) as api:
            await api.apply(config("controlplane", "cp-0"))
        await asyncio.sleep(10)
        sim.power_off("cp-0")  # before the bootstrap call: the configuration is on its disk
        with pytest.raises(Unreachable):
            async with admin(sim, dial, "cp-0"):
                pass
        sim.power_on("cp-0", again=True)
        await asyncio.sleep(30)
        async with admin(sim, dial, "cp-0") as api:
            assert await api.bootstrap()
        await sim.fleet.settled()
        sim.power_off("cp-0")
        await sim.boot("cp-0", again=True)
        async with admin(sim, dial, "cp-0") as api:
            assert await api.bootstrap() is False
            assert [member.name for member in await api.members()] == ["cp-0"]


@virtual
async def test_an_endpoint_that_nobody_holds_is_reported_on_the_console() -> None:
    async with simulation() as sim, outside(sim) as dial:
        sim.power_on("cp-0", config("controlplane", "cp-0", cluster(endpoint="10.9.9.9", vip=None)), image=IMAGE)
        await asyncio.sleep(30)
        async with admin(sim, dial, "cp-0") as api:
            await api.bootstrap()
        await asyncio.sleep(60)
        assert "no machine has the address 10.9.9.9" in sim.console("cp-0")
        assert await sim.node("cp-0") is None
