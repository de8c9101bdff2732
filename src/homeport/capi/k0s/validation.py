"""What is refused in the settings of a k0s machine: in configs, control planes and templates. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from homeport.capi.k0s import version as k0sversion
from homeport.capi.k0s.argument import BadArgument, parse_arguments
from homeport.capi.k0s.clusterconfig import problems
from homeport.client.errors import Cause

API_VERSION = "k0s.k0sproject.io/v1beta1"
KIND = "ClusterConfig"
_SCHEMES = ("http://", "https://", "oci://")
_FORMAT = "cloud-config"

Json = Mapping[str, Any]


def validate_host(spec: Json, path: str) -> Iterator[Cause]:
    """`spec` says how k0s gets on a machine; `path` is where it stands."""
    yield from _files(spec, path)
    yield from _provisioner(spec.get("provisioner") or {}, f"{path}.provisioner")
    yield from validate_version(spec, path)
    url = str(spec.get("downloadURL") or "")
    if url and not url.startswith(_SCHEMES):
        yield invalid(f"{path}.downloadURL", f"{url!r} is not a URL: start it with http://, https:// or oci://")
    folder = str(spec.get("k0sInstallDir") or "/")
    if not folder.startswith("/"):
        yield invalid(f"{path}.k0sInstallDir", f"{folder!r} is not an absolute path")
    try:
        parse_arguments([str(each) for each in spec.get("args") or ()])
    except BadArgument as wrong:
        yield invalid(f"{path}.args", str(wrong))
    if (spec.get("tunneling") or {}).get("enabled"):
        text = "tunnels are not supported: let the endpoint of the Cluster be an address that Homeport can reach"
        yield Cause("FieldValueNotSupported", text, f"{path}.tunneling.enabled")
    yield from validate_cluster_config(spec.get("k0s"), f"{path}.k0s")


def validate_version(spec: Json, path: str) -> Iterator[Cause]:
    text = str(spec.get("version") or "")
    if text and not k0sversion.is_valid(text):
        message = f"{text!r} is not a version of k0s: expected for example v1.33.4+k0s.0"
        yield invalid(f"{path}.version", message)


def validate_cluster_config(config: Any, path: str) -> Iterator[Cause]:
    """A ClusterConfig of k0s, or a part of one."""
    if not config:
        return
    version = config.get("apiVersion", API_VERSION)
    if version != API_VERSION:
        yield invalid(f"{path}.apiVersion", f"{version!r} is unknown: write {API_VERSION}")
    if config.get("kind", KIND) != KIND:
        yield invalid(f"{path}.kind", f"{config['kind']!r} is unknown: write {KIND}")
    for below, message in problems(config.get("spec")):
        yield invalid(f"{path}.spec{below}", message)


def _files(spec: Json, path: str) -> Iterator[Cause]:
    first: dict[str, int] = {}
    for number, file in enumerate(spec.get("files") or ()):
        where, name = f"{path}.files[{number}]", str(file.get("path") or "")
        if file.get("content") and file.get("contentFrom"):
            yield invalid(where, "set content or contentFrom, not both")
        if not name.startswith("/"):
            yield invalid(f"{where}.path", f"{name!r} is not an absolute path")
        elif name in first:
            yield invalid(
                f"{where}.path", f"{name!r} is already the path of files[{first[name]}]: paths must be unique"
            )
        first.setdefault(name, number)
        yield from _source(file.get("contentFrom"), f"{where}.contentFrom")


def _provisioner(given: Json, path: str) -> Iterator[Cause]:
    kind = given.get("type") or _FORMAT
    if kind != _FORMAT:
        yield Cause("FieldValueNotSupported", f"{kind!r} is not supported: use {_FORMAT}", f"{path}.type")
    if given.get("platform") not in (None, "", "linux"):
        text = f"{given['platform']!r} is not supported: use an image with Linux"
        yield Cause("FieldValueNotSupported", text, f"{path}.platform")
    if given.get("ignition") and kind == _FORMAT:
        text = f"can't be set with the type {_FORMAT}"
        yield Cause("FieldValueForbidden", text, f"{path}.ignition")
    yield from _source(given.get("customUserDataRef"), f"{path}.customUserDataRef")


def _source(source: Json | None, path: str) -> Iterator[Cause]:
    if source and bool(source.get("secretRef")) == bool(source.get("configMapRef")):
        yield invalid(path, "set either secretRef or configMapRef")


def invalid(field: str, message: str) -> Cause:
    return Cause.invalid(field, message)
