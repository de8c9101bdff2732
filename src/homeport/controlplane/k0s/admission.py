"""What a K0sControlPlane may say, and what is filled in when it does not. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.k0s.v1beta2 import K0sControlPlane, K0sControlPlaneTemplate
from homeport.capi.k0s import conversion
from homeport.capi.k0s import version as k0sversion
from homeport.capi.k0s.validation import invalid, validate_host, validate_version
from homeport.capi.name import CONTROL_PLANE_GROUP
from homeport.capi.object.finalizer import hold_from_start
from homeport.client.errors import Cause
from homeport.controlplane.k0s.name import FINALIZER
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]

# Controllers of this release can't join each other.
_BROKEN = "v1.31.1"
_DELETE_FIRST = "RecreateDeleteFirst"
_LEAST_TO_DELETE_FIRST = 3


def register(hooks: Hooks) -> None:
    conversion.register(hooks, CONTROL_PLANE_GROUP)
    hooks.add(K0sControlPlane, default=default, validate=validate, warn=warn)
    hooks.add(K0sControlPlaneTemplate, validate=validate_template)


def default(obj: Json, old: Json | None) -> None:
    hold_from_start(obj, old, FINALIZER)
    spec = obj["spec"] = obj.get("spec") or {}
    if str(spec.get("version") or "")[:1].isdigit():
        spec["version"] = f"v{spec['version']}"


def validate(obj: Json, old: Json | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    found = [*validate_host(spec.get("k0sConfigSpec") or {}, "spec.k0sConfigSpec"), *_version(spec), *_replicas(spec)]
    found += _infrastructure(spec)
    if old is not None and not found and not (obj.get("metadata") or {}).get("deletionTimestamp"):
        found += _changes(obj, old)
    return found


def validate_template(obj: Json, old: Json | None) -> list[Cause]:
    path = "spec.template.spec"
    spec = _at(obj, path)
    found = [*validate_host(spec.get("k0sConfigSpec") or {}, f"{path}.k0sConfigSpec"), *validate_version(spec, path)]
    if old is not None and _at(old, path) != spec:
        found.append(Cause("FieldValueForbidden", "immutable: create a new template and refer to it", path))
    return found


def warn(obj: Json, old: Json | None) -> list[str]:
    spec = obj.get("spec") or {}
    if old is not None and old.get("spec") == spec:
        return []
    found = []
    text = str(spec.get("version") or "")
    if k0sversion.is_valid(text) and not k0sversion.parse(text).suffixed:
        found.append(f"spec.version: {text} has no suffix: k0s {k0sversion.parse(text)} is used")
    replicas = spec.get("replicas", 1)
    if isinstance(replicas, int) and replicas and replicas % 2 == 0 and _storage(spec) == "etcd":
        found.append(
            f"spec.replicas: {replicas} etcd members survive no more failures than {replicas - 1}: choose an odd number"
        )
    return found


def _version(spec: Json) -> Iterator[Cause]:
    yield from validate_version(spec, "spec")
    text = str(spec.get("version") or "")
    if not text:
        yield Cause("FieldValueRequired", "set a version of k0s, for example v1.33.4+k0s.0", "spec.version")
    elif k0sversion.is_valid(text) and str(k0sversion.parse(text).kubernetes) == _BROKEN:
        yield invalid("spec.version", f"controllers of k0s {_BROKEN} can't join: use a later patch version")


def _replicas(spec: Json) -> Iterator[Cause]:
    replicas = spec.get("replicas", 1)
    if not isinstance(replicas, int) or replicas < 1:
        yield invalid("spec.replicas", f"{replicas!r}: a control plane has at least one Machine")
        return
    args = [str(each) for each in (spec.get("k0sConfigSpec") or {}).get("args") or ()]
    strategy = spec.get("updateStrategy") or "InPlace"
    if "--single" in args or "--single=true" in args:
        if replicas > 1:
            yield invalid("spec.replicas", f"{replicas}: a controller with --single can't be joined by others")
        if strategy != "InPlace":
            yield invalid(
                "spec.updateStrategy", f"{strategy}: a controller with --single can't be replaced: use InPlace"
            )
    elif strategy == _DELETE_FIRST and replicas < _LEAST_TO_DELETE_FIRST:
        text = (
            f"{strategy} needs at least {_LEAST_TO_DELETE_FIRST} replicas: with {replicas}, etcd would lose its quorum"
        )
        yield invalid("spec.updateStrategy", text)
    if _storage(spec) != "etcd" and replicas > 1 and _is_local(spec):
        yield invalid(
            "spec.replicas", f"{replicas} controllers can't share a local database: use etcd, or a database server"
        )


def _infrastructure(spec: Json) -> Iterator[Cause]:
    ref = (spec.get("machineTemplate") or {}).get("infrastructureRef") or {}
    for name in ("apiVersion", "kind", "name"):
        if not ref.get(name):
            field = f"spec.machineTemplate.infrastructureRef.{name}"
            yield Cause("FieldValueRequired", "names the template of the virtual machines", field)


def _changes(obj: Json, old: Json) -> Iterator[Cause]:
    spec, before = obj["spec"], old.get("spec") or {}
    yield from _version_change(obj, before)
    if _storage(spec) != _storage(before):
        text = "immutable: the objects of the cluster are in this storage and are not copied to another"
        yield Cause("FieldValueForbidden", text, "spec.k0sConfigSpec.k0s.spec.storage.type")


def _version_change(obj: Json, before: Json) -> Iterator[Cause]:
    """A version that no controller runs yet may be taken back."""
    was, wanted = str(before.get("version") or ""), str(obj["spec"].get("version") or "")
    if not k0sversion.is_valid(was):
        return
    old, new = k0sversion.parse(was), k0sversion.parse(wanted)
    runs = str((obj.get("status") or {}).get("version") or "")
    floor = k0sversion.parse(runs) if k0sversion.is_valid(runs) else old
    if new == old:
        return
    if new < min(floor, old):
        text = f"can't downgrade from {was} to {wanted}: data of a newer version can't be read by an older one"
        yield Cause("FieldValueForbidden", text, "spec.version")
    elif floor.line[0] != new.line[0] or new.line[1] > floor.line[1] + 1:
        text = (
            f"can't upgrade from {floor} to {wanted}: upgrade one minor version at a time, "
            f"v{floor.line[0]}.{floor.line[1] + 1} is next"
        )
        yield Cause("FieldValueForbidden", text, "spec.version")


def _storage(spec: Json) -> str:
    return str(_at(spec, "k0sConfigSpec.k0s.spec.storage").get("type") or "etcd")


def _is_local(spec: Json) -> bool:
    source = str(_at(spec, "k0sConfigSpec.k0s.spec.storage.kine").get("dataSource") or "")
    return not source or source.startswith("sqlite")


def _at(obj: Any, path: str) -> Json:
    for name in path.split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj if isinstance(obj, dict) else {}
