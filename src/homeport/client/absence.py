"""Objects that may be absent: reading one that need not exist, and deleting one that may be gone already."""

from __future__ import annotations

from typing import Any, TypeVar, Unpack, overload

from homeport.api.meta import Object, Resource, Unstructured
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Delete, Key

O = TypeVar("O", bound=Object)


@overload
async def find_object(client: Client, kind: type[O], key: Key) -> O | None: ...
@overload
async def find_object(client: Client, kind: Resource, key: Key) -> Unstructured | None: ...


async def find_object(client: Client, kind: Any, key: Key) -> Any:
    """None if there is no such object."""
    try:
        return await client.get(kind, key)
    except NotFound:
        return None


async def drop_object(client: Client, kind: type[Object] | Resource, key: Key, **options: Unpack[Delete]) -> None:
    """An object that is gone already is as good as a deleted one."""
    try:
        await client.delete(kind, key, **options)
    except NotFound:
        return
