"""The tunnel of a hosted control plane with konnectivity's own programs: kube-apiserver > proxy-server > proxy-agent > a kubelet."""

from __future__ import annotations

import json
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from e2e.hosted_kit import HostingPlane, real_plane
from realkube import Authority, free_port

pytestmark = [pytest.mark.timeout(600)]
LINES = "the ship is in port\n"
LOGS = ("logs", "web", "--request-timeout=20s")


class Kubelet(BaseHTTPRequestHandler):
    """Answers for the log of any container."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(LINES.encode() if self.path.startswith("/containerLogs/default/web/web") else b"?")

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def hosting(tmp_path: Path, kubectl: str, binaries: dict[str, Path] | str) -> Iterator[HostingPlane]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    folder = binaries["etcd"].parent
    if missing := [each for each in ("proxy-server", "proxy-agent") if not (folder / each).exists()]:
        pytest.skip(f"no {' and '.join(missing)} in {folder}: run tools/kube/build (it needs Go)")
    with real_plane(tmp_path, kubectl, binaries) as plane:
        yield plane


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[int]:
    """The port of a server that looks like a kubelet."""
    folder = tmp_path / "kubelet"
    folder.mkdir()
    serving = Authority(folder).issue("kubelet", serving=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(serving.cert, serving.key)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Kubelet)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_kube_apiserver_reaches_a_kubelet_through_the_tunnel_and_not_without_its_agent(
    hosting: HostingPlane, kubelet: int, tmp_path: Path, binaries: dict[str, Path]
) -> None:
    config = hosting.tenant("tenant", konnectivity={"server": {"port": 8132}, "agent": {}})
    assert len(hosting.processes()) == 5, "etcd, three programs of Kubernetes, and proxy-server"
    _have_pod(hosting, config, kubelet)
    without = hosting.try_kubectl(*LOGS, config=config)
    assert without.returncode != 0, "no agent is connected, so there is no way"
    assert "No agent available" in without.stderr, without.stderr
    with _agent(hosting, config, binaries["etcd"].parent / "proxy-agent", tmp_path) as agent:
        hosting.until(lambda: hosting.try_kubectl(*LOGS, config=config).stdout == LINES, "the log came", 60.0)
        hosting.kill()
        hosting.up()
        hosting.until(lambda: hosting.try_kubectl(*LOGS, config=config).stdout == LINES, "the agent dialled again")
        assert agent.poll() is None
    hosting.until(lambda: hosting.try_kubectl(*LOGS, config=config).returncode != 0, "the way is gone with it", 60.0)
    hosting.kubectl("delete", "tcp", "tenant", "--timeout=80s")
    hosting.until(lambda: len(hosting.processes()) == 1, "only etcd is left")


def _have_pod(hosting: HostingPlane, config: Path, port: int) -> None:
    """On a Node whose kubelet is at that port of loopback."""
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "worker"}}
    hosting.kubectl("create", "-f", "-", config=config, stdin=json.dumps(node))
    status = {
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "conditions": [{"type": "Ready", "status": "True", "reason": "Test", "message": ""}],
    }
    patch = json.dumps({"status": status})
    hosting.kubectl("patch", "node", "worker", "--subresource=status", "-p", patch, config=config)
    account = ("get", "serviceaccount", "default")
    hosting.until(lambda: hosting.try_kubectl(*account, config=config).returncode == 0, "Pods may be created")
    spec = {"nodeName": "worker", "containers": [{"name": "web", "image": "web:1"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "default"}, "spec": spec}
    hosting.kubectl("create", "-f", "-", config=config, stdin=json.dumps(pod))


@contextmanager
def _agent(hosting: HostingPlane, config: Path, program: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """As the DaemonSet describes it, with a token of its ServiceAccount."""
    shown = hosting.kubectl("get", "daemonset", "konnectivity-agent", "-n", "kube-system", "-o", "json", config=config)
    pod = json.loads(shown)["spec"]["template"]["spec"]
    source = pod["volumes"][0]["projected"]["sources"][0]["serviceAccountToken"]
    asked = ("create", "token", pod["serviceAccountName"], "-n", "kube-system", "--audience", source["audience"])
    token, authority = folder / "token", folder / "ca.crt"
    token.touch(mode=0o600)
    token.write_text(hosting.kubectl(*asked, config=config).strip())
    published = ("get", "configmap", "kube-root-ca.crt", "-n", "kube-system", "-o", r"jsonpath={.data.ca\.crt}")
    authority.write_text(hosting.kubectl(*published, config=config))
    given = dict(each.split("=", 1) for each in pod["containers"][0]["args"])
    given |= {"--service-account-token-path": str(token), "--ca-cert": str(authority)}
    given |= {"--health-server-port": str(free_port()), "--admin-server-port": str(free_port())}
    with open(folder / "agent.log", "wb") as log:
        command = [str(program), *(f"{name}={value}" for name, value in given.items())]
        agent = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield agent
    finally:
        agent.kill()
        agent.wait()
