"""Ports of Pods, forwarded for programs of others: kubectl, the Python client, a program in Go with etcd's own client.

And the other way round: our client on a real kube-apiserver, which asks a kubelet that is played here.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import WSMsgType, web
from kubernetes import client, config
from kubernetes.stream import portforward

from e2e.cluster import Cluster
from homeport.api.meta import Resource
from homeport.apiserver.auth import certificate as certs
from homeport.client.http import HttpClient
from homeport.client.kubeconfig import load
from homeport.client.portforward import ForwardError
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.clock import SystemClock
from homeport.sim.machine.console import Console
from homeport.sim.machine.workload.cluster import ControlPlane, WorkloadCluster
from homeport.sim.machine.workload.facts import Facts
from homeport.sim.machine.workload.kind import NODE, POD
from homeport.sim.machine.workload.kubelet import Kubelet
from homeport.sim.machine.workload.trust.authority import ClusterPki, make_authority, now_of
from homeport.sim.network import Host, Network
from tlspeer import tls_peer

ADDRESS = "10.0.0.11"
ETCD = Key("kube-system", "etcd-cp-0")
NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)


@dataclass
class Machine:
    name: str
    host: Host
    console: Console
    cni: bool = True
    running: bool = True

    def pull_problem(self, image: str) -> str:
        return ""


@dataclass
class Simulated:
    cluster: WorkloadCluster
    kubeconfig: Path
    etcd_ca: Path
    identity: Path


@asynccontextmanager
async def simulated(folder: Path) -> AsyncIterator[Simulated]:
    """A cluster of one control plane, whose etcd speaks gRPC over mutual TLS at port 2379."""
    clock, network = SystemClock(), Network()
    authority, etcd = make_authority("ca", clock), make_authority("etcd", clock)
    pki = ClusterPki.of(authority, certs.make_key(), [ADDRESS], clock)
    facts = Facts("demo", "v1.34.1", (ADDRESS, 6443))
    cluster = await WorkloadCluster.start(facts, pki, etcd, network, clock, random.Random(1))
    try:
        machine = Machine("cp-0", network.attach("cp-0", [ADDRESS]), Console(clock))
        cluster.etcd.bootstrap("cp-0", ADDRESS)
        cluster.add_control_plane(ControlPlane(machine, "cp-0", ADDRESS, 6443))
        cluster.kubelets["cp-0"] = Kubelet(machine, "cp-0", cluster)
        await cluster.put([({"metadata": {"name": "cp-0"}}, NODE)])
        spec = {"nodeName": "cp-0", "hostNetwork": True, "containers": [{"name": "etcd", "image": "etcd"}]}
        await cluster.put([({"metadata": {"name": ETCD.name, "namespace": ETCD.namespace}, "spec": spec}, POD)])
        running = MergePatch({"status": {"phase": "Running", "hostIP": ADDRESS, "podIP": ADDRESS}})
        await cluster.client().patch(POD, ETCD, running, subresource="status")
        yield Simulated(cluster, *_files(cluster, folder))
    finally:
        await cluster.close()


def _files(cluster: WorkloadCluster, folder: Path) -> tuple[Path, Path, Path]:
    assert cluster.etcd_authority is not None
    text = cluster.pki.client_kubeconfig(cluster.server.url, "admin", ("system:masters",))
    # The address of the listener is one of this machine; the certificate names those of the cluster.
    text = text.replace("    server: ", f"    tls-server-name: {ADDRESS}\n    server: ")
    issued = cluster.etcd_authority.issuer.client("kcp", (), now_of(cluster.clock)()).pem
    made = (folder / "kubeconfig", folder / "etcd-ca.pem", folder / "identity.pem")
    for path, content in zip(made, (text.encode(), cluster.etcd_authority.pem, issued), strict=True):
        path.write_bytes(content)
    return made


async def run(*command: str, env: dict[str, str] | None = None) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command, env={**os.environ, **(env or {})}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(40):
        out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


# -- kubectl -------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def forwarded(
    kubectl: str, kubeconfig: Path, home: Path, port: int, websockets: str
) -> AsyncIterator[tuple[int, asyncio.subprocess.Process]]:
    """kubectl port-forward and the local port that it chose."""
    environment = {"KUBECONFIG": str(kubeconfig), "HOME": str(home), "KUBECTL_PORT_FORWARD_WEBSOCKETS": websockets}
    process = await asyncio.create_subprocess_exec(
        kubectl, "-n", ETCD.namespace, "port-forward", "--address=127.0.0.1", f"pod/{ETCD.name}", f":{port}",
        env={**os.environ, **environment}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        async with asyncio.timeout(20):
            line = (await process.stdout.readline()).decode()
        assert line.startswith("Forwarding from 127.0.0.1:"), line + (await process.communicate())[1].decode()
        yield int(line.split(" -> ")[0].rpartition(":")[2]), process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


def both_kubectls(binaries: dict[str, Path] | str) -> list[str]:
    own = [str(binaries["kubectl"])] if isinstance(binaries, dict) else []
    system = shutil.which("kubectl")
    return [*([system] if system else []), *own]


@pytest.mark.parametrize("websockets", ["true", "false"])
async def test_kubectl_forwards_ports(
    binaries: dict[str, Path] | str, tmp_path: Path, kubectl: str, websockets: str
) -> None:
    async with simulated(tmp_path) as sim:
        context = ssl.create_default_context(cafile=str(sim.etcd_ca))
        context.load_cert_chain(sim.identity)
        context.set_alpn_protocols(["h2"])
        for program in both_kubectls(binaries):
            async with forwarded(program, sim.kubeconfig, tmp_path, 2379, websockets) as (port, process):
                for _ in range(2):
                    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=ADDRESS)
                    assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == "h2"
                    writer.close()
                    with suppress(ConnectionError):
                        await writer.wait_closed()
                assert process.returncode is None
            # Which way it came: kubectl opens WebSockets with GET and SPDY with POST.
            series = sim.cluster.server.http.metrics.render() if sim.cluster.server.http else b""
            verb = b'verb="GET"' if websockets == "true" else b'verb="POST"'
            assert any(b'subresource="portforward"' in line and verb in line for line in series.splitlines())


@pytest.mark.parametrize("websockets", ["true", "false"])
async def test_kubectl_says_why_a_port_does_not_answer(tmp_path: Path, kubectl: str, websockets: str) -> None:
    async with simulated(tmp_path) as sim, forwarded(kubectl, sim.kubeconfig, tmp_path, 9999, websockets) as made:
        port, process = made
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"x")
        with suppress(ConnectionError):
            assert await reader.read() == b""
        writer.transport.abort()
        assert process.stderr is not None
        async with asyncio.timeout(20):
            told = (await process.stderr.readline()).decode()
        assert "error forwarding port 9999 to pod etcd-cp-0, uid " in told
        assert f"connection refused: {ADDRESS} port 9999" in told


async def test_kubectl_reports_that_a_management_plane_runs_no_pods(ours: Cluster) -> None:
    name = "nowhere"
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]},
    }  # fmt: skip
    await asyncio.to_thread(ours.ok, "create", "-f", "-", stdin=json.dumps(pod))
    status = json.dumps({"status": {"phase": "Running"}})
    await asyncio.to_thread(
        ours.ok, "patch", "pod", name, "-n", "default", "--subresource=status", "--type=merge", "-p", status
    )
    output = await asyncio.to_thread(ours.run, "port-forward", "-n", "default", f"pod/{name}", ":80")
    assert output.code == 1
    assert "this API server has no nodes" in output.err
    await asyncio.to_thread(ours.ok, "delete", "pod", name, "-n", "default", "--force", "--grace-period=0")


# -- other clients -------------------------------------------------------------------------------------------------


def handshake(kubeconfig: Path, ca: Path, identity: Path) -> tuple[str, str, str]:
    """TLS with etcd through the Python client's forward of two ports; what it says of either."""
    api = config.new_client_from_config(str(kubeconfig))
    forward = portforward(
        client.CoreV1Api(api).connect_get_namespaced_pod_portforward, ETCD.name, ETCD.namespace, ports="2379,9999"
    )
    context = ssl.create_default_context(cafile=str(ca))
    context.load_cert_chain(identity)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=ADDRESS)
    sock: Any = forward.socket(2379)
    sock.setblocking(True)
    while True:
        try:
            tls.do_handshake()
            break
        except ssl.SSLWantReadError:
            sock.sendall(outgoing.read())
            incoming.write(sock.recv(65536))
    told = (str(tls.version()), str(forward.error(2379)), str(forward.error(9999)))
    forward.close()
    api.close()
    return told


async def test_the_python_client_forwards_two_ports_at_once(tmp_path: Path) -> None:
    async with simulated(tmp_path) as sim:
        version, error, other = await asyncio.to_thread(handshake, sim.kubeconfig, sim.etcd_ca, sim.identity)
        assert version.startswith("TLS")
        assert error == "None"
        assert other.endswith(f"connection refused: {ADDRESS} port 9999")


@pytest.mark.parametrize("way", ["spdy", "websocket"])
async def test_etcds_own_client_gets_through_with_client_go(
    binaries: dict[str, Path] | str, tmp_path: Path, way: str
) -> None:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    program = binaries["kubectl"].parent / "etcdforward"
    if not program.exists():
        pytest.skip("no etcdforward: run tools/kube/build etcdforward")
    async with simulated(tmp_path) as sim:
        command = [
            str(program), "-kubeconfig", str(sim.kubeconfig), "-pod", ETCD.name, "-host", ADDRESS,
            "-ca", str(sim.etcd_ca), "-identity", str(sim.identity),
        ]  # fmt: skip
        code, out, err = await run(*command, *(["-websocket"] if way == "websocket" else []))
        assert code == 0, err
        found = json.loads(out)
        assert found["members"] == ["cp-0"]
        assert found["leads"] is True


# -- our client on a real server -----------------------------------------------------------------------------------


class FakeKubelet:
    """Speaks the channel protocol as a kubelet does: port 7 repeats what it gets, every other is refused."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    async def serve(self, request: web.BaseRequest) -> web.StreamResponse:
        self.seen.append((request.path, request.query["port"]))
        socket = web.WebSocketResponse(protocols=["v4.channel.k8s.io"])
        await socket.prepare(request)
        port = int(request.query["port"])
        for channel in (0, 1):
            await socket.send_bytes(bytes((channel,)) + port.to_bytes(2, "little"))
        if port != 7:
            await socket.send_bytes(b"\x01" + f"error forwarding port {port} to pod x, uid : refused".encode())
            await socket.close()
            return socket
        async for message in socket:
            if message.type is not WSMsgType.BINARY or message.data == b"\x00bye":
                break
            await socket.send_bytes(message.data)
        await socket.close()
        return socket


@asynccontextmanager
async def kubelet(folder: Path) -> AsyncIterator[tuple[FakeKubelet, int]]:
    clock = SystemClock()
    pem = folder / "kubelet.pem"
    pem.write_bytes(make_authority("kubelet", clock).issuer.server(["127.0.0.1"], now_of(clock)()).pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    fake = FakeKubelet()
    async with tls_peer(fake.serve, context) as port:
        yield fake, port


async def test_our_client_forwards_ports_of_a_real_server(real: Cluster | None, binaries: Any, tmp_path: Path) -> None:
    if real is None:
        pytest.skip(str(binaries))
    async with kubelet(tmp_path) as (fake, port), HttpClient(load(real.kubeconfig)) as api:
        await api.create({"metadata": {"name": "forwarding"}}, kind=NAMESPACE)
        await api.create({"metadata": {"name": "fake"}}, kind=NODE)
        addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
        status = {"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": port}}}
        await api.patch(NODE, Key("", "fake"), MergePatch({"status": status}), subresource="status")
        spec = {"nodeName": "fake", "containers": [{"name": "c", "image": "i"}]}
        await api.create({"metadata": {"name": "p", "namespace": "forwarding"}, "spec": spec}, kind=POD)
        key = Key("forwarding", "p")
        async with await api.port_forward(key, 7) as stream:
            sent = bytes(range(256)) * 1024
            await stream.write(sent)
            got = b""
            while len(got) < len(sent):
                got += await stream.read()
            assert got == sent
            await stream.write(b"bye")
            assert await stream.read() == b""
        async with await api.port_forward(key, 8) as stream:
            with pytest.raises(ForwardError, match="error forwarding port 8 to pod x"):
                await stream.read()
        assert fake.seen == [("/portForward/forwarding/p", "7"), ("/portForward/forwarding/p", "8")]
