"""What the remote machine kinds may say: found out when they are applied, not minutes later in a loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from homeport.api.remote.v1beta2 import (
    PooledRemoteMachine,
    RemoteCluster,
    RemoteClusterTemplate,
    RemoteMachine,
    RemoteMachineTemplate,
)
from homeport.capi.family import wrong_endpoint
from homeport.capi.object.template import immutable
from homeport.client.errors import Cause
from homeport.providers.remote import conversion
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]
_DRY_RUN = "topology.cluster.x-k8s.io/dry-run"
_TEMPLATE_SPEC = "spec.template.spec"
# Where a machine is can't change below what was done there: cleanup would run on another machine.
_PLACE = ("address", "port", "pool")

KINDS = (RemoteMachine, RemoteMachineTemplate, PooledRemoteMachine, RemoteCluster, RemoteClusterTemplate)


def register(hooks: Hooks) -> None:
    conversion.register(hooks)
    hooks.add(RemoteMachine, validate=validate_machine)
    hooks.add(RemoteMachineTemplate, validate=validate_template)
    hooks.add(PooledRemoteMachine, validate=validate_pooled, validate_delete=validate_release)
    hooks.add(RemoteCluster, validate=validate_cluster)
    hooks.add(RemoteClusterTemplate, validate=validate_cluster_template)


def validate_machine(obj: Json, old: Json | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    before = (old or {}).get("spec") or {}
    if old is not None and before == spec:
        return []  # what is stored must not keep the object from being labelled or deleted
    return [*_machine_causes(spec), *(_moved(spec, before, "spec") if old is not None else ())]


def _machine_causes(spec: Json) -> Iterator[Cause]:
    yield from _job_causes(spec, "spec")
    # One that other controllers filled in from the pool says how it is reached, too: the reservation counts.
    if not spec.get("pool"):
        yield from _access_causes(spec, "spec", "the address of the machine, or set spec.pool")


def _access_causes(spec: Json, path: str, address: str) -> Iterator[Cause]:
    if not spec.get("address"):
        yield Cause.required(f"{path}.address", address)
    elif any(each.isspace() or each == "/" for each in str(spec["address"])):
        yield Cause.invalid(f"{path}.address", f"{spec['address']!r} is not an IP address or a DNS name")
    if not (spec.get("sshKeyRef") or {}).get("name"):
        text = "Required value: the name of a Secret with an SSH private key at `value`"
        yield Cause("FieldValueRequired", text, f"{path}.sshKeyRef.name")
    folder = spec.get("workingDir")
    if folder is not None and not str(folder).startswith("/"):
        yield Cause.invalid(f"{path}.workingDir", f"{folder!r} is not an absolute path")
    user = spec.get("user")
    if user is not None and (not user or any(each.isspace() for each in str(user))):
        yield Cause.invalid(f"{path}.user", f"{user!r} is not a user name")


def _job_causes(spec: Json, path: str) -> Iterator[Cause]:
    if spec.get("provisionJob") is not None:
        text = "Forbidden: not supported: Homeport connects over SSH itself; remove provisionJob"
        yield Cause("FieldValueForbidden", text, f"{path}.provisionJob")


def _moved(spec: Json, before: Json, path: str) -> Iterator[Cause]:
    for name in _PLACE:
        if before.get(name) not in (None, "") and spec.get(name) != before.get(name):
            text = "Forbidden: immutable: create another object for another machine"
            yield Cause("FieldValueForbidden", text, f"{path}.{name}")


def validate_template(obj: Json, old: Json | None) -> list[Cause]:
    spec = _template_spec(obj)
    if old is not None and _template_spec(old) == spec:
        return []
    return [*_job_causes(spec, _TEMPLATE_SPEC), *_pool_causes(spec, _TEMPLATE_SPEC), *_kept(obj, old)]


def _pool_causes(spec: Json, path: str) -> Iterator[Cause]:
    if not spec.get("pool"):
        text = "Required value: the pool of the PooledRemoteMachines to take machines from"
        yield Cause("FieldValueRequired", text, f"{path}.pool")


def validate_pooled(obj: Json, old: Json | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    if old is not None and old.get("spec") == spec:
        return []
    causes = list(_pool_causes(spec, "spec"))
    causes += _access_causes(spec.get("machine") or {}, "spec.machine", "the address of the machine")
    if old is not None and _reserved(old):
        before = old.get("spec") or {}
        causes += _moved(spec.get("machine") or {}, before.get("machine") or {}, "spec.machine")
    return causes


def validate_release(obj: Json) -> Iterator[Cause]:
    """A machine in use would lose the record of how it is reached, and with it its cleanup."""
    if _reserved(obj) and not (obj.get("metadata") or {}).get("deletionTimestamp"):
        ref = (obj.get("status") or {}).get("machineRef") or {}
        text = (
            f"Forbidden: RemoteMachine {ref.get('namespace')}/{ref.get('name')} uses the machine: delete its Machine "
            f"first; if that object no longer exists, clean the machine up and set status.reserved to false"
        )
        yield Cause("FieldValueForbidden", text, "status.reserved")


def _reserved(obj: Json) -> bool:
    return (obj.get("status") or {}).get("reserved") is True


def validate_cluster(obj: Json, old: Json | None) -> list[Cause]:
    spec = obj.get("spec") or {}
    return [] if old is not None and old.get("spec") == spec else list(_endpoint_causes(spec, "spec"))


def validate_cluster_template(obj: Json, old: Json | None) -> list[Cause]:
    spec = _template_spec(obj)
    if old is not None and _template_spec(old) == spec:
        return []
    return [*_endpoint_causes(spec, _TEMPLATE_SPEC), *_kept(obj, old)]


def _endpoint_causes(spec: Json, path: str) -> Iterator[Cause]:
    host = str((spec.get("controlPlaneEndpoint") or {}).get("host") or "")
    text = wrong_endpoint(host) if host else ""
    if text:
        yield Cause.invalid(f"{path}.controlPlaneEndpoint.host", text)


def _kept(obj: Json, old: Json | None) -> Iterator[Cause]:
    if old is not None and _DRY_RUN not in (obj["metadata"].get("annotations") or {}):
        yield Cause.forbidden(_TEMPLATE_SPEC, immutable(obj))


def _template_spec(obj: Json) -> Json:
    return ((obj.get("spec") or {}).get("template") or {}).get("spec") or {}
