"""Fields of a Pod, and resources of its containers, that environment variables and files can show."""

from __future__ import annotations

import re
from collections.abc import Iterator

from homeport.apiserver.kinds.check import invalid, label_key, named, required, unsupported
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause
from homeport.machinery.quantity import canonical

VARIABLES = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
FILES = ("metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid")
_KNOWN = frozenset({*VARIABLES, *FILES, "spec.restartPolicy", "spec.schedulerName", "status.phase"})
_RESOURCES = (
    "limits.cpu", "limits.ephemeral-storage", "limits.memory", "requests.cpu", "requests.ephemeral-storage",
    "requests.memory",
)  # fmt: skip
_HUGE = ("limits.hugepages-", "requests.hugepages-")
_SIZES = ("1", *(f"1{unit}" for unit in ("k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")))
_UNITS = {"memory": "memory", "ephemeral-storage": "local ephemeral storage", "hugepages": "hugepages"}
_SUBSCRIPT = re.compile(r"(metadata\.(?:labels|annotations))\['(.*)'\]").fullmatch


def field_ref(field: str, source: Json, supported: tuple[str, ...]) -> Iterator[Cause]:
    path = source.get("fieldPath", "")
    if not path:
        yield required(f"{field}.fieldPath")
        return
    subscript = _SUBSCRIPT(path)
    if subscript is not None:
        key = subscript[2].lower() if subscript[1].endswith("annotations") else subscript[2]
        yield from named(field, key, label_key)
    elif path not in _KNOWN:
        detail = f"error converting fieldPath: field label not supported: {path}"
        yield invalid(f"{field}.fieldPath", path, detail)
    elif path not in supported:
        yield unsupported(f"{field}.fieldPath", path, supported)


def resource_ref(field: str, source: Json, *, of_file: bool = False) -> Iterator[Cause]:
    name = source.get("resource", "")
    if of_file and not source.get("containerName"):
        yield required(f"{field}.containerName")
    elif not name:
        yield required(f"{field}.resource")
    elif name not in _RESOURCES and not name.startswith(_HUGE):
        yield unsupported(f"{field}.resource", name, _RESOURCES)
    divisor = canonical(source.get("divisor") or "0")
    if divisor == "0":
        return
    kind = name.partition(".")[2].partition("-")[0] if name.startswith(_HUGE) else name.partition(".")[2]
    if kind == "cpu" and divisor not in ("1m", "1"):
        detail = "only divisor's values 1m and 1 are supported with the cpu resource"
        yield invalid(f"{field}.divisor", name, detail)
    elif kind in _UNITS and divisor not in _SIZES:
        detail = f"only divisor's values {', '.join(_SIZES)} are supported with the {_UNITS[kind]} resource"
        yield invalid(f"{field}.divisor", name, detail)
