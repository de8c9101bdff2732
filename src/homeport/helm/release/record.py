"""One revision of a release, in the form in which Helm keeps it in a Secret.

Fields that are not known here are kept: a record that Helm wrote loses nothing when Homeport updates it. What Homeport
remembers besides (`homeport` in the record, `event` and `uid` in the last run of a hook) is ignored by Helm.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import orjson

from homeport.helm.errors import ReleaseError
from homeport.runtime.clock import rfc3339_micro

Json = dict[str, Any]

SECRET_TYPE: Final = "helm.sh/release.v1"  # noqa: S105  (not a password)
SECRET_FAMILY: Final = "helm.sh/release."  # noqa: S105  (records of all versions of Helm)
DEPLOYED: Final = "deployed"
FAILED: Final = "failed"
SUPERSEDED: Final = "superseded"
UNINSTALLED: Final = "uninstalled"
UNINSTALLING: Final = "uninstalling"
PENDING_INSTALL: Final = "pending-install"
PENDING_UPGRADE: Final = "pending-upgrade"
PENDING_ROLLBACK: Final = "pending-rollback"
PENDING: Final = frozenset({PENDING_INSTALL, PENDING_UPGRADE, PENDING_ROLLBACK})

MEMORY: Final = "homeport"
SERVER_SIDE: Final = "ssa"
_SYSTEM_LABELS: Final = frozenset({"name", "owner", "status", "version", "createdAt", "modifiedAt"})
_LARGEST: Final = 64 << 20  # bytes of an unpacked record
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 53
_FRACTION: Final = re.compile(r"(\.\d{6})\d+")


@dataclass(slots=True)
class Release:
    """A revision. `raw` is the record; `labels` are those that users gave; `resource_version` is that of its Secret."""

    raw: Json
    labels: dict[str, str] = field(default_factory=dict)
    resource_version: str = ""

    @property
    def name(self) -> str:
        return str(self.raw.get("name", ""))

    @property
    def namespace(self) -> str:
        return str(self.raw.get("namespace", ""))

    @property
    def version(self) -> int:
        return int(self.raw.get("version") or 0)

    @property
    def info(self) -> Json:
        info: Json = self.raw.setdefault("info", {})
        return info

    @property
    def status(self) -> str:
        return str(self.info.get("status") or "unknown")

    @property
    def pending(self) -> bool:
        return self.status in PENDING

    @property
    def description(self) -> str:
        return str(self.info.get("description", ""))

    @property
    def manifest(self) -> str:
        return str(self.raw.get("manifest", ""))

    @property
    def chart(self) -> Json:
        chart: Json = self.raw.get("chart") or {}
        return chart

    @property
    def chart_version(self) -> str:
        return str((self.chart.get("metadata") or {}).get("version", ""))

    @property
    def config(self) -> Json:
        config: Json = self.raw.get("config") or {}
        return config

    @property
    def hooks(self) -> list[Json]:
        hooks: list[Json] = self.raw.get("hooks") or []
        return hooks

    @property
    def memory(self) -> Json:
        """What Homeport alone remembers; empty for a record of Helm."""
        memory: Json = self.raw.get(MEMORY) or {}
        return memory

    @property
    def label(self) -> str:
        """`release kube-system/cilium revision 3`: how messages name it."""
        return f"release {self.namespace}/{self.name} revision {self.version}"

    def set_status(self, status: str, description: str) -> None:
        self.info["status"] = status
        self.info["description"] = description

    def began(self) -> float:
        """When the operation that the status describes began; 0 if the record does not tell."""
        text = self.info.get("deleted" if self.status == UNINSTALLING else "last_deployed")
        return parse_time(text)


def parse_time(text: Any) -> float:
    """Helm writes nanoseconds, and an empty string for no time."""
    if not text:
        return 0.0
    try:
        return datetime.fromisoformat(_FRACTION.sub(r"\1", str(text))).timestamp()
    except ValueError:
        return 0.0


def format_time(moment: float) -> str:
    return rfc3339_micro(moment)


def check_name(name: str) -> None:
    if len(name) > _LONGEST_NAME or _NAME.fullmatch(name) is None:
        raise ReleaseError(
            f"release name {name!r} is not valid: use at most {_LONGEST_NAME} lower case letters, digits, '-' and '.', "
            "beginning and ending with a letter or digit"
        )


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where records of releases are: the names, the label `owner` and the type of their Secrets."""

    prefix: str
    owner: str
    type: str


HELM: Final = Ledger("sh.helm.release.v1", "helm", SECRET_TYPE)
# Helm does not see these records: it can install a release of the same name, and then takes over the objects.
RESERVED: Final = Ledger("homeport.release.v1", "homeport", "homeport.dev/release.v1")


def secret_name(name: str, version: int, ledger: Ledger = HELM) -> str:
    return f"{ledger.prefix}.{name}.v{version}"


def encode(raw: Mapping[str, Any]) -> str:
    packed = gzip.compress(orjson.dumps(raw), compresslevel=9, mtime=0)
    return base64.b64encode(packed).decode()


def decode(data: bytes | str) -> Json:
    """Raises ValueError."""
    try:
        packed = base64.b64decode(data, validate=True)
        if packed[:3] == b"\x1f\x8b\x08":
            packed = _unpacked(packed)
        raw = orjson.loads(packed)
    except (binascii.Error, zlib.error, orjson.JSONDecodeError) as error:
        raise ValueError(f"not a release record: {error}") from None
    if not isinstance(raw, dict):
        raise ValueError("not a release record: not an object")
    return raw


def _unpacked(packed: bytes) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    plain = stream.decompress(packed, _LARGEST)
    if stream.unconsumed_tail:
        raise ValueError(f"not a release record: larger than {_LARGEST >> 20} MiB when unpacked")
    return plain


def to_secret(release: Release, now: float, ledger: Ledger = HELM) -> Json:
    """The Secret as Helm writes it: its data is the encoded text, which is encoded once more as all data is."""
    labels = dict(release.labels)
    if release.resource_version:
        labels["modifiedAt"] = str(int(now))
    else:
        labels["createdAt"] = str(int(now))
    labels |= {"name": release.name, "owner": ledger.owner, "status": release.status, "version": str(release.version)}
    metadata: Json = {
        "name": secret_name(release.name, release.version, ledger),
        "namespace": release.namespace,
        "labels": labels,
    }
    if release.resource_version:
        metadata["resourceVersion"] = release.resource_version
    data = base64.b64encode(encode(release.raw).encode()).decode()
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": ledger.type, "data": {"release": data}}


def from_secret(secret: Mapping[str, Any], ledger: Ledger = HELM) -> Release:
    """Raises ValueError."""
    metadata = secret.get("metadata") or {}
    if secret.get("type") != ledger.type:
        raise ValueError(f"a record of type {secret.get('type')!r} is from a newer Helm; Homeport knows {ledger.type}")
    data = base64.b64decode((secret.get("data") or {}).get("release") or "")
    labels = metadata.get("labels") or {}
    raw = decode(data)
    raw.setdefault("namespace", metadata.get("namespace", ""))
    _check(raw, metadata, ledger)
    return Release(
        raw,
        {name: text for name, text in labels.items() if name not in _SYSTEM_LABELS},
        str(metadata.get("resourceVersion", "")),
    )


_SHAPE: Final[dict[str, tuple[type, ...]]] = {
    "name": (str,), "namespace": (str,), "version": (int,), "info": (dict,), "manifest": (str, type(None)),
    "chart": (dict, type(None)), "config": (dict, type(None)), "hooks": (list, type(None)), MEMORY: (dict, type(None)),
}  # fmt: skip


def _check(raw: Json, metadata: Mapping[str, Any], ledger: Ledger) -> None:
    """Whoever may write Secrets in one namespace must not say what is deleted in another. Raises ValueError."""
    for name, kinds in _SHAPE.items():
        if name in raw and not isinstance(raw[name], kinds):
            raise ValueError(f"not a release record: {name} has the wrong type")
    hooks = raw.get("hooks") or ()
    if not all(isinstance(hook, dict) and isinstance(hook.get("last_run") or {}, dict) for hook in hooks):
        raise ValueError("not a release record: hooks has the wrong type")
    if raw["namespace"] != metadata.get("namespace", ""):
        raise ValueError(f"the record is of a release in namespace {raw['namespace']!r}")
    if metadata.get("name") != secret_name(str(raw.get("name")), int(raw.get("version") or 0), ledger):
        raise ValueError(f"the record is of release {raw.get('name')!r} revision {raw.get('version')!r}")
