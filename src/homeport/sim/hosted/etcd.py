"""etcd in a Pod: its flags, and what it answers over gRPC."""

from __future__ import annotations

import asyncio
import secrets
import ssl
from collections.abc import Callable, Iterable
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.x509.oid import NameOID

from homeport.apiserver.auth import certificate as certs
from homeport.machinery.protowire import Value, field, nested, number_of, parse
from homeport.sim.hosted.datastore import Datastores
from homeport.sim.hosted.keyspace import READ, WRITE, Keyspace, KeyValue, Permission, Refused
from homeport.sim.hosted.program import Program, ProgramError, parse_bundle
from homeport.sim.machine.etcdwire.grpc import Call, Status
from homeport.sim.machine.etcdwire.port import GrpcPort

PORT = 2379
_VERSION = "3.6.5"
_MEMBER = 0x8E9E05C52164694D

Fields = dict[int, list[Value]]


class EtcdPort(GrpcPort):
    """What answers at the client port. `authorities` empty: clients need no certificate."""

    def __init__(self, datastores: Datastores, name: str, program: Program) -> None:
        """Raises ProgramError."""
        super().__init__(f"etcd {name}")
        self._datastores = datastores
        self.name = name
        self._tokens: dict[str, str] = {}  # token > user
        self.certificate: x509.Certificate | None = None
        self.authorities: list[x509.Certificate] = []
        self._tls = self._context(program)

    @property
    def keyspace(self) -> Keyspace:
        return self._datastores.open(self.name)

    def _context(self, program: Program) -> ssl.SSLContext | None:
        if not program.flag("listen-client-urls", "http://").startswith("https://"):
            return None
        self.certificate, key = program.pair("cert-file", "key-file")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["h2"])
        certs.load_pair(context, certs.key_pem(key) + program.file("cert-file"))
        if program.switch("client-cert-auth") or program.flag("trusted-ca-file"):
            trusted = program.file("trusted-ca-file")
            self.authorities = parse_bundle(trusted, program.flag("trusted-ca-file"))
            context.verify_mode = ssl.CERT_REQUIRED
            context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", ssl.VerifyFlags(0))
            context.load_verify_locations(cadata=trusted.decode())
        return context

    @property
    def secure(self) -> bool:
        return self._tls is not None

    def tls(self) -> ssl.SSLContext | None:
        return self._tls

    async def settled(self) -> None:
        await self._datastores.keep()

    def calls_for(self, writer: asyncio.StreamWriter) -> dict[str, Call]:
        return EtcdCalls(self._datastores, self.name, _common_name(writer.transport)).calls()


def _common_name(transport: asyncio.BaseTransport) -> str:
    found = transport.get_extra_info("peercert") or {}
    names = [value for parts in found.get("subject", ()) for key, value in parts if key == "commonName"]
    return str(names[-1]) if names else ""


def common_name(certificate: x509.Certificate) -> str:
    return next((str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)), "")


class EtcdCalls:
    """The calls of one connection, whose user is the common name of its certificate."""

    def __init__(self, datastores: Datastores, name: str, user: str) -> None:
        self._datastores = datastores
        self._name = name
        self._user = user

    @property
    def _keys(self) -> Keyspace:
        return self._datastores.open(self._name)

    def calls(self) -> dict[str, Call]:
        found: dict[str, Callable[[Fields], bytes]] = {
            "KV/Range": self._range,
            "KV/Put": self._put,
            "KV/DeleteRange": self._delete_range,
            "KV/Txn": self._txn,
            "Lease/LeaseGrant": self._grant_lease,
            "Auth/AuthStatus": self._auth_status,
            "Auth/Authenticate": self._authenticate,
            "Auth/UserGet": self._user_get,
            "Auth/RoleGet": self._role_get,
            "Cluster/MemberList": self._member_list,
            "Maintenance/Status": self._status,
            "Maintenance/Alarm": lambda fields: b"",
            "Maintenance/Defragment": self._root(lambda fields: None),
            "Auth/UserList": self._root(lambda fields: _listed(self._keys.users)),
            "Auth/RoleList": self._root(lambda fields: _listed(self._keys.roles)),
            "Auth/AuthEnable": self._root(lambda fields: self._keys.enable()),
            "Auth/AuthDisable": self._root(lambda fields: self._keys.disable()),
            "Auth/UserAdd": self._root(lambda f: self._keys.add_user(_text(f, 1), _text(f, 2))),
            "Auth/UserDelete": self._root(lambda f: self._keys.delete_user(_text(f, 1))),
            "Auth/UserChangePassword": self._root(lambda f: self._keys.change_password(_text(f, 1), _text(f, 2))),
            "Auth/UserGrantRole": self._root(lambda f: self._keys.grant_role(_text(f, 1), _text(f, 2))),
            "Auth/UserRevokeRole": self._root(lambda f: self._keys.revoke_role(_text(f, 1), _text(f, 2))),
            "Auth/RoleAdd": self._root(lambda f: self._keys.add_role(_text(f, 1))),
            "Auth/RoleDelete": self._root(lambda f: self._keys.delete_role(_text(f, 1))),
            "Auth/RoleGrantPermission": self._root(self._grant),
            "Auth/RoleRevokePermission": self._root(
                lambda f: self._keys.revoke(_text(f, 1), _bytes(f, 2), _bytes(f, 3))
            ),
        }
        return {f"/etcdserverpb.{name}": _answered(self._led(name, call), self._header) for name, call in found.items()}

    def _led(self, name: str, work: Callable[[Fields], bytes]) -> Callable[[Fields], bytes]:
        """What the members must agree on. Each of them answers for itself how it is."""

        def call(fields: Fields) -> bytes:
            if not name.startswith("Maintenance/"):
                self._keys.check_leader()
            return work(fields)

        return call

    def _root(self, work: Callable[[Fields], bytes | None]) -> Callable[[Fields], bytes]:
        def call(fields: Fields) -> bytes:
            self._keys.require_root(self._user)
            return work(fields) or b""

        return call

    def _header(self) -> bytes:
        return nested(1, field(1, _MEMBER) + field(2, _MEMBER) + field(3, self._keys.revision) + field(4, 2))

    # -- keys --------------------------------------------------------------------------------------------------

    def _range(self, fields: Fields) -> bytes:
        key, end = _bytes(fields, 1), _bytes(fields, 2)
        self._keys.require(self._user, READ, key, end)
        found = self._datastores.range(self._keys, key, end)
        limit = number_of(fields, 3) or len(found)
        count = field(4, len(found))
        if number_of(fields, 9):
            return count
        bare = bool(number_of(fields, 8))
        shown = b"".join(nested(2, _key_value(name, each, bare)) for name, each in found[:limit])
        return shown + field(3, len(found) > limit) + count

    def _put(self, fields: Fields) -> bytes:
        key = _bytes(fields, 1)
        if not key:
            raise Refused(3, "key is not provided")
        self._keys.require(self._user, WRITE, key)
        self._keys.check_space()
        self._keys.put(key, _bytes(fields, 2))
        return b""

    def _delete_range(self, fields: Fields) -> bytes:
        key, end = _bytes(fields, 1), _bytes(fields, 2)
        self._keys.require(self._user, WRITE, key, end)
        return field(2, self._datastores.delete(self._keys, key, end))

    def _txn(self, fields: Fields) -> bytes:
        good = all(self._compare(parse(each)) for each in _messages(fields, 1))
        answers = b"".join(nested(3, self._operate(parse(each))) for each in _messages(fields, 2 if good else 3))
        return field(2, good) + answers

    def _compare(self, fields: Fields) -> bool:
        """Versions and revisions only: what leases and creations are guarded with."""
        key, target = _bytes(fields, 3), number_of(fields, 2)
        self._keys.require(self._user, READ, key)
        found = dict(self._datastores.range(self._keys, key, b"")).get(key)
        seen = (found.version, found.created, found.modified)[target % 3] if found is not None else 0
        wanted = number_of(fields, 4 + target)
        return (seen == wanted, seen > wanted, seen < wanted, seen != wanted)[number_of(fields, 1) % 4]

    def _operate(self, fields: Fields) -> bytes:
        for number, call in ((1, self._range), (2, self._put), (3, self._delete_range)):
            if number in fields:
                return nested(number, self._header() + call(parse(_bytes(fields, number))))
        raise Refused(3, "unknown operation in transaction")

    def _grant_lease(self, fields: Fields) -> bytes:
        """Keys with a lease are kept for good: only copies of Events have one."""
        return field(2, secrets.randbits(62)) + field(3, number_of(fields, 1))

    # -- access ------------------------------------------------------------------------------------------------

    def _auth_status(self, fields: Fields) -> bytes:
        return field(2, self._keys.enabled) + field(3, self._keys.auth_revision)

    def _authenticate(self, fields: Fields) -> bytes:
        name = _text(fields, 1)
        self._keys.check_password(name, _text(fields, 2))
        self._user = name  # of this connection: all tokens are the same
        return field(2, f"{secrets.token_hex(8)}.{self._keys.revision}")

    def _user_get(self, fields: Fields) -> bytes:
        name = _text(fields, 1)
        if name != self._user:
            self._keys.require_root(self._user)
        return b"".join(nested(2, each.encode()) for each in self._keys.user(name).roles)

    def _role_get(self, fields: Fields) -> bytes:
        name = _text(fields, 1)
        own = self._keys.users.get(self._user)
        if own is None or name not in own.roles:
            self._keys.require_root(self._user)
        shown = (field(1, each.kind) + field(2, each.key) + field(3, each.end) for each in self._keys.role(name))
        return b"".join(nested(2, each) for each in shown)

    def _grant(self, fields: Fields) -> None:
        given = parse(_bytes(fields, 2))
        permission = Permission(number_of(given, 1), _bytes(given, 2), _bytes(given, 3))
        self._keys.grant(_text(fields, 1), permission)

    # -- the cluster -------------------------------------------------------------------------------------------

    def _member_list(self, fields: Fields) -> bytes:
        return nested(2, field(1, _MEMBER) + field(2, "default"))

    def _status(self, fields: Fields) -> bytes:
        revision = self._keys.revision
        leader = 0 if self._keys.leaderless else _MEMBER
        used = field(3, 8 << 20) + field(4, leader) + field(5, revision) + field(6, 2) + field(7, revision)
        errors = b"".join(nested(8, each.encode()) for each in self._keys.errors)
        return field(2, _VERSION) + used + errors + field(9, 4 << 20)


def _answered(call: Callable[[Fields], bytes], header: Callable[[], bytes]) -> Call:
    def answer(request: bytes) -> bytes:
        try:
            body = call(parse(request))
        except Refused as refused:
            raise Status(refused.code, str(refused)) from refused
        return header() + body

    return answer


def _key_value(name: bytes, each: KeyValue, bare: bool) -> bytes:
    marks = field(2, each.created) + field(3, each.modified) + field(4, each.version)
    return field(1, name) + marks + (b"" if bare else field(5, each.value))


def _listed(names: Iterable[str]) -> bytes:
    return b"".join(nested(2, name.encode()) for name in sorted(names))


def _messages(fields: Fields, number: int) -> list[bytes]:
    return [each for each in fields.get(number, ()) if isinstance(each, bytes)]


def _bytes(fields: Fields, number: int) -> bytes:
    value = fields.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _text(fields: Fields, number: int) -> str:
    return _bytes(fields, number).decode()


def client_ports(program: Program) -> list[int]:
    """Where clients and probes come in."""
    found = program.flag("listen-client-urls", f"http://localhost:{PORT}").split(",")
    try:
        return list(dict.fromkeys(urlsplit(each.strip()).port or PORT for each in found))
    except ValueError as broken:
        raise ProgramError(f"error verifying flags, {broken}") from broken


def metric_ports(program: Program) -> list[int]:
    found = [each for each in program.flag("listen-metrics-urls").split(",") if each.startswith("http://")]
    return [port for each in found if (port := urlsplit(each.strip()).port)]
