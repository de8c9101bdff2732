"""What Talos makes of the text of a machine configuration: a document that it applies, or the reasons why not."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import urlsplit

from cryptography import x509

from homeport.machinery.reading import reads
from homeport.machinery.talos.certificate import load_key
from homeport.sim.machine import yaml
from homeport.sim.machine.talos.field import CONFIG, unknown

Json = dict[str, Any]

CONTROL_PLANES: Final = ("init", "controlplane")
_TOKEN: Final = re.compile(r"[a-z0-9]{6}\.[a-z0-9]{16}")
_CNIS: Final = ("flannel", "custom", "none")
# Documents that may stand beside the machine configuration.
_OTHER_KINDS: Final = frozenset(
    {
        "EventSinkConfig",
        "ExtensionServiceConfig",
        "KmsgLogConfig",
        "KubeSpanEndpointsConfig",
        "NetworkDefaultActionConfig",
        "NetworkRuleConfig",
        "SideroLinkConfig",
        "TrustedRootsConfig",
        "VolumeConfig",
        "WatchdogTimerConfig",
    }
)


class ConfigRefused(ValueError):
    """A configuration that Talos does not apply."""


def check_config(text: bytes) -> Json:
    """The v1alpha1 document. Raises ConfigRefused."""
    document = _decode(text)
    problems = list(_problems(document))
    if problems:
        raise ConfigRefused(f"configuration validation failed: {'; '.join(problems)}")
    return document


def _decode(text: bytes) -> Json:
    try:
        documents = [each for each in yaml.load_all(text) if each is not None]
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as broken:
        raise ConfigRefused(f"failed to parse config: {broken}") from broken
    if not all(isinstance(each, dict) for each in documents):
        raise ConfigRefused("failed to parse config: a document is not a mapping")
    for each in documents:
        kind = each.get("kind")
        if kind is not None and kind not in _OTHER_KINDS:
            raise ConfigRefused(f"failed to parse config: {kind!r} {each.get('apiVersion')!r}: not registered")
    own = [each for each in documents if "kind" not in each]
    if len(own) != 1:
        raise ConfigRefused(f"failed to parse config: expected one v1alpha1 document, found {len(own)}")
    if own[0].get("version") != "v1alpha1":
        raise ConfigRefused(f"failed to parse config: unsupported config version {own[0].get('version')!r}")
    if extra := unknown(own[0], CONFIG):
        raise ConfigRefused(f"failed to parse config: unknown keys found during decoding: {', '.join(extra)}")
    return dict(own[0])


def _problems(document: Json) -> Iterator[str]:
    if not isinstance(document.get("machine"), dict):
        yield "machine instructions are required"
        return
    if not isinstance(document.get("cluster"), dict):
        yield "cluster instructions are required"
        return
    machine, cluster = document["machine"], document["cluster"]
    kind = str(machine.get("type") or "")
    if kind not in (*CONTROL_PLANES, "worker"):
        yield f"unknown machine type {kind!r}"
        return
    if document.get("persist") is False:
        yield ".persist should be enabled"
    yield from _of_endpoint(cluster)
    yield from _of_tokens(machine, cluster)
    yield from _of_network(machine, worker=kind == "worker")
    yield from _of_worker(machine, cluster) if kind == "worker" else _of_control_plane(machine, cluster)


def _of_endpoint(cluster: Json) -> Iterator[str]:
    endpoint = str((cluster.get("controlPlane") or {}).get("endpoint") or "")
    if not endpoint:
        yield "cluster controlplane endpoint is required"
        return
    try:
        parts = urlsplit(endpoint)
        valid = parts.scheme == "https" and bool(parts.hostname) and parts.port is not None
    except ValueError:
        valid = False
    if not valid:
        yield f"invalid controlplane endpoint: {endpoint!r}: expected https://HOST:PORT"


def _of_tokens(machine: Json, cluster: Json) -> Iterator[str]:
    for field, given in (("machine.token", machine.get("token")), ("cluster.token", cluster.get("token"))):
        if not _TOKEN.fullmatch(str(given or "")):
            yield f".{field} is not a valid token"


def _of_network(machine: Json, *, worker: bool) -> Iterator[str]:
    for device in (machine.get("network") or {}).get("interfaces") or ():
        if bool(device.get("interface")) == bool(device.get("deviceSelector")):
            yield "[networking.os.device.interface], [networking.os.device.deviceSelector]: set exactly one of them"
        if worker and device.get("vip"):
            yield "virtual (shared) IP is not allowed on non-controlplane nodes"


def _of_worker(machine: Json, cluster: Json) -> Iterator[str]:
    yield from _of_pair(".machine.ca", machine.get("ca"), key=False)
    yield from _of_pair(".cluster.ca", cluster.get("ca"), key=False)
    if cluster.get("etcd"):
        yield "etcd config is only allowed on control plane machines"


def _of_control_plane(machine: Json, cluster: Json) -> Iterator[str]:
    yield from _of_pair(".machine.ca", machine.get("ca"), key=True)
    yield from _of_pair(".cluster.ca", cluster.get("ca"), key=True)
    yield from _of_pair(".cluster.etcd.ca", (cluster.get("etcd") or {}).get("ca"), key=True)
    if cluster.get("aggregatorCA"):
        yield from _of_pair(".cluster.aggregatorCA", cluster["aggregatorCA"], key=True)
    key = _decoded((cluster.get("serviceAccount") or {}).get("key"))
    if not reads(load_key, key):
        yield "a service account key is required (.cluster.serviceAccount.key)"
    cni = ((cluster.get("network") or {}).get("cni") or {}).get("name") or "flannel"
    if cni not in _CNIS:
        yield f"cni name should be one of {', '.join(_CNIS)}"
    names = [each.get("name") for each in cluster.get("inlineManifests") or ()]
    if not all(names) or len(set(names)) != len(names):
        yield "inline manifest names must be set and unique"


def _of_pair(field: str, pair: Json | None, *, key: bool) -> Iterator[str]:
    """A CA; with its key on control planes alone."""
    certificate, given = _decoded((pair or {}).get("crt")), _decoded((pair or {}).get("key"))
    if not certificate:
        yield f"issuing CA is required ({field})"
    elif not reads(x509.load_pem_x509_certificate, certificate):
        yield f"certificate is invalid ({field}.crt)"
    if key and not given:
        yield f"issuing CA key is required for controlplane nodes ({field}.key)"
    elif key and not reads(load_key, given):
        yield f"key is invalid ({field}.key)"
    if not key and given:
        yield f"issuing CA key is not allowed on non-controlplane nodes ({field})"


def _decoded(value: Any) -> bytes:
    """Text that is not base64 stays as it is: it is neither a certificate nor a key."""
    text = str(value or "")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return text.encode()
