"""What an add-on should be in its Cluster: objects to apply and the chart to install, from its spec and sources."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from homeport.addons.catalogue import Entry, catalogue, near_match
from homeport.addons.catalogue.entry import parameter_errors, with_defaults
from homeport.addons.chart.credential import render_credentials
from homeport.addons.chart.values import merged, parse_values
from homeport.addons.chart.version import VersionError, chosen_version
from homeport.addons.facts import render_text
from homeport.addons.name import OUTSIDE_ANNOTATION
from homeport.addons.problem import Problem
from homeport.addons.source import read_chart, read_secret, read_texts, read_values
from homeport.addons.target.inventory import digest_of
from homeport.api.addon.v1alpha1 import ChartSource, ClusterAddon
from homeport.client.protocol import Client
from homeport.machinery.chart import ChartError, load_chart
from homeport.machinery.manifest import ManifestError, described, find_twice, parse_objects

Json = dict[str, Any]

_BUILT_IN_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")


@dataclass(frozen=True, slots=True)
class DesiredChart:
    source: ChartSource
    version: str
    release: str
    values: Json
    entry: Entry | None = None
    files: Mapping[str, bytes] | None = field(default=None, repr=False)  # of a chart that an object holds
    outside: bool = False  # it may not come from the management plane's own host

    @property
    def identity(self) -> Json:
        if self.files is None:
            return {"version": self.version, "values": self.values}
        content = digest_of([], *(_line(self.files, each) for each in sorted(self.files)))
        return {"version": self.version, "values": self.values, "content": content}


@dataclass(slots=True)
class Desired:
    namespace: str
    before: list[Json] = field(default_factory=list)  # needed by the chart, or by the other objects
    chart: DesiredChart | None = None
    objects: list[Json] = field(default_factory=list)
    version: str = ""

    @property
    def digest(self) -> str:
        """Of everything but the Namespace, and of Secrets without revealing them."""
        chart = () if self.chart is None else (self.chart.identity,)
        return digest_of([*self.before, *self.objects, *chart], self.namespace, self.version)


async def build(client: Client, addon: ClusterAddon, data: Mapping[str, Any], installed: str) -> Desired:
    """`data` is for templates; `installed` the version that the cluster has. Raises Problem."""
    entry = _entry(addon)
    if entry is not None:
        data = {**data, "Parameters": _parameters(entry, addon)}
        _check_provider(entry, data)
    made = Desired(addon.spec.namespace or ("default" if entry is None else entry.namespace))
    data = {**data, "Namespace": made.namespace}
    labels = {} if entry is None else entry.namespace_labels
    if addon.spec.create_namespace and made.namespace not in _BUILT_IN_NAMESPACES:
        made.before.append(_namespace(made.namespace, labels))
    made.before.extend(await _secrets(client, addon, made.namespace))
    if entry is not None:
        made.before.extend(await render_credentials(client, addon, entry, data, made.namespace))
        made.before.extend(_rendered(entry.before, data, f"add-on {entry.name}", "before"))
        made.objects.extend(_rendered(entry.manifests, data, f"add-on {entry.name}", "manifests"))
    made.objects.extend(await _manifests(client, addon, data))
    made.chart = await _chart(client, addon, entry, data, installed)
    made.version = addon.spec.version if made.chart is None else made.chart.version
    twice = find_twice([*made.before, *made.objects], made.namespace)
    if twice is not None:
        raise Problem("InvalidManifest", f"{described(twice)} is there twice: remove one of them", warning=True)
    return made


def _entry(addon: ClusterAddon) -> Entry | None:
    name = addon.spec.addon
    if not name:
        return None
    found = catalogue().get(name)
    if found is None:
        raise Problem("UnknownAddon", f"spec.addon: {unknown_addon(name)}", warning=True)
    return found


def unknown_addon(name: str) -> str:
    near = near_match(name)
    meant = f"did you mean {near}?" if near else f"it has {', '.join(catalogue())}"
    return f"the catalogue has no add-on {name}: {meant}"


def _parameters(entry: Entry, addon: ClusterAddon) -> Json:
    for name, wrong, _ in parameter_errors(entry, addon.spec.parameters):
        raise Problem("InvalidParameter", f"spec.parameters.{name}: {wrong}", warning=True)
    return with_defaults(entry, addon.spec.parameters)


def _check_provider(entry: Entry, data: Mapping[str, Any]) -> None:
    provider = data["Facts"]["provider"]
    if entry.provider and provider and entry.provider != provider:
        message = f"spec.addon: {entry.name} works on {entry.provider} only, and this Cluster is on {provider}"
        raise Problem("UnsupportedProvider", message, warning=True)


def _namespace(name: str, labels: Mapping[str, str]) -> Json:
    meta: Json = {"name": name, **({"labels": dict(labels)} if labels else {})}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": meta}


async def _secrets(client: Client, addon: ClusterAddon, namespace: str) -> list[Json]:
    made = []
    for i, each in enumerate(addon.spec.secrets):
        found = await read_secret(client, addon.metadata.namespace, each.name, f"spec.secrets[{i}]")
        meta = {"name": each.target_name or each.name, "namespace": each.target_namespace or namespace}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": found.get("data") or {}}
        # A type of the management cluster, such as a kubeconfig of Cluster API, means nothing there.
        made.append({**body, "type": found.get("type") or "Opaque"})
    return made


async def _manifests(client: Client, addon: ClusterAddon, data: Mapping[str, Any]) -> list[Json]:
    texts: dict[str, bytes] = {}
    for i, each in enumerate(addon.spec.manifests):
        found = await read_texts(client, addon.metadata.namespace, each, f"spec.manifests[{i}]")
        if each.template:
            found = {key: render_text(_text(value, key), data, key).encode() for key, value in found.items()}
        texts.update(found)
    if not texts:
        return []
    try:
        return parse_objects(texts)
    except ManifestError as error:
        raise Problem("InvalidManifest", str(error), warning=True) from None


def _text(content: bytes, key: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Problem("InvalidManifest", f"{key}: it is not text", warning=True) from None


def _rendered(text: str, data: Mapping[str, Any], where: str, what: str) -> list[Json]:
    made = render_text(text, data, f"{where}: {what}").strip() if text else ""
    if not made:
        return []
    try:
        return parse_objects({what: made.encode()})
    except ManifestError as error:
        raise Problem("InvalidManifest", f"{where}: {error}", warning=True) from None


async def _chart(
    client: Client, addon: ClusterAddon, entry: Entry | None, data: Mapping[str, Any], installed: str
) -> DesiredChart | None:
    spec = addon.spec
    if entry is None and spec.chart is None:
        return None
    values: Json = {}
    if entry is not None:
        for text in (entry.values, entry.provider_values.get(data["Facts"]["provider"], "")):
            field_name = f"add-on {entry.name}: values"
            values = merged(values, parse_values(render_text(text, data, field_name), field_name))
    for i, each in enumerate(spec.values_from):
        name = f"spec.valuesFrom[{i}]"
        text = await read_values(client, addon.metadata.namespace, each, name)
        values = merged(values, parse_values(render_text(text, data, name) if each.template else text, name))
    if spec.values_template:
        text = render_text(spec.values_template, data, "spec.valuesTemplate")
        values = merged(values, parse_values(text, "spec.valuesTemplate"))
    values = merged(values, spec.values)
    if entry is not None:
        source = ChartSource(repository=entry.chart.repository, name=entry.chart.name)
    else:
        assert spec.chart is not None
        source = spec.chart
    files = await read_chart(client, addon.metadata.namespace, source)
    version = _held_version(files, spec.version) if files is not None else _version(spec.version, entry, installed)
    release = spec.release_name or (addon.metadata.name[:53].rstrip("-.") if entry is None else entry.release_name)
    outside = addon.metadata.annotations.get(OUTSIDE_ANNOTATION) == "true"
    return DesiredChart(source, version, release, values, entry, files, outside)


def _version(wanted: str, entry: Entry | None, installed: str) -> str:
    try:
        return chosen_version(wanted, entry, installed)
    except VersionError as error:
        raise Problem("InvalidVersion", f"spec.version: {error}", warning=True) from None


def _held_version(files: Mapping[str, bytes], wanted: str) -> str:
    try:
        found = load_chart(files).version
    except ChartError as error:
        raise Problem("ChartNotAvailable", f"spec.chart: {error}", warning=True) from None
    if wanted and found.removeprefix("v") != wanted.removeprefix("v"):
        raise Problem("InvalidVersion", f"spec.version: {wanted}: the chart has version {found}", warning=True)
    return found


def _line(files: Mapping[str, bytes], path: str) -> str:
    return f"{path} {hashlib.sha256(files[path]).hexdigest()}"
