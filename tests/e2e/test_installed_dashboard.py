"""The dashboard of an installation on a real kube-apiserver: users reach it with their own rights, and it has none.

Its process runs here as the Deployment describes it; a played kubelet forwards the port of its Pod.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import datetime
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from capikit.installed import deployment, refusals, running
from capikit.kubelet import ForwardingKubelet, forwarding
from capikit.podnetwork import NetworkedKube
from e2e.test_install_on_kubernetes import homeport, ok
from e2e.test_installed_webhook import until
from homeport.apiserver.auth import certificate as certs
from realkube import free_port

pytestmark = [pytest.mark.timeout(600)]

NAMESPACE = NAME = "homeport-dashboard"
CLUSTERS = "/apis/cluster.x-k8s.io/v1beta2"
INFRA = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NutanixCluster", "name": "none"}


@dataclass
class Site:
    kube: NetworkedKube
    port: int  # of the dashboard, HTTPS
    health: int
    folder: Path  # of its certificate
    log: Path

    def run(self, kubeconfig: Path, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "homeport", "dashboard", "--kubeconfig", str(kubeconfig), *options]
        home = {**os.environ, "HOME": str(self.kube.dir)}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=home)

    def secret(self) -> dict[str, bytes]:
        found = self.kube.kubectl("get", "secret", NAME, "-n", NAMESPACE, "-o", "json")
        data: dict[str, str] = json.loads(found.stdout)["data"] if found.returncode == 0 else {}
        return {name: base64.b64decode(content) for name, content in data.items()}

    def mount(self) -> None:
        """As a kubelet does it, once the Secret exists."""
        until(self.secret, "the controllers issue a certificate")
        for name, content in self.secret().items():
            (self.folder / name).write_bytes(content)


@pytest.fixture(scope="module")
def site(binaries: dict[str, Path] | str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with NetworkedKube(binaries) as kube:
        port, health = free_port(), free_port()
        homeport("install", "--kubeconfig", str(kube.kubeconfig), f"--dashboard-host=localhost:{port}")
        folder = tmp_path_factory.mktemp("tls")
        with running(kube) as log:
            made = Site(kube, port, health, folder, log)
            made.mount()
            for name in ("blue", "red"):
                ok(kube, "create", "namespace", name)
                cluster = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster"}
                body = {**cluster, "metadata": {"name": f"of-{name}"}, "spec": {"infrastructureRef": INFRA}}
                done = kube.kubectl("create", "-n", name, "-f", "-", stdin=json.dumps(body))
                assert done.returncode == 0, done.stderr
            with serving(made):
                yield made
        assert not refusals(log)


@contextmanager
def serving(site: Site) -> Iterator[None]:
    """The process of the Deployment, without a token, as its Pod has none."""
    body = deployment(site.kube, f"{NAMESPACE}/{NAME}")
    pod = body["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    account = site.folder / "account"
    account.mkdir()
    (account / "ca.crt").write_bytes(site.kube.ca.read_bytes())
    own = [f"--listen=127.0.0.1:{site.port}", f"--tls={site.folder}", f"--health=127.0.0.1:{site.health}"]
    environment = {
        **os.environ,
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": str(site.kube.port),
        "HOMEPORT_SERVICE_ACCOUNT": str(account),
        "HOME": str(site.folder),
    }
    command = [sys.executable, "-m", "homeport", *pod["containers"][0]["args"], *own]
    with open(site.folder / "log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
    try:
        until(lambda: ready(site, process), "the dashboard is ready")
        yield
    finally:
        process.terminate()
        process.wait(60)


def ready(site: Site, process: subprocess.Popen[bytes]) -> bool:
    assert process.poll() is None, (site.folder / "log").read_text()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{site.health}/readyz", timeout=5) as answer:
            return bool(answer.read() == b"ok")
    except OSError:
        return False


def user(site: Site, name: str, namespace: str) -> Path:
    """May see clusters in one namespace."""
    kube = site.kube
    role = ("clusters-of-" + name, "-n", namespace)
    ok(kube, "create", "role", *role, "--verb=get,list,watch", "--resource=clusters.cluster.x-k8s.io")
    ok(kube, "create", "rolebinding", *role, f"--role=clusters-of-{name}", f"--user={name}")
    return kube.write_kubeconfig(name, kube.issue(name))


class Visit:
    """What the page does after the link is opened."""

    def __init__(self, link: str, ca: str = "") -> None:
        self.address, _, code = link.partition("#code=")
        self._origin = self.address.removesuffix("/dashboard/")
        self._context = ssl.create_default_context(cadata=ca) if ca else None
        if self._context is not None:
            self._context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
        self._headers: dict[str, str] = {}
        status, body, headers = self._send("session", {"code": code})
        assert status == 200, body
        self.user = body["user"]
        self.cookie = headers["Set-Cookie"]
        self._headers = {"Cookie": self.cookie.partition(";")[0], "X-Homeport-Key": body["key"]}

    def get(self, path: str) -> tuple[int, Any]:
        """Through the dashboard, as the user: the status of the API server, and its answer."""
        status, body, headers = self._send("request", {"method": "GET", "path": path})
        assert status == 200, body
        return int(headers["X-Homeport-Status"]), body

    def _send(self, name: str, body: Any) -> tuple[int, Any, Any]:
        headers = {"Content-Type": "application/json", "Origin": self._origin, **self._headers}
        request = urllib.request.Request(self.address + name, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=60, context=self._context) as answer:
                return answer.status, json.loads(answer.read()), answer.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.loads(error.read()), error.headers


def sees(visit: Visit, own: str, other: str) -> None:
    status, found = visit.get(f"{CLUSTERS}/namespaces/{own}/clusters")
    assert status == 200
    assert [each["metadata"]["name"] for each in found["items"]] == [f"of-{own}"]
    for path in (f"{CLUSTERS}/namespaces/{other}/clusters", f"{CLUSTERS}/clusters", "/api/v1/namespaces"):
        assert visit.get(path)[0] == 403, path
    assert visit.get(f"/api/v1/namespaces/{own}/secrets")[0] == 403


def linked(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    assert "#code=" in line, f"{line}\n{process.communicate()}"
    return line


def test_a_user_bound_in_one_namespace_sees_it_through_the_service_and_nothing_else(site: Site) -> None:
    anna = user(site, "anna", "blue")
    process = site.run(anna)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    link = out.split()[0]
    assert link.startswith(f"https://localhost:{site.port}/dashboard/#code=")
    visit = Visit(link, site.secret()["ca.crt"].decode())
    assert visit.user == "anna"
    assert "Secure" in visit.cookie
    sees(visit, "blue", "red")


def test_a_server_with_a_certificate_of_another_ca_gets_no_credential(site: Site, tmp_path: Path) -> None:
    """The address of the installation, but somebody else answers there."""
    key = certs.make_key()
    now = datetime.datetime.now(datetime.UTC)
    (tmp_path / "tls.pem").write_bytes(certs.Issuer(certs.sign_ca(key, now), key).server(["localhost"], now).pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "tls.pem")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        process = site.run(site.kube.kubeconfig, "--address", f"https://localhost:{server.getsockname()[1]}/")
        raw, _ = server.accept()
        with raw, contextlib.suppress(ssl.SSLError, OSError):
            context.wrap_socket(raw, server_side=True).recv(1)
            pytest.fail("the command sent something")
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 1
    assert "is not trusted" in err
    assert "--ca FILE" in err
    refused = site.run(site.kube.kubeconfig, "--address", "http://clusters.example/")
    assert "expected https://" in refused.communicate(timeout=60)[1]


def test_the_dashboard_itself_may_no_more_than_anybody(site: Site) -> None:
    def rights(name: str, namespace: str) -> list[str]:
        account = f"--as=system:serviceaccount:{NAMESPACE}:{name}"
        groups = ("--as-group=system:serviceaccounts", "--as-group=system:authenticated")
        return sorted(ok(site.kube, "auth", "can-i", "--list", "-n", namespace, account, *groups).splitlines())

    for namespace in (NAMESPACE, "homeport-system", "blue", "kube-system"):
        assert rights(NAME, namespace) == rights("stranger", namespace)


@asynccontextmanager
async def forwarded(site: Site, tmp_path: Path) -> AsyncIterator[ForwardingKubelet]:
    """Its Pod, on a Node whose kubelet forwards ports."""
    kube, labels = site.kube, deployment(site.kube, f"{NAMESPACE}/{NAME}")["spec"]["template"]["metadata"]["labels"]
    async with forwarding(tmp_path, {8443: site.port}) as (kubelet, port):
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "played"}}
        spec = {
            "nodeName": "played",
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{"name": "dashboard", "image": "i", "securityContext": confined()}],
        }
        meta = {"name": "dashboard-0", "namespace": NAMESPACE, "labels": labels}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        }
        healthy = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        merge = {"Content_Type": "application/merge-patch+json"}

        def create() -> None:
            for path, body in (("nodes", node), (f"namespaces/{NAMESPACE}/pods", pod)):
                code, said = kube.request(f"/api/v1/{path}", "POST", body)
                assert code == 201, said
            for path, change in (("nodes/played", status), (f"namespaces/{NAMESPACE}/pods/dashboard-0", healthy)):
                code, said = kube.request(f"/api/v1/{path}/status", "PATCH", {"status": change}, **merge)
                assert code == 200, said

        await asyncio.to_thread(create)
        yield kubelet


def confined() -> dict[str, Any]:
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


async def test_without_an_address_the_api_server_leads_there_for_those_who_may(site: Site, tmp_path: Path) -> None:
    kube = site.kube
    await asyncio.to_thread(homeport, "install", "--kubeconfig", str(kube.kubeconfig))  # without a name outside
    bert = await asyncio.to_thread(user, site, "bert", "red")
    async with forwarded(site, tmp_path) as kubelet:
        denied = site.run(bert)
        err = (await asyncio.to_thread(denied.communicate, timeout=120))[1]
        assert denied.returncode == 1
        assert "homeport dashboard --serve" in err
        assert f"Role {NAMESPACE}/{NAME}-user" in err
        bound = ("create", "rolebinding", "bert", "-n", NAMESPACE, f"--role={NAME}-user", "--user=bert")
        await asyncio.to_thread(ok, kube, *bound)
        process = site.run(bert)
        try:
            link = await asyncio.to_thread(linked, process)
            assert re.match(r"http://127\.0\.0\.1:\d+/dashboard/#code=", link)
            visit = await asyncio.to_thread(Visit, link)
            assert visit.user == "bert"
            assert "Secure" not in visit.cookie  # the browser's part of the way is loopback
            await asyncio.to_thread(sees, visit, "red", "blue")
            assert kubelet.forwarded > 1
        finally:
            process.send_signal(signal.SIGINT)
            await asyncio.to_thread(process.communicate, timeout=60)
        assert process.returncode == 0


def test_the_certificate_comes_back_when_somebody_deletes_it(site: Site) -> None:
    before = site.secret()["tls.crt"]
    ok(site.kube, "delete", "secret", NAME, f"{NAME}-ca", "-n", NAMESPACE)
    until(lambda: site.secret().get("tls.crt", before) != before, "a new certificate", 240)
    site.mount()
    ca = site.secret()["ca.crt"].decode()

    def served() -> bool:
        context = ssl.create_default_context(cadata=ca)
        context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
        try:
            raw = socket.create_connection(("127.0.0.1", site.port), 5)
            with raw, context.wrap_socket(raw, server_hostname=f"{NAME}.{NAMESPACE}.svc"):
                return True
        except ssl.SSLCertVerificationError:
            return False

    until(served, "the new certificate is served")
