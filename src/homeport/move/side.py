"""What a move needs of a plane: a part of Client, which directories also offer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from homeport.api.meta import Resource, Unstructured
from homeport.client.errors import NotFound
from homeport.client.protocol import ALL, DEFAULT_WRITE, Key, Page, Patch, Query, Write

MANAGER = Write(field_manager="homeport-move")

NAMESPACE = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
SECRET = Resource("", "v1", "Secret", "secrets")
CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
DEFINITION = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


class Side(Protocol):
    """The source or the target of a move. Every method raises an ApiError of client/errors.py."""

    async def get(self, kind: Resource, key: Key, /) -> Unstructured: ...

    async def list(self, kind: Resource, query: Query = ALL, /) -> Page[Unstructured]: ...

    async def create(
        self, obj: Mapping[str, Any], options: Write = DEFAULT_WRITE, /, *, kind: Resource
    ) -> Unstructured: ...

    async def replace(
        self, obj: Mapping[str, Any], options: Write = DEFAULT_WRITE, /, *, kind: Resource
    ) -> Unstructured: ...

    async def patch(
        self, kind: Resource, key: Key, patch: Patch, options: Write = DEFAULT_WRITE, /, *, subresource: str = ""
    ) -> Unstructured: ...

    async def delete(self, kind: Resource, key: Key, /, *, uid: str = "") -> Unstructured: ...


async def identity(side: Side) -> str:
    """What distinguishes this plane from all others, whatever address it has: the UID of its first namespace."""
    return (await side.get(NAMESPACE, Key("", "kube-system"))).uid


async def find(side: Side, kind: Resource, key: Key) -> Unstructured | None:
    try:
        return await side.get(kind, key)
    except NotFound:
        return None


async def listed(side: Side, kind: Resource, namespace: str = "") -> list[Unstructured]:
    """Nothing, where the kind is not served."""
    try:
        page = await side.list(kind, Query(namespace=namespace if kind.namespaced else ""))
    except NotFound:
        return []
    return list(page.items)
