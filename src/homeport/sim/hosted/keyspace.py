"""The state of a simulated etcd: keys, users and roles. Pure: whoever keeps or serves it is elsewhere."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable

import msgspec

READ, WRITE, READ_WRITE = 0, 1, 2
ROOT = "root"


class Refused(Exception):
    """A request that etcd refuses, in its words and with its gRPC code."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"etcdserver: {message}")
        self.code = code


class KeyValue(msgspec.Struct):
    value: bytes
    created: int
    modified: int
    version: int = 1


class Permission(msgspec.Struct, frozen=True):
    kind: int
    key: bytes
    end: bytes = b""

    def covers(self, key: bytes, end: bytes) -> bool:
        if not self.end:
            return not end and key == self.key
        above = self.end == b"\0" and key >= self.key
        inside = self.key <= key < self.end
        if not (above or inside):
            return False
        return not end or self.end == b"\0" or (end != b"\0" and end <= self.end)


class EtcdUser(msgspec.Struct):
    password: str = ""  # digest; '': none, only certificates
    roles: list[str] = []


class Keyspace(msgspec.Struct):
    """One etcd. `keys` has what no cluster has taken up: clusters hold their own keys."""

    name: str
    revision: int = 1
    enabled: bool = False
    auth_revision: int = 1
    users: dict[str, EtcdUser] = {}
    roles: dict[str, list[Permission]] = {}
    claims: list[str] = []  # NAMESPACE/NAME of volumes that hold it; empty: a volume of the Pod
    keys: dict[str, KeyValue] = {}  # latin-1: keys are bytes
    # Faults.
    leaderless: bool = False  # the members can't agree on anything
    full: bool = False  # alarm NOSPACE: nothing is written until an administrator disarms it

    # -- keys --------------------------------------------------------------------------------------------------

    def range(self, key: bytes, end: bytes) -> list[tuple[bytes, KeyValue]]:
        found = ((name.encode("latin-1"), each) for name, each in self.keys.items())
        return sorted((name, each) for name, each in found if within(name, key, end))

    def put(self, key: bytes, value: bytes) -> None:
        self.revision += 1
        known = self.keys.get(key.decode("latin-1"))
        created, version = (known.created, known.version + 1) if known is not None else (self.revision, 1)
        self.keys[key.decode("latin-1")] = KeyValue(value, created, self.revision, version)

    def delete(self, keys: Iterable[bytes]) -> None:
        self.revision += 1
        for key in keys:
            self.keys.pop(key.decode("latin-1"), None)

    # -- faults ------------------------------------------------------------------------------------------------

    def check_leader(self) -> None:
        if self.leaderless:
            raise Refused(14, "etcdserver: no leader")

    def check_space(self) -> None:
        if self.full:
            raise Refused(8, "etcdserver: mvcc: database space exceeded")

    @property
    def errors(self) -> list[str]:
        """As Maintenance/Status gives them."""
        found = ["etcdserver: no leader"] if self.leaderless else []
        return [*found, "memberID:10276657743932975437 alarm:NOSPACE "] if self.full else found

    # -- access ------------------------------------------------------------------------------------------------

    def require(self, user: str, kind: int, key: bytes, end: bytes = b"") -> None:
        if not self.enabled or self._is_root(user):
            return
        if not user:
            raise Refused(3, "user name is empty")
        granted = [each for role in self._roles_of(user) for each in self.roles.get(role, ())]
        if not any(each.kind in (kind, READ_WRITE) and each.covers(key, end) for each in granted):
            raise Refused(7, "permission denied")

    def require_root(self, user: str) -> None:
        if self.enabled and not user:
            raise Refused(3, "user name is empty")
        if self.enabled and not self._is_root(user):
            raise Refused(7, "permission denied")

    def _is_root(self, user: str) -> bool:
        return ROOT in self._roles_of(user)

    def _roles_of(self, user: str) -> list[str]:
        found = self.users.get(user)
        return found.roles if found is not None else []

    def enable(self) -> None:
        if ROOT not in self.users:
            raise Refused(9, "root user does not exist")
        if ROOT not in self.users[ROOT].roles:
            raise Refused(9, "root user does not have root role")
        self.enabled = True
        self._touch()

    def disable(self) -> None:
        self.enabled = False
        self._touch()

    def check_password(self, user: str, password: str) -> None:
        if not self.enabled:
            raise Refused(9, "authentication is not enabled")
        found = self.users.get(user)
        salt, _, digest = (found.password if found is not None else "").partition(":")
        if not digest or not secrets.compare_digest(_digest(salt, password), digest):
            raise Refused(3, "authentication failed, invalid user ID or password")

    # -- users and roles ---------------------------------------------------------------------------------------

    def add_user(self, name: str, password: str) -> None:
        if not name:
            raise Refused(3, "user name is empty")
        if name in self.users:
            raise Refused(9, "user name already exists")
        self.users[name] = EtcdUser()
        self.change_password(name, password)

    def change_password(self, name: str, password: str) -> None:
        salt = secrets.token_hex(8)
        self.user(name).password = f"{salt}:{_digest(salt, password)}" if password else ""
        self._touch()

    def user(self, name: str) -> EtcdUser:
        found = self.users.get(name)
        if found is None:
            raise Refused(9, "user name not found")
        return found

    def delete_user(self, name: str) -> None:
        self.user(name)
        if self.enabled and name == ROOT:
            raise Refused(3, "invalid auth management")
        del self.users[name]
        self._touch()

    def grant_role(self, name: str, role: str) -> None:
        found = self.user(name)
        if role != ROOT:
            self.role(role)
        found.roles = sorted({*found.roles, role})
        self._touch()

    def revoke_role(self, name: str, role: str) -> None:
        found = self.user(name)
        if role not in found.roles:
            raise Refused(9, "role is not granted to the user")
        found.roles = [each for each in found.roles if each != role]
        self._touch()

    def add_role(self, name: str) -> None:
        if not name:
            raise Refused(3, "role name is empty")
        if name in self.roles:
            raise Refused(9, "role name already exists")
        self.roles[name] = []
        self._touch()

    def role(self, name: str) -> list[Permission]:
        found = self.roles.get(name)
        if found is None:
            raise Refused(9, "role name not found")
        return found

    def delete_role(self, name: str) -> None:
        self.role(name)
        del self.roles[name]
        for user in self.users.values():
            user.roles = [each for each in user.roles if each != name]
        self._touch()

    def grant(self, name: str, permission: Permission) -> None:
        kept = [each for each in self.role(name) if (each.key, each.end) != (permission.key, permission.end)]
        self.roles[name] = sorted([*kept, permission], key=lambda each: (each.key, each.end))
        self._touch()

    def revoke(self, name: str, key: bytes, end: bytes) -> None:
        kept = [each for each in self.role(name) if (each.key, each.end) != (key, end)]
        if len(kept) == len(self.roles[name]):
            raise Refused(9, "permission is not granted to the role")
        self.roles[name] = kept
        self._touch()

    def _touch(self) -> None:
        self.auth_revision += 1


def within(name: bytes, key: bytes, end: bytes) -> bool:
    """Whether a key is in etcd's range: one key, from `key` on (end 0), or up to `end`."""
    if not end:
        return name == key
    return name >= key and (end == b"\0" or name < end)


def _digest(salt: str, password: str) -> str:
    return hashlib.sha256(f"{salt}{password}".encode()).hexdigest()
