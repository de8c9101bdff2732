"""From a bucket of the store to the kind that is served from it, and back from objects to references."""

from __future__ import annotations

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.resource import ServedKind
from homeport.client.protocol import Key


def served_from(server: EmbeddedServer, bucket: str) -> ServedKind | None:
    plural, _, group = bucket.partition(".")
    return server.catalog.by_plural(group, plural)


def address(served: ServedKind) -> Resource | None:
    """Where the objects of a kind are reached: the stored version if it is served, else any that is."""
    versions = [served.versions[served.storage]] if served.storage in served.versions else []
    for version in (*versions, *served.versions.values()):
        if version.served:
            return version.resource
    return None


def resource_of(server: EmbeddedServer, bucket: str) -> Resource | None:
    """None: the kind is not served any more (its definition went)."""
    served = served_from(server, bucket)
    return address(served) if served is not None else None


def key_of(name: str) -> Key:
    """Of a name in the store: `namespace/name`, or `name`."""
    namespace, slash, rest = name.partition("/")
    return Key(namespace, rest) if slash else Key("", name)


def reference(server: EmbeddedServer, bucket: str, name: str, uid: str) -> Unstructured:
    """Enough of an object to record an Event about it."""
    resource = resource_of(server, bucket)
    key = key_of(name)
    meta = {"name": key.name, "namespace": key.namespace, "uid": uid}
    return Unstructured(
        apiVersion=resource.api_version if resource else "", kind=resource.kind if resource else "", metadata=meta
    )
