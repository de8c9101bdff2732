"""What is wrong with the volumes of a Pod.

Of the many kinds of volume the ones of Kubernetes itself are checked, those of single vendors are taken as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.apiserver.kinds.check import dns_label, duplicate, forbidden, invalid, named, required
from homeport.apiserver.kinds.pod.projection import downward_file, key_file, projections
from homeport.apiserver.kinds.pod.projection import file_mode as _mode
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

_HOST_PATHS = ("", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice")


def volumes(field: str, found: list[Json]) -> tuple[dict[str, Json], list[Cause]]:
    """The usable volumes by name, and what is wrong with the others."""
    usable: dict[str, Json] = {}
    causes: list[Cause] = []
    for i, volume in enumerate(found):
        subfield, name = f"{field}[{i}]", volume.get("name", "")
        wrong = list(_source(subfield, volume))
        if name:
            wrong += named(f"{subfield}.name", name, dns_label)
        else:
            wrong.append(required(f"{subfield}.name"))
        if name in usable:
            wrong.append(duplicate(f"{subfield}.name", name))
        if wrong:
            causes += wrong
        else:
            usable[name] = volume
    return usable, causes


def _source(field: str, volume: Json) -> Iterator[Cause]:
    given = [kind for kind in volume if kind != "name"]
    if not given:
        yield required(field, "must specify a volume type")
    for kind in given[1:]:
        yield forbidden(f"{field}.{kind}", "may not specify more than 1 volume type")
    for kind in given[:1]:
        yield from _one(f"{field}.{kind}", kind, volume[kind])


def _one(field: str, kind: str, source: Json) -> Iterator[Cause]:
    if kind == "hostPath":
        if source.get("path"):
            if ".." in source["path"].split("/"):
                yield invalid(f"{field}.path", source["path"], "must not contain '..'")
        else:
            yield required(f"{field}.path")
        if source.get("type", "") not in _HOST_PATHS:
            yield invalid(f"{field}.type", source["type"], "not a known type of host path")
    elif kind == "secret":
        if not source.get("secretName"):
            yield required(f"{field}.secretName")
        yield from _files(field, source)
    elif kind == "configMap":
        if not source.get("name"):
            yield required(f"{field}.name")
        yield from _files(field, source)
    elif kind == "persistentVolumeClaim":
        if not source.get("claimName"):
            yield required(f"{field}.claimName")
    elif kind == "nfs":
        for part in ("server", "path"):
            if not source.get(part):
                yield required(f"{field}.{part}")
        if source.get("path") and not source["path"].startswith("/"):
            yield invalid(f"{field}.path", source["path"], "must be an absolute path")
    elif kind == "csi":
        if not source.get("driver"):
            yield required(f"{field}.driver")
    elif kind == "downwardAPI":
        yield from _mode(f"{field}.defaultMode", source.get("defaultMode"))
        for item in source.get("items") or ():
            yield from downward_file(field, item)
    elif kind == "projected":
        yield from _mode(f"{field}.defaultMode", source.get("defaultMode"))
        yield from projections(field, source.get("sources") or [])


def _files(field: str, source: Json) -> Iterator[Cause]:
    yield from _mode(f"{field}.defaultMode", source.get("defaultMode"))
    for i, item in enumerate(source.get("items") or ()):
        yield from key_file(f"{field}.items[{i}]", item)
