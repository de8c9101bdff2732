"""Charts that ConfigMaps and Secrets hold: as an archive, or as files. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final

from homeport.helm.errors import SourceError
from homeport.helm.source.disk import unpacked

ARCHIVES: Final = (".tgz", ".tar.gz")
# What stands at the top of a chart. Every other key is a template: keys have no folders in their names.
_TOP: Final = ("Chart.yaml", "Chart.lock", "values.yaml", "values.schema.json", "README.md", "LICENSE", ".helmignore")


def held_files(obj: Mapping[str, Any], kind: str) -> dict[str, bytes]:
    """All keys of a ConfigMap or Secret. Raises SourceError, which never shows a value."""
    where = _where(obj, kind)
    found: dict[str, bytes] = {}
    for part in ("data", "binaryData"):
        for key, value in (obj.get(part) or {}).items():
            encoded = kind == "Secret" or part == "binaryData"
            found[key] = _decoded(where, key, value) if encoded else str(value).encode()
    if not found:
        raise SourceError(f"{where} has no data: add a chart to it")
    return found


def held_chart(obj: Mapping[str, Any], kind: str, path: str = "") -> dict[str, bytes]:
    """The files of a chart by their paths. `path`: its folder in the archive. Raises SourceError."""
    where, found = _where(obj, kind), held_files(obj, kind)
    archives = sorted(key for key in found if key.endswith(ARCHIVES))
    if len(archives) > 1:
        raise SourceError(f"{where} has several archives ({', '.join(archives)}): leave one")
    if archives:
        return _below(unpacked(found[archives[0]], f"{where}, key {archives[0]}"), path, where)
    if "Chart.yaml" not in found:
        seen = ", ".join(sorted(found))
        raise SourceError(f"{where} holds no chart: expected a key that ends in .tgz, or Chart.yaml; keys are {seen}")
    return {(key if key in _TOP else f"templates/{key}"): content for key, content in found.items()}


def _below(files: dict[str, bytes], path: str, where: str) -> dict[str, bytes]:
    folder = path.strip("./")
    if not folder:
        return files
    found = {key[len(folder) + 1 :]: content for key, content in files.items() if key.startswith(f"{folder}/")}
    if not found:
        raise SourceError(f"{where}: the archive has no folder {folder}")
    return found


def _where(obj: Mapping[str, Any], kind: str) -> str:
    meta = obj.get("metadata") or {}
    return f"{kind} {meta.get('namespace', '')}/{meta.get('name', '')}"


def _decoded(where: str, key: str, value: Any) -> bytes:
    try:
        return base64.b64decode(str(value), validate=True)
    except binascii.Error:
        raise SourceError(f"{where}: key {key} is not valid base64") from None
