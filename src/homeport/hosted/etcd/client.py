"""What a datastore is asked: keys, leases, users and roles. One connection to one endpoint of an etcd cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from homeport.capi.remote.etcd import Caller, call_etcd
from homeport.machinery.protowire import Value, field, nested, number_of, parse

READ, READ_WRITE = 0, 2
PAGE_KEYS = 32
_PERMISSIONS = {0: "read", 1: "write", 2: "readwrite"}


@dataclass(frozen=True, slots=True)
class KeyValue:
    key: bytes
    value: bytes
    create_revision: int = 0
    mod_revision: int = 0
    lease: int = 0


@dataclass(frozen=True, slots=True)
class Permission:
    kind: str  # read, write, readwrite
    key: bytes
    range_end: bytes


@dataclass(frozen=True, slots=True)
class Health:
    """`errors`: alarms that are raised, and what else is wrong, in the words of etcd."""

    leader: bool
    errors: tuple[str, ...] = ()


def prefix_end(prefix: bytes) -> bytes:
    """The first key after all that begin with `prefix`."""
    found = bytearray(prefix)
    while found and found[-1] == 0xFF:
        found.pop()
    if not found:
        return b"\0"
    found[-1] += 1
    return bytes(found)


class Etcd:
    """Raises GrpcError when etcd refuses, ConnectionError when the connection is lost."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def close(self) -> None:
        await self._caller.close()

    async def version(self) -> str:
        return _text(await self._call("Maintenance/Status", b""), 2)

    async def health(self) -> Health:
        """As the member that is asked sees it."""
        found = await self._call("Maintenance/Status", b"")
        return Health(bool(number_of(found, 4)), tuple(each.strip() for each in _texts(found, 8)))

    # -- keys --------------------------------------------------------------------------------------------------

    async def get(self, key: bytes) -> KeyValue | None:
        found = _pairs(await self._call("KV/Range", field(1, key)))
        return found[0] if found else None

    async def page(self, start: bytes, end: bytes, limit: int = PAGE_KEYS, revision: int = 0) -> list[KeyValue]:
        """The first `limit` keys from `start` on, before `end`; at a revision, so that pages belong together."""
        return _pairs(
            await self._call("KV/Range", field(1, start) + field(2, end) + field(3, limit) + field(4, revision))
        )

    async def count(self, prefix: bytes, revision: int = 0) -> int:
        request = field(1, prefix) + field(2, prefix_end(prefix)) + field(4, revision) + field(9, True)
        return number_of(await self._call("KV/Range", request), 4)

    async def revision(self) -> int:
        """The newest one."""
        found = await self._call("KV/Range", field(1, b"\0") + field(9, True))
        return number_of(_message(found, 1), 3)

    async def put(self, key: bytes, value: bytes, lease: int = 0) -> None:
        await self._call("KV/Put", _put(key, value, lease))

    async def put_all(self, pairs: Sequence[KeyValue], lease: int = 0) -> None:
        """In one transaction: at most 128. Keys that had a lease get `lease`."""
        operations = b"".join(
            nested(2, nested(2, _put(each.key, each.value, lease if each.lease else 0))) for each in pairs
        )
        await self._call("KV/Txn", operations)

    async def create(self, key: bytes, value: bytes) -> bool:
        """False: the key is there already, and stays as it is."""
        absent = field(2, 1) + field(3, key)  # create revision equals 0
        found = await self._call("KV/Txn", nested(1, absent) + nested(2, nested(2, _put(key, value, 0))))
        return bool(number_of(found, 2))

    async def delete(self, key: bytes) -> None:
        await self._call("KV/DeleteRange", field(1, key))

    async def delete_prefix(self, prefix: bytes) -> int:
        """Returns how many keys there were."""
        if not prefix.strip(b"/"):
            raise ValueError("refusing to delete all keys")
        return number_of(await self._call("KV/DeleteRange", field(1, prefix) + field(2, prefix_end(prefix))), 2)

    async def grant_lease(self, seconds: int) -> int:
        return number_of(await self._call("Lease/LeaseGrant", field(1, seconds)), 2)

    # -- users and roles ---------------------------------------------------------------------------------------

    async def auth_enabled(self) -> bool:
        return bool(number_of(await self._call("Auth/AuthStatus", b""), 2))

    async def enable_auth(self) -> None:
        await self._call("Auth/AuthEnable", b"")

    async def users(self) -> list[str]:
        return _texts(await self._call("Auth/UserList", b""), 2)

    async def roles(self) -> list[str]:
        return _texts(await self._call("Auth/RoleList", b""), 2)

    async def add_user(self, name: str) -> None:
        """Without a password: it logs in with a client certificate of this common name."""
        await self._call("Auth/UserAdd", field(1, name) + nested(3, field(1, True)))

    async def delete_user(self, name: str) -> None:
        await self._call("Auth/UserDelete", field(1, name))

    async def user_roles(self, name: str) -> list[str]:
        return _texts(await self._call("Auth/UserGet", field(1, name)), 2)

    async def grant_role(self, user: str, role: str) -> None:
        await self._call("Auth/UserGrantRole", field(1, user) + field(2, role))

    async def add_role(self, name: str) -> None:
        await self._call("Auth/RoleAdd", field(1, name))

    async def delete_role(self, name: str) -> None:
        await self._call("Auth/RoleDelete", field(1, name))

    async def role_permissions(self, name: str) -> list[Permission]:
        found = await self._call("Auth/RoleGet", field(1, name))
        shown = [parse(each) for each in found.get(2, ()) if isinstance(each, bytes)]
        return [
            Permission(_PERMISSIONS.get(number_of(each, 1), ""), _bytes(each, 2), _bytes(each, 3)) for each in shown
        ]

    async def grant_prefix(self, role: str, prefix: bytes, kind: int) -> None:
        """Replaces what the role was allowed on the very same range."""
        permission = field(1, kind) + field(2, prefix) + field(3, prefix_end(prefix))
        await self._call("Auth/RoleGrantPermission", field(1, role) + nested(2, permission))

    async def _call(self, method: str, request: bytes) -> dict[int, list[Value]]:
        return await call_etcd(self._caller, method, request)


def _put(key: bytes, value: bytes, lease: int) -> bytes:
    return field(1, key) + field(2, value) + field(3, lease)


def _pairs(found: dict[int, list[Value]]) -> list[KeyValue]:
    shown = [parse(each) for each in found.get(2, ()) if isinstance(each, bytes)]
    return [
        KeyValue(_bytes(each, 1), _bytes(each, 5), number_of(each, 2), number_of(each, 3), number_of(each, 6))
        for each in shown
    ]


def _message(found: dict[int, list[Value]], number: int) -> dict[int, list[Value]]:
    value = found.get(number, [b""])[-1]
    return parse(value) if isinstance(value, bytes) else {}


def _bytes(found: dict[int, list[Value]], number: int) -> bytes:
    value = found.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _texts(found: dict[int, list[Value]], number: int) -> list[str]:
    return [each.decode("utf-8", "replace") for each in found.get(number, ()) if isinstance(each, bytes)]


def _text(found: dict[int, list[Value]], number: int) -> str:
    return next(iter(reversed(_texts(found, number))), "")
