"""A real kube-apiserver and etcd on loopback, for the tests and measurements that hold Homeport's server to it."""

from __future__ import annotations

import datetime
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

import audit

BUILD = Path(__file__).resolve().parents[1] / "tools" / "kube" / "build"
NEEDED = ("kube-apiserver", "etcd", "kubectl")
READY_TIMEOUT_SECONDS = 90.0
START_ATTEMPTS = 3


def find_binaries() -> dict[str, Path] | str:
    """Give the path of each program, or say in one sentence why the tests that need them must be skipped.

    HOMEPORT_KUBE_BIN names a directory to use; otherwise the cache that tools/kube/build fills. Nothing is built here.
    """
    override = os.environ.get("HOMEPORT_KUBE_BIN")
    if override:
        folder = Path(override)
        origin = f"HOMEPORT_KUBE_BIN={override}"
    else:
        asked = subprocess.run([sys.executable, str(BUILD), "--where"], capture_output=True, text=True, check=True)
        folder = Path(asked.stdout.strip())
        origin = str(folder)
    missing = [name for name in NEEDED if not os.access(folder / name, os.X_OK)]
    if not missing:
        found = (*NEEDED, "kubeadm")
        return {name: folder / name for name in found if os.access(folder / name, os.X_OK)}
    if override or shutil.which("go"):
        hint = "correct HOMEPORT_KUBE_BIN" if override else "run tools/kube/build"
        return f"no {', '.join(missing)} in {origin}: {hint}"
    return "no real kube-apiserver: Go is not on PATH and nothing was built before (see tools/kube/README.md)"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _name(common: str, groups: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )


@dataclass(frozen=True)
class Credential:
    """A certificate and its key, as files."""

    cert: Path
    key: Path


class Authority:
    """The CA of one server: signs its serving certificate and the certificates of its users."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = folder / "ca.crt"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("realkube-ca")
        builder = self._builder(self._name, self._key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.ca.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(minutes=5))
            .not_valid_after(now + datetime.timedelta(days=2))
        )

    def issue(self, user: str, groups: Sequence[str] = (), *, serving: bool = False) -> Credential:
        """Write a certificate whose common name is the user and whose organizations are the groups."""
        key = ec.generate_private_key(ec.SECP256R1())
        usage = ExtendedKeyUsageOID.SERVER_AUTH if serving else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = self._builder(_name(user, groups), key).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if serving:
            names = [x509.DNSName("localhost"), x509.DNSName("kubernetes.default.svc")]
            addresses = [x509.IPAddress(ip_address("127.0.0.1")), x509.IPAddress(ip_address("10.96.0.1"))]
            builder = builder.add_extension(x509.SubjectAlternativeName([*names, *addresses]), critical=False)
        stem = user.replace(":", "-").replace("/", "-")
        credential = Credential(self.folder / f"{stem}.crt", self.folder / f"{stem}.key")
        _write_key(credential.key, key)
        certificate = builder.sign(self._key, hashes.SHA256())
        credential.cert.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        return credential


class RealKube:
    """Start etcd and kube-apiserver in a temporary directory; stop both and remove it at the end of the with block.

    RBAC is on; `cert` and `key` belong to a user in system:masters. The ServiceAccount admission plugin is off,
    because no controller-manager makes the default accounts that it asks for.
    """

    def __init__(self, binaries: dict[str, Path] | None = None, extra_args: Sequence[str] = ()) -> None:
        found = binaries if binaries is not None else find_binaries()
        if isinstance(found, str):
            raise RuntimeError(found)
        self.binaries = found
        self.extra_args = list(extra_args)
        self.audited = False  # set it before the start: `audit.calls` then tells what users called
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.etcd_ready_seconds = 0.0
        self.ready_seconds = 0.0

    def __enter__(self) -> RealKube:
        self.dir = Path(tempfile.mkdtemp(prefix="realkube-"))
        try:
            self.authority = Authority(self.dir)
            self.ca = self.authority.ca
            self._serving = self.authority.issue("kube-apiserver", serving=True)
            admin = self.authority.issue("kubernetes-admin", ["system:masters"])
            self.cert, self.key = admin.cert, admin.key
            _write_key(self.dir / "sa.key", rsa.generate_private_key(public_exponent=65537, key_size=2048))
            if self.audited:
                self.extra_args += audit.arguments(self.dir)
            self._start_with_retries()
            self.kubeconfig = self.write_kubeconfig("admin", admin)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        # Killed, not asked: nothing of the directory is kept, and a graceful stop waits for open watches.
        for process in reversed(self.processes.values()):
            process.kill()
            process.wait()
        self.processes.clear()
        shutil.rmtree(self.dir, ignore_errors=True)

    def issue(self, user: str, groups: Sequence[str] = ()) -> Credential:
        """Make a client certificate for another user, for tests of RBAC."""
        return self.authority.issue(user, groups)

    def write_kubeconfig(self, name: str, credential: Credential) -> Path:
        path = self.dir / f"{name}.kubeconfig"
        user = {"client-certificate": str(credential.cert), "client-key": str(credential.key)}
        cluster = {"server": self.url, "certificate-authority": str(self.ca)}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "real", "cluster": cluster}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "real", "context": {"cluster": "real", "user": name, "namespace": "default"}}],
            "current-context": "real",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(config, indent=1))
        return path

    def kubectl(self, *args: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run the real kubectl as the administrator; the caller judges the exit code."""
        # A home of its own keeps the discovery caches of earlier servers on the same port out of the answer.
        environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(self.dir)}
        command = [str(self.binaries["kubectl"]), *args]
        return subprocess.run(
            command, input=stdin, capture_output=True, text=True, env=environment, timeout=60, check=False
        )

    def request(self, path: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, bytes]:
        """Send one request as the administrator and give the status and the body."""
        data = None if body is None else json.dumps(body).encode()
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=sent)
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.cert, self.key)
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def compact(self, revision: int) -> None:
        """Compact etcd; reads of older revisions get 410 Gone once the server's watch cache has lost them too.

        `restart_apiserver` empties that cache; extra_args=["--watch-cache=false"] does without it.
        """
        body = json.dumps({"revision": str(revision), "physical": True}).encode()
        request = urllib.request.Request(f"{self.etcd_url}/v3/kv/compaction", data=body, method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            answer.read()

    def restart_apiserver(self) -> None:
        """Kill kube-apiserver and start it on the same port and the same data."""
        process = self.processes.pop("kube-apiserver")
        process.kill()
        process.wait()
        self._start_apiserver(self.port)

    def restart_etcd(self) -> None:
        """Kill etcd and start it on the same ports and the same data. kube-apiserver goes on, and fails meanwhile."""
        process = self.processes.pop("etcd")
        process.kill()
        process.wait()
        self._run_etcd()

    def log(self, program: str) -> str:
        return (self.dir / f"{program}.log").read_text(errors="replace")

    def _start_with_retries(self) -> None:
        # A port found free can be taken by another test process before the program binds it.
        for attempt in range(1, START_ATTEMPTS + 1):
            try:
                self._start_etcd(attempt)
                self._start_apiserver(free_port())
                return
            except RuntimeError:
                for process in self.processes.values():
                    process.kill()
                    process.wait()
                self.processes.clear()
                if attempt == START_ATTEMPTS:
                    raise

    def _spawn(self, program: str, args: Sequence[str]) -> None:
        with open(self.dir / f"{program}.log", "ab") as log:
            self.processes[program] = subprocess.Popen(
                [str(self.binaries[program]), *args], cwd=self.dir, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def _start_etcd(self, attempt: int) -> None:
        client, peer = free_port(), free_port()
        self.etcd_url = f"http://127.0.0.1:{client}"
        peer_url = f"http://127.0.0.1:{peer}"
        self._etcd_args = [
            "--name=default",
            f"--data-dir={self.dir / f'etcd-{attempt}'}",
            f"--listen-client-urls={self.etcd_url}",
            f"--advertise-client-urls={self.etcd_url}",
            f"--listen-peer-urls={peer_url}",
            f"--initial-advertise-peer-urls={peer_url}",
            f"--initial-cluster=default={peer_url}",
            "--log-level=warn",
        ]
        self._run_etcd()

    def _run_etcd(self) -> None:
        began = time.monotonic()
        self._spawn("etcd", self._etcd_args)
        self._await("etcd", f"{self.etcd_url}/readyz", None)
        self.etcd_ready_seconds = time.monotonic() - began

    def _start_apiserver(self, port: int) -> None:
        self.port = port
        self.url = f"https://127.0.0.1:{port}"
        began = time.monotonic()
        self._spawn(
            "kube-apiserver",
            [
                f"--etcd-servers={self.etcd_url}",
                "--bind-address=127.0.0.1",
                f"--secure-port={port}",
                f"--cert-dir={self.dir}",
                f"--tls-cert-file={self._serving.cert}",
                f"--tls-private-key-file={self._serving.key}",
                f"--client-ca-file={self.ca}",
                f"--service-account-key-file={self.dir / 'sa.key'}",
                f"--service-account-signing-key-file={self.dir / 'sa.key'}",
                "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
                "--service-cluster-ip-range=10.96.0.0/16",
                "--authorization-mode=RBAC",
                "--disable-admission-plugins=ServiceAccount",
                # The address would be loopback, which an Endpoints object may not hold.
                "--endpoint-reconciler-type=none",
                "--allow-privileged=true",
                *self.extra_args,
            ],
        )
        context = ssl.create_default_context(cafile=str(self.ca))
        context.load_cert_chain(self.cert, self.key)
        self._await("kube-apiserver", f"{self.url}/readyz", context)
        self.ready_seconds = time.monotonic() - began

    def _await(self, program: str, url: str, context: ssl.SSLContext | None) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            code = self.processes[program].poll()
            if code is not None:
                raise RuntimeError(f"{program} ended with {code}:\n{self.log(program)[-3000:]}")
            try:
                with urllib.request.urlopen(url, context=context, timeout=5) as answer:
                    if answer.status == 200:
                        return
            except urllib.error.HTTPError as error:
                error.close()  # 500 while its start hooks run.
            except OSError:
                pass  # Not listening yet.
            time.sleep(0.05)
        raise RuntimeError(f"{program} is not ready after {READY_TIMEOUT_SECONDS:g} s:\n{self.log(program)[-3000:]}")
