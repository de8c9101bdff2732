"""The network between a lone kube-apiserver and the Pods of a Service: kube-proxy's part, on loopback.

kube-apiserver sends what it would send into the cluster (here: questions to webhooks) to an HTTP CONNECT proxy on a
Unix socket. The proxy finds the Service by its cluster IP, the Pods by the Service's selector, and connects to a local
port instead of the Pod's.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import socketserver
import tempfile
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import yaml

from realkube import RealKube


@dataclass(frozen=True, slots=True)
class Pod:
    namespace: str
    labels: Mapping[str, str]
    ports: Mapping[str, int]  # name of a container's port > the port here


class NetworkedKube(RealKube):
    """A kube-apiserver that reaches the Pods that were `add`ed, through their Services."""

    def __init__(self, binaries: dict[str, Path] | None = None) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="network-")
        path = Path(self._folder.name)
        self._proxy = _Proxy(str(path / "egress.sock"), self)
        connection = {"proxyProtocol": "HTTPConnect", "transport": {"uds": {"udsName": self._proxy.server_address}}}
        selection = {
            "apiVersion": "apiserver.k8s.io/v1beta1",
            "kind": "EgressSelectorConfiguration",
            "egressSelections": [{"name": "cluster", "connection": connection}],
        }
        (path / "egress.yaml").write_text(yaml.safe_dump(selection))
        super().__init__(binaries, [f"--egress-selector-config-file={path / 'egress.yaml'}"])
        self.pods: list[Pod] = []
        self.asked = 0  # connections that the API server opened

    def __enter__(self) -> NetworkedKube:
        threading.Thread(target=self._proxy.serve_forever, daemon=True).start()
        super().__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._proxy.shutdown()
        self._proxy.server_close()
        self._folder.cleanup()

    def connect(self, address: str) -> socket.socket:
        """To a Pod behind the Service with this `IP:PORT`. Raises OSError if none answers."""
        ports = self._backends(address)
        random.shuffle(ports)
        for port in ports:
            try:
                return socket.create_connection(("127.0.0.1", port), timeout=10)
            except OSError:
                continue
        raise OSError(f"{address}: no Pod answers")

    def _backends(self, address: str) -> list[int]:
        host, _, port = address.rpartition(":")
        if host == "127.0.0.1":
            return [int(port)]  # a kubelet that a test plays
        services: list[dict[str, Any]] = json.loads(self.request("/api/v1/services")[1])["items"]
        for service in services:
            spec = service["spec"]
            names = [each["targetPort"] for each in spec["ports"] if str(each["port"]) == port]
            if spec.get("clusterIP") == host and names:
                wanted, namespace = spec["selector"].items(), service["metadata"]["namespace"]
                chosen = [p for p in self.pods if p.namespace == namespace and wanted <= p.labels.items()]
                return [pod.ports[name] for pod in chosen for name in names]
        return []


class _Proxy(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, path: str, kube: NetworkedKube) -> None:
        super().__init__(path, _Connect)
        self.kube = kube


class _Connect(socketserver.StreamRequestHandler):
    server: _Proxy

    def handle(self) -> None:
        line = self.rfile.readline().decode("latin-1").split()
        while self.rfile.readline().strip():
            pass
        self.server.kube.asked += 1
        try:
            other = self.server.kube.connect(line[1])
        except OSError as error:
            self.wfile.write(f"HTTP/1.1 502 {error}\r\n\r\n".encode())
            return
        with other:
            other.settimeout(None)
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_copy, args=(other, self.connection), daemon=True)
            back.start()
            _copy(self.connection, other)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
