"""Releases as Helm makes them: objects in the cluster, and a Secret that records them."""

from __future__ import annotations

import base64
import contextlib
import gzip
from typing import TYPE_CHECKING, Any

import orjson

from homeport.client.absence import drop_object
from homeport.client.errors import AlreadyExists
from homeport.client.protocol import Key, MergePatch
from homeport.machinery.chart import Capabilities, ReleaseInfo, Rendered, render
from homeport.runtime.clock import rfc3339
from homeport.sim.machine import yaml
from homeport.sim.machine.workload.k0s.apply import UnknownKind, apply, delete, ensure_namespace, resource_of
from homeport.sim.machine.workload.kind import SECRET, Json
from homeport.sim.registry.shelf import PublishedChart

if TYPE_CHECKING:
    from homeport.sim.machine.workload.cluster import WorkloadCluster

_HELM = "v3.17.1"
_MANAGED = {"app.kubernetes.io/managed-by": "Helm"}


class ReleaseProblem(Exception):
    """A chart could not be installed; what was created until then stays, and is taken over by the next attempt."""


async def install(cluster: WorkloadCluster, found: PublishedChart, values: Json, name: str, namespace: str) -> Json:
    """Installs or upgrades a release. Gives the status of its Chart. Raises ReleaseProblem, ChartError, ApiError."""
    before = _latest(cluster, name, namespace)
    revision = (before or {}).get("version", 0) + 1
    info = ReleaseInfo(name, namespace, revision, is_install=before is None, is_upgrade=before is not None)
    chart = found.chart()
    rendered = render(chart, values, info, Capabilities(kube_version=cluster.version(), helm_version=_HELM))
    await ensure_namespace(cluster, namespace)
    for crd in rendered.crds:
        await _apply(cluster, crd.object, namespace, {})
    for hook in rendered.hooks:
        if f"pre-{'upgrade' if before else 'install'}" in hook.events:
            await _apply(cluster, hook.object, namespace, {})
    notes = {"meta.helm.sh/release-name": name, "meta.helm.sh/release-namespace": namespace}
    kept = set()
    for manifest in rendered.manifests:
        key = await _apply(cluster, manifest.object, namespace, notes)
        kept.add((str(manifest.object["kind"]), str(key)))
    if before is not None:
        await _remove(cluster, before, namespace, kept)
    for hook in rendered.hooks:
        if f"post-{'upgrade' if before else 'install'}" in hook.events:
            await _apply(cluster, hook.object, namespace, {})
    metadata = chart.metadata
    await _record(cluster, name, namespace, revision, rendered, metadata.name, metadata.version, metadata.app_version)
    return {
        "releaseName": name,
        "namespace": namespace,
        "version": metadata.version,
        "appVersion": metadata.app_version,
        "revision": revision,
    }


async def uninstall(cluster: WorkloadCluster, name: str, namespace: str) -> None:
    latest = _latest(cluster, name, namespace)
    if latest is not None:
        await _remove(cluster, latest, namespace, set())
    client = cluster.client("k0s")
    for record in _records(cluster, name, namespace):
        await drop_object(client, SECRET, Key(namespace, record["metadata"]["name"]))


async def _apply(cluster: WorkloadCluster, obj: Json, namespace: str, annotations: dict[str, str]) -> Key:
    body: Json = orjson.loads(orjson.dumps(obj))
    meta = body.setdefault("metadata", {})
    if annotations:
        meta["annotations"] = {**(meta.get("annotations") or {}), **annotations}
        meta["labels"] = {**(meta.get("labels") or {}), **_MANAGED}
    try:
        return await apply(cluster, body, namespace, "helm")
    except UnknownKind as unknown:
        raise ReleaseProblem(
            f"unable to build kubernetes objects from release manifest: resource mapping not found for name: "
            f'"{meta.get("name", "")}": {unknown}; ensure CRDs are installed first'
        ) from unknown


async def _remove(cluster: WorkloadCluster, release: Json, namespace: str, kept: set[tuple[str, str]]) -> None:
    """Objects of a release that are not kept."""
    gone = []
    for obj in yaml.load_all(str(release.get("manifest") or "")):
        kind = resource_of(cluster, obj) if isinstance(obj, dict) else None
        if kind is None:
            continue
        meta = obj["metadata"]
        key = Key(meta.get("namespace") or namespace if kind.namespaced else "", meta["name"])
        policy = str((meta.get("annotations") or {}).get("helm.sh/resource-policy") or "")
        if (str(obj["kind"]), str(key)) not in kept and policy != "keep":
            gone.append((kind, key))
    await delete(cluster, gone)


def _records(cluster: WorkloadCluster, name: str, namespace: str) -> list[Json]:
    prefix = f"{namespace}/sh.helm.release.v1.{name}.v"
    return [orjson.loads(record.value) for record in cluster.server.store.range("secrets", prefix=prefix)]


def _latest(cluster: WorkloadCluster, name: str, namespace: str) -> Json | None:
    found = [_decoded(each) for each in _records(cluster, name, namespace)]
    return max(found, key=lambda each: int(each["version"]), default=None)


def _decoded(secret: Json) -> Json:
    inner = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    found: Json = orjson.loads(gzip.decompress(inner))
    return found


def _info(now: str, revision: int, rendered: Rendered) -> Json:
    return {
        "first_deployed": now,
        "last_deployed": now,
        "deleted": "",
        "description": "Install complete" if revision == 1 else "Upgrade complete",
        "status": "deployed",
        "notes": rendered.notes,
    }


async def _record(
    cluster: WorkloadCluster,
    name: str,
    namespace: str,
    revision: int,
    rendered: Rendered,
    chart: str,
    version: str,
    app_version: str,
) -> None:
    info = _info(rfc3339(cluster.clock.now()), revision, rendered)
    record: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "version": revision,
        "config": rendered.config,
        "manifest": "".join(f"---\n# Source: {each.source}\n{each.text}\n" for each in rendered.manifests),
        "info": info,
        "chart": {
            "metadata": {"name": chart, "version": version, "appVersion": app_version, "apiVersion": "v2"},
            "templates": [],
            "values": {},
        },
        "hooks": [],
    }
    client = cluster.client("helm")
    for known in _records(cluster, name, namespace):
        labels = {"labels": {"status": "superseded"}}
        await client.patch(SECRET, Key(namespace, known["metadata"]["name"]), MergePatch({"metadata": labels}))
    packed = base64.b64encode(gzip.compress(orjson.dumps(record, default=float), mtime=0))
    meta = {
        "name": f"sh.helm.release.v1.{name}.v{revision}",
        "namespace": namespace,
        "labels": {"name": name, "owner": "helm", "status": "deployed", "version": str(revision)},
    }
    data = {"release": base64.b64encode(packed).decode()}
    with contextlib.suppress(AlreadyExists):
        await client.create({"metadata": meta, "type": "helm.sh/release.v1", "data": data}, kind=SECRET)
