"""URLs of the Kubernetes API: paths and query strings for kinds, keys and options."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import quote

from homeport.api.meta import Object, Resource
from homeport.client.errors import BadRequest
from homeport.client.protocol import Key, Query, Write

DEFAULT_MANAGER = "homeport"
_SAFE = ":@!$&'()*+,;=~"


def resource_of(kind: type[Object] | Resource) -> Resource:
    return kind if isinstance(kind, Resource) else kind.__resource__


def object_path(resource: Resource, key: Key, subresource: str = "") -> str:
    if resource.namespaced and not key.namespace:
        raise BadRequest(f"{resource.qualified} {key.name!r}: a namespace is needed, {resource.kind} is namespaced")
    if not key.name:
        raise BadRequest(f"{resource.qualified}: a name is needed")
    return resource.path(segment(key.namespace), segment(key.name), subresource)


def collection_path(resource: Resource, namespace: str, *, write: bool = False) -> str:
    if write and resource.namespaced and not namespace:
        raise BadRequest(f"{resource.qualified}: metadata.namespace is needed, {resource.kind} is namespaced")
    return resource.path(segment(namespace))


@lru_cache(maxsize=1024)
def segment(name: str) -> str:
    """A name as part of a path. What would change the meaning of the path is refused, as client-go does."""
    if name in (".", "..") or "/" in name or "%" in name:
        raise BadRequest(f"invalid resource name {name!r}: may not be '.' or '..' and may not contain '/' or '%'")
    return quote(name, safe=_SAFE)


def with_query(path: str, pairs: list[tuple[str, str]]) -> str:
    kept = "&".join([f"{name}={_quoted(value)}" for name, value in pairs if value])
    return f"{path}?{kept}" if kept else path


def _quoted(value: str) -> str:
    """Numbers and words stay as they are, and selectors come again and again."""
    return value if value.isascii() and value.isalnum() else _quoted_once(value)


@lru_cache(maxsize=1024)
def _quoted_once(value: str) -> str:
    return quote(value, safe="")


def list_pairs(query: Query) -> list[tuple[str, str]]:
    return [
        ("labelSelector", query.labels),
        ("fieldSelector", query.fields),
        ("resourceVersion", query.resource_version),
        ("resourceVersionMatch", query.match),
        ("limit", str(query.limit) if query.limit else ""),
        ("continue", query.continue_),
    ]


def watch_pairs(query: Query, resource_version: str, initial_events: bool, seconds: int) -> list[tuple[str, str]]:
    return [
        ("watch", "true"),
        ("allowWatchBookmarks", "true"),
        ("labelSelector", query.labels),
        ("fieldSelector", query.fields),
        ("resourceVersion", resource_version),
        # A streaming list is always "not older than"; otherwise the caller's word goes out as it is.
        ("resourceVersionMatch", "NotOlderThan" if initial_events else query.match),
        ("sendInitialEvents", "true" if initial_events else ""),
        ("timeoutSeconds", str(seconds)),
    ]


def write_pairs(options: Write, manager: str = DEFAULT_MANAGER) -> list[tuple[str, str]]:
    return [
        ("fieldManager", options.field_manager or manager),
        ("dryRun", "All" if options.dry_run else ""),
        ("fieldValidation", options.field_validation),
    ]
