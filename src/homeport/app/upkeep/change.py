"""Writes the changes of an upgrade."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from homeport.app.upkeep.upgrade import Change
from homeport.client.protocol import Client, Key, MergePatch, Write
from homeport.client.restmapper import RestMapper

_WRITE = Write(field_manager="homeport-upgrade")


async def apply_changes(client: Client, changes: Sequence[Change]) -> AsyncIterator[str]:
    """In their order; yields a line for each. Raises ApiError."""
    mapper = RestMapper(client)
    for each in changes:
        meta = each.after["metadata"]
        kind = await mapper.find(each.after["apiVersion"], each.after["kind"])
        if each.patch is None:
            await client.create(each.after, _WRITE, kind=kind)
        else:
            await client.patch(kind, Key(meta["namespace"], meta["name"]), MergePatch(each.patch), _WRITE)
        yield f"{each.after['kind']}/{meta['name']} {'created' if each.patch is None else 'changed'}"
