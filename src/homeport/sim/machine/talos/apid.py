"""apid, the API of a Talos machine at port 50000: gRPC, by mutual TLS once the machine is configured."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import Callable

from cryptography import x509
from cryptography.x509.oid import NameOID

from homeport.apiserver.auth.certificate import load_pair
from homeport.machinery.talos.certificate import KeyPair, make_authority, make_server, openssl_key
from homeport.sim.machine.etcdwire.grpc import Call
from homeport.sim.machine.etcdwire.port import GrpcPort
from homeport.sim.machine.vm import Machine
from homeport.sim.machine.workload.trust.authority import now_of

PORT = 50000
_MAINTENANCE_NAME = "maintenance-service.talos.dev"
# Longer than the real ones: in virtual time a certificate may be years old when OpenSSL looks at it.
_VALID = datetime.timedelta(days=3650)

Roles = frozenset[str]
Calls = Callable[[Roles], dict[str, Call]]


class Apid(GrpcPort):
    """`authority` signs the server's certificate and those of its clients; without one the machine is in maintenance,
    and serves anybody with a certificate that nobody can verify."""

    def __init__(self, machine: Machine, calls: Calls, authority: KeyPair | None, hosts: tuple[str, ...] = ()) -> None:
        super().__init__(f"apid of {machine.name}")
        self._machine = machine
        self._calls = calls
        self._authority = authority
        self._hosts = hosts
        self._tls: tuple[tuple[str, ...], ssl.SSLContext] | None = None

    def calls_for(self, writer: asyncio.StreamWriter) -> dict[str, Call]:
        return self._calls(_roles(writer))

    def tls(self) -> ssl.SSLContext:
        machine = self._machine
        hosts = (*machine.host.addresses, machine.hostname.lower(), *self._hosts)
        if self._tls is None or self._tls[0] != hosts:
            self._tls = (hosts, self._make_context(hosts))
        return self._tls[1]

    def _make_context(self, hosts: tuple[str, ...]) -> ssl.SSLContext:
        now = now_of(self._machine.clock)()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.set_alpn_protocols(["h2"])
        if self._authority is None:
            pair = make_server(make_authority("", now, ed25519_key=True), [_MAINTENANCE_NAME], now, _VALID)
        else:
            pair = make_server(self._authority, dict.fromkeys(hosts), now, _VALID)
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self._authority.certificate.decode())
        load_pair(context, pair.certificate + openssl_key(pair.key))
        return context


def _roles(writer: asyncio.StreamWriter) -> Roles:
    """Those of the client's certificate: its organizations."""
    raw = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    if not raw:
        return frozenset()
    subject = x509.load_der_x509_certificate(raw).subject
    return frozenset(str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME))
