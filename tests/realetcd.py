"""A real etcd on loopback that authenticates clients by certificate, for tests of datastores."""

from __future__ import annotations

import datetime
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType

from homeport.apiserver.auth import certificate as certs
from homeport.capi.remote.pki import KeyPair, client_certificate
from homeport.hosted.certificate import sign_server
from homeport.hosted.etcd.dial import Access
from realkube import find_binaries, free_port

READY_SECONDS = 60.0


def missing() -> str:
    """Why tests that need it must be skipped; '' if it is there."""
    found = find_binaries()
    return found if isinstance(found, str) else ""


class RealEtcd:
    """One member. `access` is for the user root; authentication of users is off at first, as in every new etcd."""

    def __init__(self, name: str = "default") -> None:
        found = find_binaries()
        if isinstance(found, str):
            raise RuntimeError(found)
        self._binary = found["etcd"]
        self._name = name
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> RealEtcd:
        self.dir = Path(tempfile.mkdtemp(prefix="realetcd-"))
        now = time.time()
        key = certs.make_key()
        authority = certs.sign_ca(key, datetime.datetime.fromtimestamp(now, datetime.UTC), common_name="etcd-ca")
        self.ca = KeyPair(certs.certificate_pem(authority), certs.key_pem(key))
        self.root = client_certificate(self.ca, "root", now=now)
        server = sign_server(self.ca, ["localhost", "127.0.0.1"], now=now)
        for file, data in {
            "ca.crt": self.ca.certificate,
            "server.crt": server.certificate,
            "server.key": server.key,
        }.items():
            (self.dir / file).touch(mode=0o600)
            (self.dir / file).write_bytes(data)
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    @property
    def access(self) -> Access:
        return Access(self._name, (self.endpoint,), self.ca.certificate, self.root)

    def access_as(self, user: str) -> Access:
        pair = client_certificate(self.ca, user, now=time.time())
        return Access(self._name, (self.endpoint,), self.ca.certificate, pair)

    def _start(self) -> None:
        port, peer, metrics = free_port(), free_port(), free_port()
        self.endpoint = f"127.0.0.1:{port}"
        with open(self.dir / "etcd.log", "ab") as log:
            self.process = subprocess.Popen(
                [
                    str(self._binary),
                    "--name=default",
                    f"--data-dir={self.dir / 'data'}",
                    f"--listen-client-urls=https://{self.endpoint}",
                    f"--advertise-client-urls=https://{self.endpoint}",
                    f"--listen-peer-urls=http://127.0.0.1:{peer}",
                    f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
                    f"--initial-cluster=default=http://127.0.0.1:{peer}",
                    f"--listen-metrics-urls=http://127.0.0.1:{metrics}",
                    "--client-cert-auth",
                    f"--trusted-ca-file={self.dir / 'ca.crt'}",
                    f"--cert-file={self.dir / 'server.crt'}",
                    f"--key-file={self.dir / 'server.key'}",
                    "--log-level=warn",
                ],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.dir,
            )  # fmt: skip
        self._await(f"http://127.0.0.1:{metrics}/readyz")

    def _await(self, url: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            assert self.process is not None
            if self.process.poll() is not None:
                break
            try:
                with urllib.request.urlopen(url, timeout=5) as answer:
                    if answer.status == 200:
                        return
            except (TimeoutError, OSError, ssl.SSLError):
                pass
            time.sleep(0.05)
        raise RuntimeError(f"etcd did not start:\n{(self.dir / 'etcd.log').read_text(errors='replace')[-3000:]}")
