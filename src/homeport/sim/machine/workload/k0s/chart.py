"""Helm extensions: `extensions.helm` of the configuration becomes Chart objects, and these become releases."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from homeport.client.errors import AlreadyExists, ApiError
from homeport.client.protocol import Key, MergePatch
from homeport.machinery.chart import ChartError
from homeport.machinery.chart.dependency import compatible
from homeport.runtime.clock import rfc3339
from homeport.sim.machine import yaml
from homeport.sim.machine.workload.k0s.configuration import effective
from homeport.sim.machine.workload.k0s.definition import CHART
from homeport.sim.machine.workload.k0s.release import ReleaseProblem, install, uninstall
from homeport.sim.machine.workload.k0s.repository import Repository, fetch
from homeport.sim.machine.workload.k0s.stack import LABEL
from homeport.sim.machine.workload.kind import Json

if TYPE_CHECKING:
    from homeport.sim.machine.workload.k0s.platform import Platform

FINALIZER = "helm.k0sproject.io/uninstall-helm-release"
_NAMESPACE, _STACK, _PREFIX = "kube-system", "helm", "k0s-addon-chart-"
_RETRY_SECONDS = 60.0


async def settle_charts(platform: Platform) -> None:
    helm = (effective(platform).get("extensions") or {}).get("helm") or {}
    repositories = {str(each["name"]): Repository.of(each) for each in helm.get("repositories") or ()}
    await _publish(platform, helm.get("charts") or [])
    for obj in platform.all(CHART):
        if obj["metadata"].get("deletionTimestamp"):
            await _remove(platform, obj)
        elif _differs(obj):
            await _install(platform, obj, repositories)


async def _publish(platform: Platform, charts: list[Json]) -> None:
    client = platform.cluster.client("k0s")
    names = set()
    for chart in charts:
        name = f"{_PREFIX}{chart['name']}"
        names.add(name)
        spec = _spec(chart)
        known = platform.read(CHART, name, _NAMESPACE)
        if known is not None and known.get("spec") == spec:
            continue
        meta = {"name": name, "namespace": _NAMESPACE, "finalizers": [FINALIZER], "labels": {LABEL: _STACK}}
        try:
            await client.create({"metadata": meta, "spec": spec}, kind=CHART)
        except AlreadyExists:
            await client.patch(CHART, Key(_NAMESPACE, name), MergePatch({"spec": spec}))
    for obj in platform.all(CHART):
        meta = obj["metadata"]
        ours = (meta.get("labels") or {}).get(LABEL) == _STACK and meta.get("namespace") == _NAMESPACE
        if ours and meta["name"] not in names and not meta.get("deletionTimestamp"):
            await client.delete(CHART, Key(_NAMESPACE, meta["name"]))


def _spec(chart: Json) -> Json:
    spec: Json = {
        "chartName": str(chart["chartname"]),
        "releaseName": str(chart["name"]),
        "namespace": str(chart["namespace"]),
        "values": str(chart.get("values") or ""),
        "version": str(chart.get("version") or ""),
        "timeout": str(chart.get("timeout") or "10m0s"),
    }
    if chart.get("forceUpgrade") is not None:
        spec["forceUpgrade"] = bool(chart["forceUpgrade"])
    return spec


def _differs(obj: Json) -> bool:
    """Whether the release is not what the Chart asks for. A Chart that failed is tried again after a while."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    if not status.get("releaseName") or status.get("error"):
        return True
    wanted = (spec.get("namespace"), _release_name(obj), _hash(obj))
    if wanted != (status.get("namespace"), status.get("releaseName"), status.get("valuesHash")):
        return True
    version, installed = str(spec.get("version") or ""), str(status.get("version"))
    return bool(version) and version.removeprefix("v") != installed and not compatible(version, installed)


def _release_name(obj: Json) -> str:
    return str((obj.get("spec") or {}).get("releaseName") or obj["metadata"]["name"])


def _hash(obj: Json) -> str:
    spec = obj.get("spec") or {}
    return hashlib.sha256((_release_name(obj) + str(spec.get("values") or "")).encode()).hexdigest()


async def _install(platform: Platform, obj: Json, repositories: dict[str, Repository]) -> None:
    key, now = str(obj["metadata"]["uid"]), platform.cluster.clock.now()
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    attempt = (obj["metadata"].get("generation"), _names(repositories))
    tried = platform.attempts.get(key)
    if tried is not None and tried[0] == attempt and now < tried[1] + _RETRY_SECONDS:
        platform.later(tried[1] + _RETRY_SECONDS - now + 0.1)
        return
    platform.attempts[key] = (attempt, now)
    verb = "upgrade" if status.get("releaseName") else "installation"
    try:
        found = fetch(platform, spec, repositories)
        values, namespace = _values(str(spec.get("values") or "")), str(spec.get("namespace") or "default")
        made = await install(platform.cluster, found, values, _release_name(obj), namespace)
        report: Json = {**made, "error": None}
    except (ReleaseProblem, ChartError, ApiError, OSError, LookupError, ValueError) as problem:
        text = f'can\'t reconcile {verb} for "{obj["metadata"]["name"]}": {problem}'
        report = {"error": text}
        _complain(platform, text)
        platform.later(_RETRY_SECONDS)
    stamp = rfc3339(now)
    await platform.set_status(
        CHART, obj["metadata"]["name"], {**report, "updated": stamp, "valuesHash": _hash(obj)}, _namespace_of(obj)
    )


def _names(repositories: dict[str, Repository]) -> str:
    return ",".join(f"{name}={each.url}" for name, each in sorted(repositories.items()))


def _namespace_of(obj: Json) -> str:
    return str(obj["metadata"].get("namespace") or "")


def _values(text: str) -> Json:
    try:
        found = yaml.load(text) if text.strip() else {}
    except yaml.YAMLError as broken:
        raise ValueError(f"values are not valid YAML: {' '.join(str(broken).split())}") from broken
    if not isinstance(found or {}, dict):
        raise ValueError("values are not a mapping")
    return found or {}


def _complain(platform: Platform, text: str) -> None:
    leader = platform.leader()
    if leader is not None and platform.complaints.get("helm") != text:
        platform.complaints["helm"] = text
        leader.host.log("error", text, "extensions_controller")


async def _remove(platform: Platform, obj: Json) -> None:
    finalizers = obj["metadata"].get("finalizers") or []
    if FINALIZER not in finalizers:
        return
    status = obj.get("status") or {}
    if status.get("releaseName"):
        await uninstall(platform.cluster, str(status["releaseName"]), str(status.get("namespace") or "default"))
    left = [each for each in finalizers if each != FINALIZER]
    patch = MergePatch({"metadata": {"finalizers": left or None}})
    key = Key(_namespace_of(obj), obj["metadata"]["name"])
    await platform.cluster.client("k0s").patch(CHART, key, patch)
