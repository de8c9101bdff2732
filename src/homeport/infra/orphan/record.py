"""What InfraClusters carry about machines without objects, as annotations: which objects were deleted while their
machines stayed, what a user asks to be done about orphans, and what was found.

A deletion is recorded in the same store as the objects. So a store that goes back in time takes the records along: in
it, a machine whose object is missing without a record was made later than the store knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.infra.orphan.witness import Role
from homeport.infra.protocol import Owned
from homeport.runtime.clock import parse_time, rfc3339

DELETED = "infra.homeport.dev/deleted-machines"
REQUEST = "infra.homeport.dev/orphans-request"
ANSWER = "infra.homeport.dev/orphans"


@dataclass(frozen=True, slots=True)
class Deletion:
    """An InfraMachine went without our having seen its machine gone: somebody removed its finalizer."""

    time: float
    control_plane: bool = False
    id: str = ""  # of its machine at the vendor; '': not known

    def concerns(self, machine: Owned) -> bool:
        """Users copy machines, and a copy carries the mark of the original."""
        return not self.id or machine.remains or self.id in (machine.id, machine.name)


def machine_id(infra: Any) -> str:
    """The end of the provider ID: the vendor's id, or a name where upstream's provider wrote it."""
    return str(infra.spec.provider_id or "").rpartition("/")[2]


def parse_deletions(annotations: Mapping[str, str]) -> dict[str, Deletion]:
    """By UID. What can't be read counts as not recorded."""
    found = _parsed(annotations.get(DELETED, ""))
    made = {}
    for uid, each in found.items():
        try:
            named = str(each.get("id") or "")
            made[uid] = Deletion(parse_time(each["time"]), bool(each.get("controlPlane")), named)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue
    return made


def render_deletions(deletions: Mapping[str, Deletion]) -> str | None:
    """None: the annotation goes."""
    if not deletions:
        return None
    rows = {
        uid: {"time": rfc3339(each.time), "controlPlane": each.control_plane, "id": each.id}
        for uid, each in sorted(deletions.items())
    }
    return json.dumps(rows, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Request:
    """A fresh look for orphans; with `remove`, these machines go, by id. `force`: though they may be in use.

    `seek`: ids, names and addresses; the answer repeats those that a machine of the cluster has, orphan or not.
    """

    id: str = ""
    remove: tuple[str, ...] = ()
    force: bool = False
    seek: tuple[str, ...] = ()

    @classmethod
    def parse(cls, annotations: Mapping[str, str]) -> Request:
        found = _parsed(annotations.get(REQUEST, ""))
        force = found.get("force") is True
        return cls(str(found.get("id") or ""), _texts(found.get("remove")), force, _texts(found.get("seek")))

    def render(self) -> str:
        said = {"id": self.id, "remove": list(self.remove), "force": self.force, "seek": list(self.seek)}
        return json.dumps({key: value for key, value in said.items() if value}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Found:
    """One orphan as it is published. `kept`: why it is not removed by itself; `removing`: it is on its way out."""

    owned: Owned
    role: Role | None = None
    kept: str = ""
    removing: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    request: str = ""
    found: tuple[Found, ...] = ()
    error: str = ""
    present: tuple[str, ...] = ()  # of what was sought

    @classmethod
    def parse(cls, annotations: Mapping[str, str]) -> Answer:
        read = _parsed(annotations.get(ANSWER, ""))
        rows = read.get("machines")
        found = tuple(_found(each) for each in rows if isinstance(each, dict)) if isinstance(rows, list) else ()
        return cls(str(read.get("request") or ""), found, str(read.get("error") or ""), _texts(read.get("present")))

    def render(self) -> str:
        rows = [_row(each) for each in self.found]
        said = {"request": self.request, "machines": rows, "error": self.error, "present": list(self.present)}
        return json.dumps(said, separators=(",", ":"))


def _row(found: Found) -> dict[str, Any]:
    owned, role = found.owned, found.role
    row: dict[str, Any] = {
        "id": owned.id,
        "name": owned.name,
        "uid": owned.uid,
        "addresses": list(owned.addresses),
        "power": owned.power,
        "kept": found.kept,
        "removing": found.removing,
    }
    if role is not None:
        row["role"] = {
            "node": role.node,
            "controlPlane": role.control_plane,
            "etcd": role.etcd,
            "version": role.version,
            "providerID": role.provider_id,
            "ownerKind": role.owner_kind,
            "ownerName": role.owner_name,
        }
    return row


def _found(row: Mapping[str, Any]) -> Found:
    addresses: Sequence[Any] = row.get("addresses") or ()
    owned = Owned(
        id=_text(row, "id"),
        name=_text(row, "name"),
        uid=_text(row, "uid"),
        addresses=tuple(str(each) for each in addresses),
        power=row.get("power") or "unknown",
    )
    told = row.get("role")
    role = None
    if isinstance(told, dict):
        role = Role(
            node=_text(told, "node"),
            control_plane=bool(told.get("controlPlane")),
            etcd=bool(told.get("etcd")),
            version=_text(told, "version"),
            provider_id=_text(told, "providerID"),
            owner_kind=_text(told, "ownerKind"),
            owner_name=_text(told, "ownerName"),
        )
    return Found(owned, role, _text(row, "kept"), bool(row.get("removing")))


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(str(each) for each in value) if isinstance(value, list) else ()


def _text(row: Mapping[str, Any], key: str) -> str:
    return str(row.get(key) or "")


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
