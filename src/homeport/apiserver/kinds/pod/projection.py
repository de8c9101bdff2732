"""Files that are made of other objects: keys of Secrets and ConfigMaps, fields of the Pod, tokens and certificates."""

from __future__ import annotations

from collections.abc import Iterator

from homeport.apiserver.kinds.check import forbidden, invalid, label_selector, required, unsupported
from homeport.apiserver.kinds.cluster.certificate import signer_name
from homeport.apiserver.kinds.pod.downward import FILES, field_ref, resource_ref
from homeport.apiserver.kinds.pod.path import unreserved
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

_KEYS = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")
_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")
_TWICE = "conflicting duplicate paths"


def file_mode(field: str, mode: int | None) -> Iterator[Cause]:
    if mode is not None and not 0 <= mode <= 0o777:
        yield invalid(field, mode, "must be a number between 0 and 0777 (octal), both inclusive")


def key_file(field: str, item: Json) -> Iterator[Cause]:
    if not item.get("key"):
        yield required(f"{field}.key")
    if not item.get("path"):
        yield required(f"{field}.path")
    else:
        yield from unreserved(f"{field}.path", item["path"])
    yield from file_mode(f"{field}.mode", item.get("mode"))


def downward_file(field: str, item: Json) -> Iterator[Cause]:
    if not item.get("path"):
        yield required(f"{field}.path")
    yield from unreserved(f"{field}.path", item.get("path", ""))
    by_field, by_resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if by_field is not None:
        yield from field_ref(f"{field}.fieldRef", by_field, FILES)
        if by_resource is not None:
            yield invalid(field, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif by_resource is not None:
        yield from resource_ref(f"{field}.resourceFieldRef", by_resource, of_file=True)
    else:
        yield required(field, "one of fieldRef and resourceFieldRef is required")
    yield from file_mode(f"{field}.mode", item.get("mode"))


def projections(field: str, sources: list[Json]) -> Iterator[Cause]:
    paths: set[str] = set()
    for i, source in enumerate(sources):
        subfield = f"{field}.sources[{i}]"
        for kind in ("secret", "configMap"):
            if source.get(kind) is not None:
                yield from _keys(field, f"{subfield}.{kind}", source[kind], paths)
        for item in (source.get("downwardAPI") or {}).get("items") or ():
            yield from downward_file(f"{subfield}.downwardAPI", item)
            yield from _once(field, item.get("path", ""), paths)
        if source.get("serviceAccountToken") is not None:
            yield from _token(field, f"{subfield}.serviceAccountToken", source["serviceAccountToken"])
        if source.get("clusterTrustBundle") is not None:
            yield from _bundle(f"{subfield}.clusterTrustBundle", source["clusterTrustBundle"])
            yield from _once(field, source["clusterTrustBundle"].get("path", ""), paths)
        if source.get("podCertificate") is not None:
            yield from _certificate(field, f"{subfield}.podCertificate", source["podCertificate"], paths)
        if len(source) > 1:
            yield forbidden(subfield, "may not specify more than 1 volume type per source")


def _once(field: str, path: str, paths: set[str], owner: str | None = None) -> Iterator[Cause]:
    if path and path in paths:
        yield invalid(field, path if owner is None else owner, _TWICE)
    if path:
        paths.add(path)


def _keys(field: str, subfield: str, source: Json, paths: set[str]) -> Iterator[Cause]:
    if not source.get("name"):
        yield required(f"{subfield}.name")
    for i, item in enumerate(source.get("items") or ()):
        yield from key_file(f"{subfield}.items[{i}]", item)
        yield from _once(field, item.get("path", ""), paths, source.get("name", ""))


def _token(field: str, subfield: str, source: Json) -> Iterator[Cause]:
    seconds = source.get("expirationSeconds")
    if seconds is None:
        yield required(f"{subfield}.expirationSeconds")
    elif seconds < 600:
        yield invalid(f"{subfield}.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")
    elif seconds > 2**32:
        yield invalid(f"{subfield}.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")
    if not source.get("path"):
        yield required(f"{field}.path")
    else:
        yield from unreserved(f"{field}.path", source["path"])


def _bundle(field: str, source: Json) -> Iterator[Cause]:
    name, signer = source.get("name"), source.get("signerName")
    if name is not None and signer is not None:
        yield invalid(field, None, "only one of name and signerName may be used")
    elif name is not None:
        if not name:
            yield required(f"{field}.name", "must be a valid object name")
        if source.get("labelSelector") is not None:
            yield invalid(f"{field}.labelSelector", None, "labelSelector must be unset if name is specified")
    elif signer is not None:
        if not signer:
            yield required(f"{field}.signerName", "must be a valid signer name")
        yield from signer_name(f"{field}.signerName", signer)
        yield from label_selector(f"{field}.labelSelector", source.get("labelSelector"))
    else:
        yield required(field, "either name or signerName must be specified")
    if not source.get("path"):
        yield required(f"{field}.path")
    yield from unreserved(f"{field}.path", source.get("path", ""))


def _certificate(field: str, subfield: str, source: Json, paths: set[str]) -> Iterator[Cause]:
    signer = source.get("signerName", "")
    yield from signer_name(f"{subfield}.signerName", signer)
    if source.get("keyType", "") not in _KEYS:
        yield unsupported(f"{subfield}.keyType", source.get("keyType", ""), _KEYS)
    seconds = source.get("maxExpirationSeconds")
    most = 86400 if signer.startswith("kubernetes.io/") else 91 * 86400
    if seconds is not None and seconds < 3600:
        yield invalid(f"{subfield}.maxExpirationSeconds", seconds, "if provided, maxExpirationSeconds must be >= 3600")
    if seconds is not None and seconds > most:
        yield invalid(
            f"{subfield}.maxExpirationSeconds", seconds, f"if provided, maxExpirationSeconds must be <= {most}"
        )
    given = [name for name in _PATHS if source.get(name)]
    for name in given:
        yield from unreserved(f"{subfield}.{name}", source[name])
        yield from _once(field, source[name], paths)
    if not given:
        yield required(subfield, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")
