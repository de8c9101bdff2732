"""Objects in texts of YAML or JSON, such as the keys of a ConfigMap, in an order in which they can be created."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import orjson

from homeport.machinery import yaml
from homeport.machinery.gvk import parse_api_version

Json = dict[str, Any]

# Others need these to be there before them. What is not named comes next, in the order in which it was written.
_FIRST = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "StorageClass",
    "ResourceQuota",
    "LimitRange",
    "ServiceAccount",
    "Secret",
    "ConfigMap",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Service",
)
# These intercept requests to the API server: apply them after the workloads that serve them.
_LAST = ("APIService", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration")
_RANKS = {kind: rank for rank, kind in enumerate(_FIRST)} | {kind: 1001 + rank for rank, kind in enumerate(_LAST)}


class ManifestError(ValueError):
    """What is written can't be read as objects. The message begins with the key under which it stands."""


class Content(NamedTuple):
    """The texts by their keys, and a digest of them all."""

    texts: Mapping[str, bytes]
    digest: str


def content(obj: Mapping[str, Any]) -> Content:
    """What a ConfigMap or Secret holds. The digest is as all of Cluster API makes it, so that bindings can move."""
    secret = obj.get("kind") == "Secret"
    data = obj.get("data") or {}
    texts = {key: _decoded(key, data[key]) if secret else str(data[key]).encode() for key in sorted(data)}
    return Content(texts, f"sha256:{hashlib.sha256(b''.join(texts.values())).hexdigest()}")


def parse_objects(texts: Mapping[str, bytes]) -> list[Json]:
    """All objects of all keys, in an order in which they can be created. Raises ManifestError."""
    if not texts:
        raise ManifestError("it has no data: add manifests to its keys")
    found: list[Json] = []
    for key, text in texts.items():
        for number, each in enumerate(_unfolded(_documents(key, text)), start=1):
            _check(key, number, each)
            found.append(each)
    return sorted(found, key=lambda obj: _RANKS.get(obj["kind"], 1000))


def described(obj: Mapping[str, Any]) -> str:
    """`DaemonSet kube-system/kindnet`: how people find it."""
    meta = obj.get("metadata") or {}
    name = meta.get("name") or f"{meta.get('generateName', '')}*"
    return f"{obj.get('kind')} {meta['namespace']}/{name}" if meta.get("namespace") else f"{obj.get('kind')} {name}"


def find_twice(objects: Iterable[Json], namespace: str = "default") -> Json | None:
    """An object that is written twice with different content: whichever is applied last would change the other.

    `namespace`: of objects that name none.
    """
    seen: dict[tuple[str, ...], Json] = {}
    for obj in objects:
        meta = obj.get("metadata") or {}
        name = str(meta.get("name") or "")
        group = str(obj.get("apiVersion", "")).rpartition("/")[0]
        identity = (group, str(obj.get("kind")), str(meta.get("namespace") or namespace), name)
        if name and seen.setdefault(identity, obj) != obj:
            return obj
    return None


def _decoded(key: str, value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ManifestError(f"{key}: {error}") from None


def _documents(key: str, text: bytes) -> list[Json]:
    try:
        if text.lstrip().startswith(b"["):  # a list of objects, in JSON
            listed = orjson.loads(text)
            if not all(isinstance(each, dict) for each in listed):
                raise ManifestError(f"{key}: every item of the list must be an object")
            return list(listed)
        return yaml.load_all(text, key)
    except orjson.JSONDecodeError as error:
        raise ManifestError(f"{key}: {error}") from None
    except UnicodeDecodeError:
        raise ManifestError(f"{key}: it is not text") from None
    except yaml.YamlError as error:
        raise ManifestError(str(error)) from None


def _unfolded(objects: Iterable[Json]) -> Iterator[Json]:
    """A List stands for its items."""
    for each in objects:
        if each.get("kind") == "List" and isinstance(each.get("items"), list):
            yield from _unfolded(item for item in each["items"] if isinstance(item, dict))
        else:
            yield each


def _check(key: str, number: int, obj: Json) -> None:
    where = f"{key}: object {number}"
    for field in ("apiVersion", "kind"):
        if not isinstance(obj.get(field), str) or not obj[field]:
            raise ManifestError(f"{where}: {field} is missing")
    try:
        parse_api_version(obj["apiVersion"])
    except ValueError as error:
        raise ManifestError(f"{where}: {error}") from None
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or not (meta.get("name") or meta.get("generateName")):
        raise ManifestError(f"{where} ({obj['kind']}): metadata.name is missing")
