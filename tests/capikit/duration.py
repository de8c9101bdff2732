"""A v1beta1 object with a text that is not a duration: the answer is that of a mistake, and names the field."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource
from homeport.client.errors import Invalid
from homeport.client.protocol import Client, Key, MergePatch, Write

_NEW = KubeadmControlPlane.__resource__
_OLD = Resource(_NEW.group, "v1beta1", _NEW.kind, _NEW.plural)
_CHECK = Resource("cluster.x-k8s.io", "v1beta1", "MachineHealthCheck", "machinehealthchecks")
_FIELD = "spec.machineTemplate.nodeDrainTimeout"


def _control_plane(name: str, drain: object) -> dict[str, Any]:
    reference = {"apiVersion": "infrastructure.example.com/v1", "kind": "GenericMachineTemplate", "name": "t"}
    spec = {"replicas": 1, "version": "v1.30.0", "kubeadmConfigSpec": {}}
    spec["machineTemplate"] = {"infrastructureRef": reference, "nodeDrainTimeout": drain}
    meta = {"name": name, "namespace": "default"}
    return {"apiVersion": _OLD.api_version, "kind": _OLD.kind, "metadata": meta, "spec": spec}


async def judge_durations(client: Client) -> None:
    key = Key("default", "drained")
    await client.create(_control_plane("drained", "1m0s"), kind=_OLD)
    # Somebody who writes the newest version: an apply in the older one is then compared in both.
    await client.apply(
        {**_NEW.type_meta, "metadata": {"name": "drained", "namespace": "default", "labels": {"a": "b"}}},
        Write(field_manager="newer"),
        kind=_NEW,
    )
    await _refused(client.create(_control_plane("soon", "soon"), kind=_OLD), _FIELD, "'soon'")
    change = MergePatch({"spec": {"machineTemplate": {"nodeDrainTimeout": "5 minutes"}}})
    await _refused(client.patch(_OLD, key, change), _FIELD, "'5 minutes'")
    applied = client.apply(_control_plane("drained", "1d"), Write(field_manager="x"), kind=_OLD, force=True)
    await _refused(applied, _FIELD, "'1d'")
    check = {
        "apiVersion": _CHECK.api_version,
        "kind": _CHECK.kind,
        "metadata": {"name": "check", "namespace": "default"},
        "spec": {
            "clusterName": "c",
            "selector": {"matchLabels": {"a": "b"}},
            "unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "5"}],
        },
    }
    await _refused(client.create(check, kind=_CHECK), "spec.unhealthyConditions[0].timeout", "'5'")
    with pytest.raises(Invalid, match="nodeDrainTimeout"):  # by the schema of the older version
        await client.create(_control_plane("number", 5), kind=_OLD)
    kept = await client.get(_OLD, key)
    assert kept["spec"]["machineTemplate"]["nodeDrainTimeout"] == "1m0s"
    await client.delete(_OLD, key)


async def _refused(work: Any, field: str, value: str) -> None:
    with pytest.raises(Invalid) as refused:
        await work
    assert [each.field for each in refused.value.causes] == [field], refused.value
    assert f"{value} is not a valid duration: expected for example" in str(refused.value)
