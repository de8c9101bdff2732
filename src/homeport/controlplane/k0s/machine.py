"""A control plane Machine is made in three steps under one name; after a crash the next attempt goes on with that name.

K0sControllerConfig  >  infrastructure machine  >  Machine
"""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.cluster.v1beta2 import Machine
from homeport.api.cluster.v1beta2.reference import ContractRef
from homeport.api.k0s.v1beta2 import K0sControllerConfig, K0sControlPlane
from homeport.api.meta import Resource, Unstructured
from homeport.capi.name import (
    BOOTSTRAP_GROUP,
    CLUSTER_NAME_LABEL,
    CONTROL_PLANE_LABEL,
    CONTROL_PLANE_NAME_LABEL,
    PRE_TERMINATE_KCP_CLEANUP,
    label_value,
)
from homeport.capi.object import naming
from homeport.capi.object.ownership import owner_reference
from homeport.controlplane.creation import MachineMaker
from homeport.controlplane.k0s.desired import controller_spec, same_config
from homeport.controlplane.k0s.scope import K0sPlaneScope
from homeport.machinery.gvk import parse_api_version
from homeport.runtime.outcome import Wait

Json = dict[str, Any]


class Maker(MachineMaker[K0sControllerConfig]):
    async def template(self, scope: K0sPlaneScope) -> Unstructured | Wait:
        ref = template_ref(scope.plane)
        if ref is None:
            return Wait("InvalidReference", "set spec.machineTemplate.infrastructureRef")
        return await self._find_template(scope.plane, ref, scope.cluster)

    async def create(self, scope: K0sPlaneScope, template: Unstructured, domain: str) -> Machine:
        plane, cluster = scope.plane, scope.cluster.metadata.name
        begun = self._configs.list(scope.key.namespace)
        name = await self._unfinished(plane, begun, template, lambda config: _same(plane, config))
        name = name or naming.simple(plane.metadata.name)
        labels, annotations = machine_labels(plane, cluster), dict(plane.spec.machine_template.metadata.annotations)
        meta: Json = {"name": name, "namespace": scope.key.namespace, "labels": labels, "annotations": annotations}
        config = {
            **K0sControllerConfig.__resource__.type_meta,
            # Not as its controller: that is the Machine, as soon as there is one.
            "metadata": {**meta, "ownerReferences": [owner_reference(plane)]},
            "spec": controller_spec(plane),
        }
        kind = await self._create_pair(
            plane, cluster, config, K0sControllerConfig.__resource__, template, labels, annotations
        )
        body = _machine(plane, cluster, meta, kind, domain)
        return msgspec.convert(await self._create(body, Machine.__resource__, plane), Machine)


def _machine(plane: K0sControlPlane, cluster: str, meta: Json, kind: Resource, domain: str) -> Json:
    return {
        **Machine.__resource__.type_meta,
        "metadata": {
            **meta,
            # Keeps the Machine until its member has left etcd.
            "annotations": {**meta["annotations"], PRE_TERMINATE_KCP_CLEANUP: ""},
            "ownerReferences": [owner_reference(plane, controller=True)],
        },
        "spec": {
            "clusterName": cluster,
            "version": plane.spec.version,
            "bootstrap": {
                "configRef": {"apiGroup": BOOTSTRAP_GROUP, "kind": "K0sControllerConfig", "name": meta["name"]}
            },
            "infrastructureRef": {"apiGroup": kind.group, "kind": kind.kind, "name": meta["name"]},
            **({"failureDomain": domain} if domain else {}),
        },
    }


def template_ref(plane: K0sControlPlane) -> ContractRef | None:
    ref = plane.spec.machine_template.infrastructure_ref
    if ref is None or not ref.name:
        return None
    return ContractRef(api_group=parse_api_version(ref.api_version).group, kind=ref.kind, name=ref.name)


def machine_labels(plane: K0sControlPlane, cluster: str) -> dict[str, str]:
    return {
        **plane.spec.machine_template.metadata.labels,
        CLUSTER_NAME_LABEL: cluster,
        CONTROL_PLANE_LABEL: "",
        CONTROL_PLANE_NAME_LABEL: label_value(plane.metadata.name),
    }


def _same(plane: K0sControlPlane, config: K0sControllerConfig) -> bool:
    return same_config(plane, config) and config.spec.version == plane.spec.version
