"""The object of a page as text and as a patch. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homeport.api.meta import Unstructured
from homeport.machinery.yaml import YamlError, load_all

_OWN = ("name", "namespace", "labels", "annotations")  # of metadata: the rest is the server's


def read_objects(options: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of `objects`, or of the text `manifest`. Raises YamlError."""
    given = options.get("objects")
    found = given if isinstance(given, list) else load_all(str(options.get("manifest") or "").encode(), "the manifest")
    for each in found:
        if not isinstance(each, dict) or not isinstance(each.get("metadata"), dict) or not each["metadata"].get("name"):
            raise YamlError("each object of the manifest needs apiVersion, kind and metadata.name")
    if not found:
        raise YamlError("the manifest has no object")
    return found


def complete(changed: Mapping[str, Any], objects: Iterable[Unstructured]) -> dict[str, Any]:
    """A patch that makes the stored object equal to this one, except for fields that the server sets."""
    body: dict[str, Any] = {name: value for name, value in changed.items() if name not in ("status", "metadata")}
    body["metadata"] = {name: changed["metadata"][name] for name in _OWN if name in changed["metadata"]}
    before = _same(body, objects)
    return body if before is None else {**_without_lost(body, before), "metadata": body["metadata"]}


def _same(body: Mapping[str, Any], objects: Iterable[Unstructured]) -> Unstructured | None:
    meta = body["metadata"]
    for each in objects:
        place = (each.get("apiVersion"), each.get("kind"), each.namespace, each.name)
        if place == (body.get("apiVersion"), body.get("kind"), meta.get("namespace", ""), meta.get("name")):
            return each
    return None


def _without_lost(after: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """`after`, with null for each field that `before` has besides: so a merge patch removes it."""
    made: dict[str, Any] = {name: None for name in before if name not in after and name not in ("status", "metadata")}
    for name, value in after.items():
        old = before.get(name)
        both = isinstance(value, Mapping) and isinstance(old, Mapping)
        made[name] = _without_lost(value, old) if both else value  # type: ignore[arg-type]
    return made
