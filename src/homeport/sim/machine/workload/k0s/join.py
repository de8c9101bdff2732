"""The join API of k0s (port 9443): who shows a token for controllers gets the cluster's keys."""

from __future__ import annotations

import base64
import hmac
import socket
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.source import read
from homeport.apiserver.auth.token.serviceaccount import decoded
from homeport.runtime.clock import parse_time
from homeport.sim.machine.workload.etcd import EtcdError
from homeport.sim.machine.workload.standin.wire import HttpsService, Message
from homeport.sim.machine.workload.trust.authority import Authority
from homeport.sim.network import Network
from homeport.sim.network.balancer import answering

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

_CA, _MEMBERS = "/v1beta1/ca", "/v1beta1/etcd/members"


class JoinRefused(Exception):
    """The join API answers with an error."""


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Contents of ca.crt, ca.key, sa.key and sa.pub, and of etcd's ca.crt and ca.key."""

    authority: tuple[bytes, bytes, bytes, bytes]
    etcd: tuple[bytes, ...]


class JoinApi(HttpsService):
    """A service of the network, on every controller of a cluster."""

    def __init__(self, cluster: WorkloadCluster) -> None:
        super().__init__(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self._respond)
        self.cluster = cluster
        self._hosts: tuple[str, ...] = ()

    async def accept(self, sock: socket.socket, source: str) -> None:
        pki = self.cluster.pki
        if self._hosts != pki.hosts:
            self._hosts = pki.hosts
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            pki.load_server(self._tls)
        await super().accept(sock, source)

    def authority(self, token: str, expected: bytes = b"") -> CertificateFiles:
        """What `GET /v1beta1/ca` answers, etcd's authority included. Raises JoinRefused."""
        if expected and self.cluster.pki.issuer.certificate not in x509.load_pem_x509_certificates(expected):
            raise JoinRefused("tls: failed to verify certificate: x509: certificate signed by unknown authority")
        if not self._knows(token):
            raise JoinRefused("the server has asked for the client to provide credentials (401 Unauthorized)")
        pki, etcd = self.cluster.pki, self.cluster.etcd_authority
        public = pki.signing_key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return CertificateFiles(
            (pki.ca_pem, certs.key_pem(pki.issuer.key), certs.key_pem(pki.signing_key), public), _pair(etcd)
        )

    def _knows(self, token: str) -> bool:
        """Tokens are Secrets, as those of nodes, with a usage of their own."""
        identity, _, given = token.partition(".")
        secret = read(self.cluster.server.store, "secrets", "kube-system", f"bootstrap-token-{identity}") or {}
        known = hmac.compare_digest(decoded(secret, "token-secret").encode(), given.encode())
        usages = (decoded(secret, f"usage-{prefix}controller-join") for prefix in ("", "bootstrap-"))
        return known and bool(given) and "true" in usages and not self._expired(decoded(secret, "expiration"))

    def _expired(self, expiration: str) -> bool:
        try:
            return bool(expiration) and parse_time(expiration) <= self.cluster.clock.now()
        except ValueError:
            return True

    async def _respond(self, request: Message) -> tuple[int, bytes]:
        method, path = request.start.split(" ")[0], request.path
        joinable = not self.cluster.facts.external_etcd
        if path not in (_CA, _MEMBERS) or not joinable:
            return 404, b"404 page not found\n"
        if method != ("GET" if path == _CA else "POST"):
            return 405, b"Method Not Allowed\n"
        try:
            files = self.authority(request.headers.get("authorization", "").removeprefix("Bearer "))
            body = _ca_body(files) if path == _CA else self._add_member(request.body, files)
        except JoinRefused:
            return 401, b"go away\n"
        except (EtcdError, ValueError, KeyError) as problem:
            return 500, str(problem).encode()
        return 200, orjson.dumps(body)

    def _add_member(self, body: bytes, files: CertificateFiles) -> dict[str, object]:
        """A member that nobody starts stays a learner, as in the real one."""
        wanted = orjson.loads(body)
        host = str(wanted["peerAddress"]).partition("://")[2].rpartition(":")[0]
        self.cluster.etcd.add(str(wanted["node"]), host)
        members = [f"{each.name}={each.peer_url}" for each in self.cluster.etcd.members.values()]
        certificate, key = files.etcd
        return {"ca": {"cert": _encoded(certificate), "key": _encoded(key)}, "initialCluster": members}


def _ca_body(files: CertificateFiles) -> dict[str, str]:
    certificate, key, signing_key, signing_public = map(_encoded, files.authority)
    return {"cert": certificate, "key": key, "saKey": signing_key, "saPub": signing_public}


def _pair(authority: Authority | None) -> tuple[bytes, ...]:
    return () if authority is None else (authority.pem, certs.key_pem(authority.issuer.key))


def _encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def join_api_at(network: Network, source: str, host: str, port: int) -> JoinApi | None:
    """The join API that answers `source` at host:port; None for something else. Raises OSError."""
    service = answering(network, source, host, port)
    return service if isinstance(service, JoinApi) else None
