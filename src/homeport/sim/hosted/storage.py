"""How a kube-apiserver reaches its datastore: the checks that TLS and etcd make, without the bytes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from homeport.apiserver.auth import certificate as certs
from homeport.runtime.clock import Clock
from homeport.sim.hosted.etcd import EtcdPort, common_name
from homeport.sim.hosted.keyspace import READ_WRITE, WRITE, Keyspace, Refused
from homeport.sim.hosted.pod import PodHost
from homeport.sim.hosted.program import Program, ProgramError, parse_bundle, signed_by
from homeport.sim.network import Balancer, Service, split_endpoint
from homeport.store import StoreUnavailable

_PATIENCE_SECONDS = 20.0  # as kube-apiserver has
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Storage:
    """Where a control plane keeps its objects. `etcd` None: a database behind kine."""

    name: str
    prefix: str
    etcd: Keyspace | None
    user: str = ""  # of etcd

    def check_write(self) -> None:
        """Raises StoreUnavailable, in the words of etcd."""
        if self.etcd is None:
            return
        try:
            self.etcd.check_leader()
            self.etcd.check_space()
            self.etcd.require(self.user, WRITE, f"{self.prefix}/".encode(), f"{self.prefix}0".encode())
        except Refused as refused:
            raise StoreUnavailable(f"etcdserver: {str(refused).removeprefix('etcdserver: ')}") from refused


class KinePort:
    """kine beside the API server: the database that it names keeps the objects."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def accept(self, sock: object, source: str) -> None:
        raise ConnectionRefusedError("only the API server of the same Pod speaks to kine")


class NotYet(Exception):
    """The datastore does not answer; dialled again for a while."""


async def connect(pod: PodHost, program: Program, clock: Clock) -> Storage:
    """Raises ProgramError, at once for what can't become right, or when patience ends."""
    servers = [each.strip() for each in program.flag("etcd-servers").split(",") if each.strip()]
    if not servers:
        raise ProgramError("--etcd-servers must be specified")
    for flag in ("etcd-cafile", "etcd-certfile", "etcd-keyfile"):
        if program.flag(flag):
            program.file(flag)
    prefix = "/" + program.flag("etcd-prefix", "/registry").strip("/")
    deadline = clock.monotonic() + _PATIENCE_SECONDS
    last = ""
    while True:
        for server in servers:
            try:
                return _reach(pod, program, server, prefix)
            except NotYet as why:
                if str(why) != last:
                    last = str(why)
                    program.launch.log(
                        f"W logging.go:55] [core] grpc: addrConn.createTransport failed to connect: {last}"
                    )
        if clock.monotonic() >= deadline:
            raise ProgramError("context deadline exceeded")
        await asyncio.sleep(_PAUSE_SECONDS)


def _reach(pod: PodHost, program: Program, server: str, prefix: str) -> Storage:
    if server.startswith(("unix://", "unix:")):
        return _kine(pod.sockets.get(server.partition(":")[2].removeprefix("//").strip("/")), server, prefix)
    try:
        host, port = split_endpoint(server, 2379)
    except ValueError as wrong:
        raise ProgramError(f"invalid etcd server {server!r}: {wrong}") from wrong
    dial = f"Error while dialing: dial tcp {host}:{port}"
    try:
        found = _behind(pod.find(host, port))
    except OSError as error:
        raise NotYet(f'connection error: desc = "transport: {dial}: {error.strerror or error}"') from error
    if isinstance(found, KinePort):
        return _kine(found, server, prefix)
    if not isinstance(found, EtcdPort):
        raise NotYet(f'connection error: desc = "transport: {dial}: connection reset by peer"')
    user = _handshake(program, found, host, server)
    try:
        found.keyspace.check_leader()
        found.keyspace.require(user, READ_WRITE, f"{prefix}/".encode(), f"{prefix}0".encode())
    except Refused as refused:
        raise ProgramError(f"unable to read the storage at prefix {prefix} as user {user!r}: {refused}") from refused
    return Storage(found.name, prefix, found.keyspace, user)


def _behind(service: Service) -> Service:
    if isinstance(service, Balancer):
        behind = service.behind()
        if behind is None:
            raise ConnectionResetError("connection reset by peer: no endpoint of the Service is ready")
        return behind
    return service


def _kine(found: object, server: str, prefix: str) -> Storage:
    if not isinstance(found, KinePort):
        raise NotYet(f'connection error: desc = "transport: Error while dialing: dial {server}: no such file"')
    return Storage(found.name, prefix, None)


def _handshake(program: Program, etcd: EtcdPort, host: str, server: str) -> str:
    """What TLS would check on both sides. The user that etcd sees."""
    secure = server.startswith("https://")
    if secure != etcd.secure:
        why = "first record does not look like a TLS handshake" if secure else "error reading server preface: EOF"
        raise NotYet(f'connection error: desc = "transport: authentication handshake failed: {why}"')
    if not secure:
        return ""
    assert etcd.certificate is not None
    failed = "transport: authentication handshake failed: tls: failed to verify certificate: x509:"
    cafile = program.flag("etcd-cafile")
    if not cafile or not signed_by(etcd.certificate, parse_bundle(program.read(cafile), cafile)):
        raise NotYet(f'connection error: desc = "{failed} certificate signed by unknown authority"')
    names = certs.host_names(etcd.certificate)
    if host not in names:
        shown = ", ".join(sorted(names))
        raise NotYet(f'connection error: desc = "{failed} certificate is valid for {shown}, not {host}"')
    if not etcd.authorities:
        return ""
    if not program.flag("etcd-certfile"):
        raise NotYet('connection error: desc = "error reading server preface: remote error: tls: certificate required"')
    certificate, _ = program.pair("etcd-certfile", "etcd-keyfile")
    if not signed_by(certificate, etcd.authorities):
        raise NotYet('connection error: desc = "error reading server preface: remote error: tls: bad certificate"')
    return common_name(certificate)
