"""What a ClusterAddon may say. Everything that would fail later in every Cluster is refused here, with the field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.addons.catalogue import catalogue
from homeport.addons.catalogue.entry import parameter_errors
from homeport.addons.chart.version import VersionError, chosen_version, is_listed
from homeport.addons.desired import unknown_addon
from homeport.api.addon.v1alpha1 import ClusterAddon
from homeport.client.errors import Cause
from homeport.machinery.gotemplate import TemplateError, compiled
from homeport.machinery.manifest import ManifestError, described, find_twice, parse_objects
from homeport.machinery.selector import SelectorError, from_label_selector
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]
_WHAT = ("addon", "chart", "manifests")
_PLACES = ("repository", "configMapRef", "secretRef")


def register(hooks: Hooks) -> None:
    hooks.add(ClusterAddon, validate=validate, warn=warn)


def validate(found: Json, old: Json | None) -> list[Cause]:
    spec = found.get("spec") or {}
    if old is not None and (old.get("metadata") or {}).get("deletionTimestamp"):
        return []  # it must be possible to let go of it, whatever is wrong with it
    before = None if old is None else old.get("spec") or {}
    return [
        *_clusters(spec, before),
        *_content(spec),
        *_dependencies(spec, str((found.get("metadata") or {}).get("name", ""))),
        *_sources(spec),
        *_templates(spec),
        *_entry(spec),
    ]


def warn(found: Json, old: Json | None) -> list[str]:
    spec = found.get("spec") or {}
    entry, version = catalogue().get(spec.get("addon", "")), str(spec.get("version") or "")
    if entry is None or not version or is_listed(version, entry):
        return []
    listed = ", ".join(entry.versions)
    return [f"spec.version: the catalogue has no version {version} of {entry.name}; it is tested with {listed}"]


def _clusters(spec: Json, before: Json | None) -> Iterator[Cause]:
    name, selector = spec.get("clusterName"), spec.get("clusterSelector")
    if bool(name) == bool(selector):
        yield Cause.required("spec.clusterName", "set either clusterName or clusterSelector")
    if selector:
        try:
            empty = from_label_selector(selector).empty
        except SelectorError as error:
            yield Cause.invalid("spec.clusterSelector", error)
        else:
            if empty:
                yield Cause.required(
                    "spec.clusterSelector", "select Clusters by labels; an empty selector matches nothing"
                )
    if before is not None and (before.get("clusterName") or "") != (name or ""):
        message = f'"{name or ""}": it can\'t be changed; create another ClusterAddon instead'
        yield Cause.invalid("spec.clusterName", message)


def _content(spec: Json) -> Iterator[Cause]:
    given = [each for each in _WHAT if spec.get(each)]
    if len(given) != 1:
        said = f"; it has {' and '.join(given)}" if given else ""
        yield Cause.required("spec.addon", f"set exactly one of addon, chart and manifests{said}")
    if spec.get("manifests"):
        for each in ("values", "valuesFrom", "valuesTemplate", "parameters", "releaseName"):
            if spec.get(each):
                yield Cause.forbidden(
                    f"spec.{each}", "manifests have no values; use template: true in the manifest instead"
                )
    chart = spec.get("chart") or {}
    if chart:
        yield from _chart(chart, spec)


def _chart(chart: Json, spec: Json) -> Iterator[Cause]:
    given = [each for each in _PLACES if chart.get(each)]
    if len(given) != 1:
        said = f"; it has {' and '.join(given)}" if given else ""
        yield Cause.required("spec.chart", f"set exactly one of repository, configMapRef and secretRef{said}")
    elif given[0] == "repository":
        if not chart.get("name") and not str(chart.get("repository", "")).startswith("oci://"):
            yield Cause.required("spec.chart.name", "name the chart of the repository")
        if str(chart.get("repository", "")).startswith("http://") and not chart.get("insecureHTTP"):
            yield Cause.invalid(
                "spec.chart.repository",
                "http:// sends everything in clear text: use https://, or set insecureHTTP: true",
            )
        if not spec.get("version"):
            yield Cause.required("spec.version", "a chart that is not in the catalogue needs a version")


def _dependencies(spec: Json, name: str) -> Iterator[Cause]:
    for i, each in enumerate(spec.get("dependsOn") or ()):
        if each.get("name") == name:
            yield Cause.invalid(f"spec.dependsOn[{i}].name", f'"{name}": an add-on can\'t depend on itself')


def _sources(spec: Json) -> Iterator[Cause]:
    written: list[Json] = []
    for i, each in enumerate(spec.get("manifests") or ()):
        field = f"spec.manifests[{i}]"
        if sum(bool(each.get(one)) for one in ("configMapRef", "secretRef", "inline")) != 1:
            yield Cause.required(field, "set exactly one of configMapRef, secretRef and inline")
        elif each.get("inline") and not each.get("template"):
            try:
                written += parse_objects({field: str(each["inline"]).encode()})
            except ManifestError as error:
                yield Cause.invalid(f"{field}.inline", error)
    twice = find_twice(written, spec.get("namespace") or "default")
    if twice is not None:
        yield Cause.invalid("spec.manifests", f"{described(twice)} is there twice: remove one of them")
    for i, each in enumerate(spec.get("valuesFrom") or ()):
        if sum(bool(each.get(one)) for one in ("configMapRef", "secretRef")) != 1:
            yield Cause.required(f"spec.valuesFrom[{i}]", "set exactly one of configMapRef and secretRef")


def _templates(spec: Json) -> Iterator[Cause]:
    texts = {"spec.valuesTemplate": spec.get("valuesTemplate") or ""}
    for i, each in enumerate(spec.get("manifests") or ()):
        if each.get("template"):
            texts[f"spec.manifests[{i}].inline"] = each.get("inline") or ""
    for field, text in texts.items():
        try:
            compiled(text)
        except TemplateError as error:
            yield Cause.invalid(field, error)


def _entry(spec: Json) -> Iterator[Cause]:
    name = spec.get("addon")
    if not name:
        return
    entry = catalogue().get(name)
    if entry is None:
        yield Cause.invalid("spec.addon", f'"{name}": {unknown_addon(name)}')
        return
    for field, wrong, what in parameter_errors(entry, spec.get("parameters") or {}):
        where = f"spec.parameters.{field}"
        yield Cause.required(where, wrong) if what == "Required" else Cause.invalid(where, wrong)
    try:
        chosen_version(str(spec.get("version") or ""), entry, "")
    except VersionError as error:
        yield Cause.invalid("spec.version", error)
