"""ConfigMaps and Secrets that a ClusterAddon reads from. They are watched by metadata and read when they are needed:
manifests are large, and Secrets are confidential."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from homeport.addons.catalogue import catalogue
from homeport.addons.chart.values import merged, parse_values
from homeport.addons.problem import Problem
from homeport.api.addon.v1alpha1 import ChartSource, ClusterAddon, ManifestSource, NameRef, ValuesSource
from homeport.api.meta import Resource
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.helm.errors import SourceError
from homeport.helm.source.held import held_chart
from homeport.machinery import yaml
from homeport.machinery.manifest import ManifestError, content
from homeport.runtime.informer import metadata_only

Json = dict[str, Any]

ALL_KEYS = "*"  # as the key of values: all of them, merged in the order of their names

CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
SECRET = Resource("", "v1", "Secret", "secrets")
WATCHED = {each.kind: metadata_only(each) for each in (CONFIG_MAP, SECRET)}


def names_of(addon: ClusterAddon) -> Iterable[str]:
    """`Secret default/prism`: every object that the add-on reads from."""
    spec, namespace = addon.spec, addon.metadata.namespace
    sources: list[ManifestSource | ValuesSource] = [*spec.manifests, *spec.values_from]
    for each in sources:
        if each.config_map_ref is not None:
            yield f"ConfigMap {namespace}/{each.config_map_ref.name}"
        if each.secret_ref is not None:
            yield f"Secret {namespace}/{each.secret_ref.name}"
    for secret in spec.secrets:
        yield f"Secret {namespace}/{secret.name}"
    entry = catalogue().get(spec.addon)
    if entry is not None and entry.credentials is not None:
        yield f"Secret {namespace}/{spec.parameters.get(entry.credentials.parameter)}"
    chart = spec.chart
    if chart is not None:
        for kind, ref in (
            ("Secret", chart.credentials_ref),
            ("Secret", chart.secret_ref),
            ("ConfigMap", chart.config_map_ref),
        ):
            if ref is not None:
                yield f"{kind} {namespace}/{ref.name}"


async def read_texts(client: Client, namespace: str, source: ManifestSource, field: str) -> dict[str, bytes]:
    """Manifests by key. Raises Problem."""
    if source.inline:
        return {field: source.inline.encode()}
    kind, ref = _pointed(source, field)
    found = await _get(client, kind, namespace, ref.name, field)
    try:
        return {
            f"{kind.kind} {ref.name}: {key}": text for key, text in content({**found, "kind": kind.kind})[0].items()
        }
    except ManifestError as error:
        raise Problem("InvalidManifest", f"{kind.kind} {ref.name}: {error}", warning=True) from None


async def read_values(client: Client, namespace: str, source: ValuesSource, field: str) -> str:
    """The text of values. Raises Problem."""
    kind, ref = _pointed(source, field)
    key = source.key or "values.yaml"
    try:
        found = await _get(client, kind, namespace, ref.name, field)
    except Problem:
        if source.optional:
            return ""
        raise
    if key == ALL_KEYS:
        return _merged(found.get("data") or {}, kind, ref.name, field)
    text = (found.get("data") or {}).get(key)
    if text is None:
        if source.optional:
            return ""
        raise Problem("SourceNotFound", f"{field}: {kind.kind} {namespace}/{ref.name} has no key {key}: add it")
    return _decoded(text, kind, ref.name, key) if kind is SECRET else str(text)


def _merged(data: Mapping[str, Any], kind: Resource, name: str, field: str) -> str:
    made: Json = {}
    for key in sorted(data):
        text = _decoded(data[key], kind, name, key) if kind is SECRET else str(data[key])
        made = merged(made, parse_values(text, f"{field}: {kind.kind} {name}: key {key}"))
    return yaml.dump(made) if made else ""


async def read_chart(client: Client, namespace: str, source: ChartSource) -> dict[str, bytes] | None:
    """The files of a chart that an object holds; None: it is in a repository. Raises Problem."""
    for kind, ref, field in (
        (CONFIG_MAP, source.config_map_ref, "spec.chart.configMapRef"),
        (SECRET, source.secret_ref, "spec.chart.secretRef"),
    ):
        if ref is not None:
            found = await _get(client, kind, namespace, ref.name, field)
            try:
                return held_chart(found, kind.kind, source.path)
            except SourceError as error:
                raise Problem("ChartNotAvailable", f"{field}: {error}", warning=True) from None
    return None


async def read_secret(client: Client, namespace: str, name: str, field: str) -> Json:
    return await _get(client, SECRET, namespace, name, field)


def _pointed(source: ManifestSource | ValuesSource, field: str) -> tuple[Resource, NameRef]:
    if source.config_map_ref is not None:
        return CONFIG_MAP, source.config_map_ref
    if source.secret_ref is not None:
        return SECRET, source.secret_ref
    raise Problem("InvalidSource", f"{field}: set configMapRef or secretRef", warning=True)


async def _get(client: Client, kind: Resource, namespace: str, name: str, field: str) -> Json:
    try:
        return await client.get(kind, Key(namespace, name))
    except NotFound:
        message = f"{field}: {kind.kind} {namespace}/{name} does not exist: create it"
        raise Problem("SourceNotFound", message) from None


def _decoded(text: str, kind: Resource, name: str, key: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except (binascii.Error, ValueError):
        raise Problem("InvalidValues", f"{kind.kind} {name}: key {key} is not text", warning=True) from None
