"""What k0smotron's kinds may say, and what is filled in when they do not. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from homeport.api.k0smotron.v1beta2 import (
    Cluster,
    JoinTokenRequest,
    K0smotronControlPlane,
    K0smotronControlPlaneTemplate,
)
from homeport.capi.conversion.codec import parse_seconds
from homeport.capi.k0s import version as k0sversion
from homeport.capi.k0s.validation import validate_cluster_config
from homeport.capi.object.finalizer import hold_from_start
from homeport.client.errors import Cause
from homeport.hosted.k0smotron import conversion
from homeport.hosted.k0smotron.name import CONTROL_PLANE_FINALIZER, FINALIZER, JOIN_TOKEN_FINALIZER
from homeport.hosted.k0smotron.pod.subject import DEFAULT_VERSION, part
from homeport.machinery import yaml
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]

_INGRESS_SINCE = "v1.34.1+k0s.0"
# A database of one Pod alone.
_LOCAL_DATABASES = ("", "sqlite")
# What Pods, volumes and nodes that exist were made with.
_FIXED = (
    ("storage.type", "the objects of the cluster are in this storage and are not copied to another"),
    ("storage.etcd.persistence", "the volumes of etcd were created with it"),
    ("storage.nats.persistence", "the volumes of NATS were created with it"),
    ("remoteHostCluster", "the control plane runs there"),
)
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PORTS = ("apiPort", "konnectivityPort")


def register(hooks: Hooks) -> None:
    conversion.register(hooks)
    hooks.add(Cluster, default=default_cluster, validate=validate_cluster, warn=warn)
    hooks.add(K0smotronControlPlane, default=default_control_plane, validate=validate, warn=warn)
    hooks.add(K0smotronControlPlaneTemplate, validate=validate_template)
    hooks.add(JoinTokenRequest, default=default_join_token, validate=validate_join_token)


# -- defaults ------------------------------------------------------------------------------------------------------


def default_cluster(obj: Json, old: Json | None) -> None:
    hold_from_start(obj, old, FINALIZER)
    _default_spec(obj)


def default_control_plane(obj: Json, old: Json | None) -> None:
    hold_from_start(obj, old, CONTROL_PLANE_FINALIZER)
    _default_spec(obj)


def default_join_token(obj: Json, old: Json | None) -> None:
    hold_from_start(obj, old, JOIN_TOKEN_FINALIZER)


def _default_spec(obj: Json) -> None:
    spec = obj["spec"] = obj.get("spec") or {}
    if spec.get("replicas") is None:
        spec["replicas"] = 1
    if not spec.get("version"):
        spec["version"] = DEFAULT_VERSION
    elif str(spec["version"])[:1].isdigit():
        spec["version"] = f"v{spec['version']}"
    ingress = spec.get("ingress")
    if isinstance(ingress, dict) and ingress.get("deploy") is None:
        ingress["deploy"] = True


# -- validation ----------------------------------------------------------------------------------------------------


def validate_cluster(obj: Json, old: Json | None) -> list[Cause]:
    """Services have its name: it must be a DNS label."""
    name = str((obj.get("metadata") or {}).get("name") or "")
    found = validate(obj, old)
    if old is None and name and not _LABEL.fullmatch(name):
        text = f'"{name}": must have lower case letters, digits and - only: Services are named after the Cluster'
        found.append(Cause.invalid("metadata.name", text))
    return found


def validate(obj: Json, old: Json | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    found = list(_common(spec, "spec"))
    if old is not None and not found and not (obj.get("metadata") or {}).get("deletionTimestamp"):
        found += _changes(obj, old)
    return found


def validate_template(obj: Json, old: Json | None) -> list[Cause]:
    path = ("spec", "template", "spec")
    spec = part(obj, *path)
    found = list(_common(spec, ".".join(path)))
    if old is not None and part(old, *path) != spec:
        text = "immutable: create a new template and refer to it"
        found.append(Cause("FieldValueForbidden", text, ".".join(path)))
    return found


def validate_join_token(obj: Json, old: Json | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    found = []
    try:
        seconds = parse_seconds(spec.get("expiry") or "0s")
    except ValueError as error:
        found.append(Cause.invalid("spec.expiry", str(error)))
    else:
        if seconds < 0:
            found.append(
                Cause.invalid("spec.expiry", f"{spec['expiry']} is negative: write 0s for a token without expiry")
            )
    if old is not None and (old.get("spec") or {}) != spec:
        found.append(Cause("FieldValueForbidden", "immutable: create another JoinTokenRequest", "spec"))
    return found


def _common(spec: Json, path: str) -> Iterator[Cause]:
    yield from _version(spec, path)
    yield from _storage(spec, path)
    yield from _persistence(spec, path)
    yield from _service(spec, path)
    yield from validate_cluster_config(spec.get("k0sConfig"), f"{path}.k0sConfig")
    for number, each in enumerate(spec.get("patches") or ()):
        content = (each.get("patch") or {}).get("content") or ""
        try:
            yaml.load(content)
        except yaml.YamlError as error:
            yield Cause.invalid(f"{path}.patches[{number}].patch.content", f"neither valid YAML nor JSON: {error}")
    names = [str(each.get("name")) for each in spec.get("manifests") or ()]
    for number, name in enumerate(names):
        if name in names[:number]:
            yield Cause("FieldValueDuplicate", f"there is another volume {name!r}", f"{path}.manifests[{number}].name")


def _version(spec: Json, path: str) -> Iterator[Cause]:
    text = str(spec.get("version") or DEFAULT_VERSION)
    try:
        version = k0sversion.parse(text)
    except ValueError as error:
        yield Cause.invalid(f"{path}.version", str(error))
        return
    if spec.get("ingress") and version < k0sversion.parse(_INGRESS_SINCE):
        yield Cause.invalid(f"{path}.ingress", f"requires k0s {_INGRESS_SINCE} or later, and spec.version is {text}")


def _storage(spec: Json, path: str) -> Iterator[Cause]:
    replicas = spec.get("replicas", 1)
    if not isinstance(replicas, int) or replicas < 0:
        yield Cause.invalid(f"{path}.replicas", f"{replicas!r} is not a number of Pods")
        return
    storage = spec.get("storage") or {}
    if storage.get("type") != "kine":
        return
    kine = storage.get("kine") or {}
    if not kine.get("dataSourceURL") and not kine.get("dataSourceSecretName"):
        text = "set dataSourceSecretName or dataSourceURL to the database"
        yield Cause("FieldValueRequired", text, f"{path}.storage.kine")
    scheme = str(kine.get("dataSourceURL") or "").partition(":")[0]
    if replicas > 1 and not kine.get("dataSourceSecretName") and scheme in _LOCAL_DATABASES:
        text = f"{replicas} replicas can't share a {scheme or 'local'} database: use etcd, or a database server"
        yield Cause.invalid(f"{path}.replicas", text)


def _persistence(spec: Json, path: str) -> Iterator[Cause]:
    persistence = spec.get("persistence") or {}
    kind = persistence.get("type", "emptyDir")
    if kind not in ("emptyDir", "hostPath", "pvc"):
        yield Cause.invalid(f"{path}.persistence.type", f"{kind!r} is unknown: choose emptyDir, hostPath or pvc")
    if kind == "pvc" and not (persistence.get("persistentVolumeClaim") or {}).get("spec"):
        text = "set the claim of each Pod, or another type"
        yield Cause("FieldValueRequired", text, f"{path}.persistence.persistentVolumeClaim")
    if kind == "hostPath" and not str(persistence.get("hostPath") or "").startswith("/"):
        yield Cause("FieldValueRequired", "set an absolute path on the nodes", f"{path}.persistence.hostPath")
    if kind == "hostPath" and spec.get("replicas", 1) > 1:
        text = "two Pods on one node would use the same folder: use emptyDir or pvc"
        yield Cause.invalid(f"{path}.persistence.type", text)


def _service(spec: Json, path: str) -> Iterator[Cause]:
    service = spec.get("service") or {}
    ports = {name: service[name] for name in _PORTS if service.get(name) is not None}
    for name, port in ports.items():
        if not isinstance(port, int) or not 1 <= port <= 65535:
            yield Cause.invalid(f"{path}.service.{name}", f"{port} is not a port: choose a number between 1 and 65535")
    if len(ports) == 2 and len(set(ports.values())) == 1:
        yield Cause.invalid(f"{path}.service.konnectivityPort", "the same as apiPort: choose another one")


def _changes(obj: Json, old: Json) -> Iterator[Cause]:
    spec, before = obj["spec"], old.get("spec") or {}
    yield from _version_change(spec, before)
    for path, why in _FIXED:
        if _at(spec, path) != _at(before, path):
            yield Cause("FieldValueForbidden", f"immutable: {why}", f"spec.{path}")
    persistence, was = spec.get("persistence") or {}, before.get("persistence") or {}
    if {**persistence, "autoDeletePVCs": None} != {**was, "autoDeletePVCs": None} and "pvc" in (
        persistence.get("type"),
        was.get("type"),
    ):
        text = "immutable: the volumes of the Pods were created with it; only autoDeletePVCs can be changed"
        yield Cause("FieldValueForbidden", text, "spec.persistence")
    if _at(spec, "storage.type") == "nats" and spec.get("replicas") != before.get("replicas"):
        text = "NATS can't change its number of members: create another cluster, or use etcd"
        yield Cause("FieldValueForbidden", text, "spec.replicas")
    if part(obj, "status", "initialization").get("controlPlaneInitialized") and _exposure(spec) != _exposure(before):
        text = "immutable: nodes and kubeconfigs use the address of the control plane"
        yield Cause("FieldValueForbidden", text, "spec.service")


def _exposure(spec: Json) -> tuple[Any, ...]:
    service = spec.get("service") or {}
    ingress = spec.get("ingress") or {}
    return (service.get("type"), service.get("apiPort"), ingress.get("apiHost"), ingress.get("port"))


def _version_change(spec: Json, before: Json) -> Iterator[Cause]:
    """Within a minor version any patch can follow any other, so that a wrong one can be taken back."""
    was = str(before.get("version") or "")
    if not k0sversion.is_valid(was):
        return
    wanted = str(spec.get("version") or DEFAULT_VERSION)
    old, new = k0sversion.parse(was), k0sversion.parse(wanted)
    if old.line[0] != new.line[0] or new.line[1] > old.line[1] + 1:
        text = (
            f"can't upgrade from {was} to {wanted}: upgrade one minor version at a time, "
            f"v{old.line[0]}.{old.line[1] + 1} is next"
        )
        yield Cause("FieldValueForbidden", text, "spec.version")
    elif new.line < old.line:
        text = f"can't downgrade from {was} to {wanted}: the API server does not read data of a newer minor version"
        yield Cause("FieldValueForbidden", text, "spec.version")


def _at(spec: Json, path: str) -> Any:
    *parents, name = path.split(".")
    return part(spec, *parents).get(name)


# -- warnings ------------------------------------------------------------------------------------------------------


def warn(obj: Json, old: Json | None) -> list[str]:
    spec = obj.get("spec") or {}
    if old is not None and old.get("spec") == spec:
        return []
    found = []
    text = str(spec.get("version") or "")
    if k0sversion.is_valid(text) and not k0sversion.parse(text).suffixed:
        found.append(f"spec.version: {text} has no suffix: k0s {k0sversion.parse(text)} is used")
    ingress = spec.get("ingress") or {}
    if ingress.get("deploy") and not ingress.get("annotations"):
        found.append(
            "spec.ingress.annotations: empty: make sure that the ingress controller passes TLS through without them"
        )
    kine = part(spec, "storage", "kine")
    if "@" in str(kine.get("dataSourceURL") or ""):
        found.append("spec.storage.kine.dataSourceURL: seems to contain a password: use dataSourceSecretName")
    return found
