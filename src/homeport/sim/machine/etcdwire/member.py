"""One member of etcd on the wire: MemberList, MemberRemove, Status, Alarm and MoveLeader."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Protocol

from homeport.apiserver.auth.certificate import load_pair
from homeport.machinery.protowire import field, nested, number_of, parse
from homeport.runtime.clock import Clock
from homeport.sim.machine.etcdwire.grpc import Call, Status
from homeport.sim.machine.etcdwire.port import GrpcPort
from homeport.sim.machine.workload.etcd import Etcd, EtcdError, Member
from homeport.sim.machine.workload.trust.authority import Authority, now_of

PORT = 2379
_VERSION = "3.5.21"
_ALARMS = {"NOSPACE": 1, "CORRUPT": 2}
# Refusals and the gRPC codes that they come with.
_CODES = (
    ("no leader", 14),
    ("member not found", 5),
    ("not enough started members", 9),
    ("bad leader transferee", 9),
    ("not leader", 9),
)


class Revision(Protocol):
    @property
    def revision(self) -> int: ...


class EtcdService(GrpcPort):
    """Answers at port 2379 of a control plane. The TLS context is made when the first client comes."""

    def __init__(
        self,
        etcd: Etcd,
        node: str,
        store: Revision,
        authority: Authority,
        hosts: Callable[[], list[str]],
        clock: Clock,
        changed: Callable[[], None],
    ) -> None:
        super().__init__(f"etcd {node}")
        self._etcd = etcd
        self._node = node
        self._store = store
        self._authority = authority
        self._hosts = hosts
        self._clock = clock
        self._changed = changed  # told when members or leader are others
        self._tls: ssl.SSLContext | None = None

    def calls_for(self, writer: asyncio.StreamWriter) -> dict[str, Call]:
        del writer
        return self.calls()

    def tls(self) -> ssl.SSLContext:
        if self._tls is None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.minimum_version = ssl.TLSVersion.TLSv1_2
            context.num_tickets = 1  # as Go's servers
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=self._authority.pem.decode())
            context.set_alpn_protocols(["h2"])
            issued = self._authority.issuer.server(
                ["localhost", "127.0.0.1", "::1", self._node, *self._hosts()], now_of(self._clock)()
            )
            load_pair(context, issued.pem)
            self._tls = context
        return self._tls

    # -- calls -------------------------------------------------------------------------------------------------

    def calls(self) -> dict[str, Call]:
        found = {
            "Cluster/MemberList": self._member_list,
            "Cluster/MemberRemove": self._member_remove,
            "Maintenance/Status": self._status,
            "Maintenance/Alarm": self._alarm,
            "Maintenance/MoveLeader": self._move_leader,
        }
        return {f"/etcdserverpb.{name}": call for name, call in found.items()}

    def _member_list(self, request: bytes) -> bytes:
        linearizable = number_of(parse(request), 1)
        if linearizable:
            self._require_quorum()
        return self._header() + self._members()

    def _member_remove(self, request: bytes) -> bytes:
        self._require_quorum()
        self._do(lambda: self._etcd.remove(number_of(parse(request), 1)))
        return self._header() + self._members()

    def _status(self, request: bytes) -> bytes:
        own = self._own()
        leader = self._etcd.members.get(self._etcd.leader) if self._etcd.quorum_at(self._node) else None
        revision = self._store.revision
        found = self._header() + field(2, _VERSION) + field(3, 8 * 1024 * 1024) + field(4, leader.id if leader else 0)
        found += field(5, revision) + field(6, self._etcd.term) + field(7, revision)
        if leader is None:
            found += field(8, "etcdserver: no leader")
        for member_id, alarm in sorted(self._etcd.alarms):
            found += field(8, f"memberID:{member_id} alarm:{alarm} ")
        return found + field(9, 4 * 1024 * 1024) + field(10, own.learner)

    def _alarm(self, request: bytes) -> bytes:
        """GET, ACTIVATE and DEACTIVATE."""
        self._require_quorum()
        fields = parse(request)
        action, member_id, wanted = (number_of(fields, number) for number in (1, 2, 3))
        names = [name for name, number in _ALARMS.items() if wanted in (0, number)]
        if action == 1 and wanted:
            self._etcd.alarms.add((member_id, names[0]))
        elif action == 2:
            gone = {alarm for alarm in self._etcd.alarms if member_id in (0, alarm[0]) and alarm[1] in names}
            self._etcd.alarms -= gone
        shown = [alarm for alarm in sorted(self._etcd.alarms) if alarm[1] in names]
        return self._header() + b"".join(nested(2, field(1, each) + field(2, _ALARMS[name])) for each, name in shown)

    def _move_leader(self, request: bytes) -> bytes:
        self._require_quorum()
        if self._etcd.elect() != self._node:
            raise Status(9, "etcdserver: not leader")
        self._do(lambda: self._etcd.move_leader(number_of(parse(request), 1)))
        return self._header()

    # -- parts -------------------------------------------------------------------------------------------------

    def _own(self) -> Member:
        found = self._etcd.members.get(self._node)
        if found is None:
            raise Status(14, "etcdserver: server stopped")
        return found

    def _require_quorum(self) -> None:
        self._own()
        if not self._etcd.quorum_at(self._node):
            raise Status(14, "etcdserver: no leader")

    def _header(self) -> bytes:
        own = self._etcd.members.get(self._node)
        body = field(1, self._etcd.cluster_id) + field(2, own.id if own else 0)
        return nested(1, body + field(3, self._store.revision) + field(4, self._etcd.term))

    def _members(self) -> bytes:
        found = b""
        for each in self._etcd.members.values():
            body = field(1, each.id) + field(2, each.name) + field(3, each.peer_url) + field(4, each.client_url)
            found += nested(2, body + field(5, each.learner))
        return found

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except EtcdError as refused:
            code = next((code for words, code in _CODES if words in str(refused)), 2)
            raise Status(code, str(refused)) from refused
        self._changed()
