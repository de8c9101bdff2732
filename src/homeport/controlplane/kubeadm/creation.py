"""A control plane Machine is made in three steps under one name; after a crash the next attempt goes on with that name.

KubeadmConfig  >  infrastructure machine  >  Machine
"""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.bootstrap.v1beta2 import KubeadmConfig
from homeport.api.cluster.v1beta2 import Machine
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Unstructured, wire
from homeport.capi.name import BOOTSTRAP_GROUP
from homeport.capi.object import naming
from homeport.capi.object.ownership import AnyObject, owner_of_kind
from homeport.client.protocol import Key
from homeport.controlplane.creation import MachineMaker
from homeport.controlplane.kubeadm import desired
from homeport.controlplane.kubeadm.plan.action import Create
from homeport.controlplane.kubeadm.plan.rollout import comparable
from homeport.controlplane.kubeadm.scope import ControlPlaneScope
from homeport.runtime.cache import key_of
from homeport.runtime.outcome import Wait

BY_CONTROL_PLANE = "KubeadmControlPlane"  # an index: what was made for one, by the owner reference it begins with


def control_plane_keys(obj: AnyObject) -> list[str]:
    owner = owner_of_kind(obj, KubeadmControlPlane.__resource__)
    return [] if owner is None else [str(Key(key_of(obj).namespace, owner["name"]))]


class Maker(MachineMaker[KubeadmConfig]):
    async def template(self, scope: ControlPlaneScope) -> Unstructured | Wait:
        ref = scope.kcp.spec.machine_template.spec.infrastructure_ref
        if ref is None:
            return Wait("InvalidReference", "set spec.machineTemplate.spec.infrastructureRef")
        return await self._find_template(scope.kcp, ref, scope.cluster)

    async def create(self, scope: ControlPlaneScope, template: Unstructured, action: Create) -> Machine:
        kcp, cluster = scope.kcp, scope.cluster.metadata.name
        join = scope.findings.initialized or not action.first
        config = desired.kubeadm_config(kcp, cluster, "", join=join)
        begun = self._configs.by(BY_CONTROL_PLANE, str(scope.key))
        name = await self._unfinished(kcp, begun, template, lambda each: _same(each, config)) or self._new_name(scope)
        config["metadata"]["name"] = name
        labels, annotations = desired.machine_labels(kcp, cluster), desired.machine_annotations(kcp)
        kind = await self._create_pair(kcp, cluster, config, KubeadmConfig.__resource__, template, labels, annotations)
        body = desired.machine(
            kcp,
            cluster,
            name,
            bootstrap={"apiGroup": BOOTSTRAP_GROUP, "kind": "KubeadmConfig", "name": name},
            infrastructure={"apiGroup": kind.group, "kind": kind.kind, "name": name},
            domain=action.domain,
            remediation=action.remediation.render() if action.remediation is not None else "",
        )
        return msgspec.convert(await self._create(body, Machine.__resource__, kcp), Machine)

    def _new_name(self, scope: ControlPlaneScope) -> str:
        template = scope.kcp.spec.machine_naming.template or naming.CONTROL_PLANE_TEMPLATE
        values = {"cluster.name": scope.cluster.metadata.name, "kubeadmControlPlane.name": scope.kcp.metadata.name}
        return naming.render(template, values)


def _same(config: KubeadmConfig, wanted: dict[str, Any]) -> bool:
    return comparable(wire(config.spec)) == comparable(wanted.get("spec") or {})
