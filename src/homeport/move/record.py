"""The record of a move: a ConfigMap on the source, from before the first change until everything is done.

It is what makes a move resumable: it names the target, what was paused, and, from the moment at which the target has
everything, all objects that moved.
"""

from __future__ import annotations

import base64
import gzip
from typing import Literal

import msgspec

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import AlreadyExists, Conflict, NotFound
from homeport.client.protocol import Key
from homeport.move.errors import MoveRefused
from homeport.move.kind import MovedKind
from homeport.move.node import Node
from homeport.move.side import CONFIG_MAP, MANAGER, Side, find

KEY = Key("kube-system", "homeport-move")
_LIMIT_BYTES = 900_000  # of a ConfigMap's 1 MiB


class Moved(msgspec.Struct, frozen=True, array_like=True):
    """An object that moves: where it is served, its name, its UID on the source, and what it needs at the end."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    namespace: str
    name: str
    uid: str
    kept: bool = False  # it also stays on the source

    @property
    def resource(self) -> Resource:
        return Resource(self.group, self.version, self.kind, self.plural, self.namespaced)

    @property
    def key(self) -> Key:
        return Key(self.namespace, self.name)

    @property
    def is_cluster(self) -> bool:
        return MovedKind(self.resource).is_cluster

    def __str__(self) -> str:
        return f"{self.kind} {self.key}"


def moved(node: Node, *, kept: bool = False) -> Moved:
    at, key = node.kind.resource, node.key
    return Moved(at.group, at.version, at.kind, at.plural, at.namespaced, key.namespace, key.name, node.uid, kept)


class Record(msgspec.Struct, frozen=True):
    """`paused`: what the move paused, and therefore resumes. `objects`, in the order of creation, once it deletes."""

    move: str
    target: str  # see side.identity
    target_name: str
    namespace: str
    started: str
    holder: str  # the process that works on it; a later one takes over
    phase: Literal["Copying", "Deleting"] = "Copying"
    paused: tuple[Moved, ...] = ()
    objects: tuple[Moved, ...] = ()


class Held:
    """A record that this process holds. Every write fails when another process took over."""

    def __init__(self, side: Side, stored: Unstructured) -> None:
        self._side = side
        self._stored = stored
        self.record = _decode(stored)

    async def write(self, record: Record) -> None:
        body = {**_render(record), "metadata": {**self._stored.metadata}}
        try:
            self._stored = await self._side.replace(body, MANAGER, kind=CONFIG_MAP)
        except (Conflict, NotFound):
            raise _taken_over() from None
        self.record = record

    async def check(self) -> None:
        """Before a change that must not come late."""
        found = await find(self._side, CONFIG_MAP, KEY)
        if found is None or found.resource_version != self._stored.resource_version:
            raise _taken_over()

    async def remove(self) -> None:
        try:
            await self._side.delete(CONFIG_MAP, KEY, uid=self._stored.uid)
        except NotFound:
            return


async def begin(side: Side, record: Record) -> Held:
    try:
        return Held(side, await side.create(_render(record), MANAGER, kind=CONFIG_MAP))
    except AlreadyExists:
        raise _taken_over() from None


async def read(side: Side) -> Held | None:
    found = await find(side, CONFIG_MAP, KEY)
    return Held(side, found) if found is not None else None


def _taken_over() -> MoveRefused:
    return MoveRefused(["another process continues this move: wait for it, or stop it and run this command again"])


def _render(record: Record) -> dict[str, object]:
    packed = gzip.compress(msgspec.json.encode(record), mtime=0)
    if len(packed) > _LIMIT_BYTES:
        raise MoveRefused(["there are too many objects for one move: move one namespace at a time with --namespace"])
    shown = {"move": record.move, "phase": record.phase, "target": record.target_name, "namespace": record.namespace}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": KEY.name, "namespace": KEY.namespace},
        "data": {**shown, "started": record.started},
        "binaryData": {"record": base64.b64encode(packed).decode()},
    }


def _decode(stored: Unstructured) -> Record:
    packed = (stored.get("binaryData") or {}).get("record") or ""
    try:
        return msgspec.json.decode(gzip.decompress(base64.b64decode(packed)), type=Record)
    except (ValueError, OSError, EOFError) as error:
        text = f"ConfigMap {KEY} of the source is not the record of a move ({error}): restore it from a backup"
        raise MoveRefused([text]) from error
