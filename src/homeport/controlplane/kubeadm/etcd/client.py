"""What a control plane provider asks of etcd: members, leader, alarms; and to move or remove them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from homeport.capi.remote.etcd import call_etcd
from homeport.capi.remote.grpc import Channel
from homeport.machinery.protowire import Value, field, number_of, parse

PORT = 2379

Alarm = Literal["NOSPACE", "CORRUPT"]
_ALARMS: dict[int, Alarm] = {1: "NOSPACE", 2: "CORRUPT"}
_GET, _DEACTIVATE = 0, 2


@dataclass(frozen=True, slots=True)
class Member:
    """A member without a name has been announced, and did not start yet."""

    id: int
    name: str
    learner: bool = False
    peer_urls: tuple[str, ...] = ()
    client_urls: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemberAlarm:
    member: int
    alarm: Alarm


@dataclass(frozen=True, slots=True)
class Status:
    """Of one member, by itself. `leader` 0: it knows none."""

    version: str
    member: int
    leader: int
    db_bytes: int
    learner: bool
    errors: tuple[str, ...]


class EtcdClient:
    """One member. Raises GrpcError when it refuses, ConnectionError when it is lost."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def members(self) -> list[Member]:
        """As the quorum knows them: a member without quorum refuses."""
        return _members(await self._call("Cluster/MemberList", field(1, True)))

    async def remove_member(self, member: int) -> list[Member]:
        return _members(await self._call("Cluster/MemberRemove", field(1, member)))

    async def status(self) -> Status:
        found = await self._call("Maintenance/Status", b"")
        header = _message(found, 1)
        return Status(
            version=_text(found, 2),
            member=number_of(header, 2),
            leader=number_of(found, 4),
            db_bytes=number_of(found, 3),
            learner=bool(number_of(found, 10)),
            errors=tuple(_texts(found, 8)),
        )

    async def alarms(self) -> list[MemberAlarm]:
        found = await self._call("Maintenance/Alarm", field(1, _GET))
        shown = [parse(each) for each in found.get(2, ()) if isinstance(each, bytes)]
        return [
            MemberAlarm(number_of(each, 1), _ALARMS[number_of(each, 2)])
            for each in shown
            if number_of(each, 2) in _ALARMS
        ]

    async def disarm(self, alarm: MemberAlarm) -> None:
        kind = next(number for number, name in _ALARMS.items() if name == alarm.alarm)
        await self._call("Maintenance/Alarm", field(1, _DEACTIVATE) + field(2, alarm.member) + field(3, kind))

    async def move_leader(self, member: int) -> None:
        """Only the leader itself does that."""
        await self._call("Maintenance/MoveLeader", field(1, member))

    async def close(self) -> None:
        await self._channel.close()

    async def _call(self, method: str, request: bytes) -> dict[int, list[Value]]:
        return await call_etcd(self._channel, method, request)


def _members(found: dict[int, list[Value]]) -> list[Member]:
    shown = [parse(each) for each in found.get(2, ()) if isinstance(each, bytes)]
    return [
        Member(
            id=number_of(each, 1),
            name=_text(each, 2),
            learner=bool(number_of(each, 5)),
            peer_urls=tuple(_texts(each, 3)),
            client_urls=tuple(_texts(each, 4)),
        )
        for each in shown
    ]


def _message(found: dict[int, list[Value]], number: int) -> dict[int, list[Value]]:
    value = found.get(number, [b""])[-1]
    return parse(value) if isinstance(value, bytes) else {}


def _text(found: dict[int, list[Value]], number: int) -> str:
    return next(iter(reversed(_texts(found, number))), "")


def _texts(found: dict[int, list[Value]], number: int) -> list[str]:
    return [each.decode("utf-8", "replace") for each in found.get(number, ()) if isinstance(each, bytes)]
