"""The objects of an imported cluster, as the controllers would have made them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from homeport.api.bootstrap.v1beta2 import KubeadmConfig, KubeadmConfigTemplate
from homeport.api.cluster.v1beta2 import Cluster, MachineDeployment, MachineSet
from homeport.api.controlplane.v1beta2 import KubeadmControlPlane
from homeport.api.meta import Resource, Unstructured
from homeport.app.importer import configuration
from homeport.app.importer.match import Match
from homeport.app.importer.source import Running
from homeport.capi.name import BOOTSTRAP_GROUP, CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import owner_reference
from homeport.capi.object.template import clone
from homeport.client.protocol import Key
from homeport.controlplane.kubeadm import desired
from homeport.core.machineset.machine import annotations_of, labels_of, new_machine
from homeport.infra.cluster.vip import WANTED

Json = dict[str, Any]

IMPORTED = "import.homeport.dev/cluster"  # on every object of an import: the Cluster's name
STATE = "import.homeport.dev/state"  # on the Cluster
IMPORTING, DONE = "importing", "done"
_EXTERNAL = [{"name": "cloud-provider", "value": "external"}]


@dataclass(frozen=True, slots=True)
class Group:
    """Machines of one template. Workers of a group have the same size and version."""

    name: str
    version: str
    spec: Mapping[str, Any]  # of the template
    matches: tuple[Match, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """Everything that the objects are made from."""

    key: Key
    running: Running
    control_plane: Group
    workers: tuple[Group, ...]
    infra_cluster: Json
    cluster_kind: Resource
    machine_kind: Resource
    template_kind: Resource
    external: bool  # kubelets of new machines wait for a cloud controller manager
    notes: tuple[str, ...] = field(default=())

    @property
    def kcp_name(self) -> str:
        return f"{self.key.name}-kcp"


def group_machines(
    cluster: str, matches: Sequence[Match], specs: Mapping[str, Json]
) -> tuple[Group, tuple[Group, ...]]:
    """The control plane, and workers by size and version. `specs`: of the machines, by the id of the VM."""
    planes = [each for each in matches if each.control_plane]
    shapes = Counter(_digest(specs[each.candidate.id]) for each in planes)
    usual = shapes.most_common(1)[0][0]
    spec = next(specs[each.candidate.id] for each in planes if _digest(specs[each.candidate.id]) == usual)
    control_plane = Group(f"{cluster}-cp", planes[0].version, spec, tuple(planes))
    found: dict[tuple[str, str], list[Match]] = {}
    for each in sorted((m for m in matches if not m.control_plane), key=lambda m: m.machine):
        found.setdefault((each.version, _digest(specs[each.candidate.id])), []).append(each)
    workers = tuple(
        Group(f"{cluster}-md-{number}", version, specs[members[0].candidate.id], tuple(members))
        for number, ((version, _), members) in enumerate(found.items())
    )
    return control_plane, workers


def _digest(spec: Mapping[str, Any]) -> str:
    return orjson.dumps(spec, option=orjson.OPT_SORT_KEYS).decode()


# -- objects that own the others -------------------------------------------------------------------------------------


def cluster_body(draft: Draft) -> Json:
    """Paused until everything is there."""
    host, port = draft.running.endpoint
    body = _object(draft, Cluster.__resource__, draft.key.name)
    body["metadata"]["annotations"][STATE] = IMPORTING
    if not draft.running.vip:
        body["metadata"]["annotations"][WANTED] = "false"
    body["spec"] = {
        "paused": True,
        "clusterNetwork": configuration.cluster_network(draft.running.configuration),
        "controlPlaneEndpoint": {"host": host, "port": port},
        "controlPlaneRef": _ref(KubeadmControlPlane.__resource__, draft.kcp_name),
        "infrastructureRef": _ref(draft.cluster_kind, draft.key.name),
    }
    return body


def template_body(draft: Draft, group: Group) -> Json:
    body = _object(draft, draft.template_kind, group.name)
    body["spec"] = {"template": {"spec": dict(group.spec)}}
    return body


def control_plane_body(draft: Draft) -> Json:
    body = _object(draft, KubeadmControlPlane.__resource__, draft.kcp_name)
    registration = {"nodeRegistration": {"kubeletExtraArgs": _EXTERNAL}} if draft.external else {}
    config: Json = {"clusterConfiguration": configuration.cluster_configuration(draft.running.configuration)}
    if registration:
        config |= {"initConfiguration": registration, "joinConfiguration": registration}
    if files := draft.running.vip_file:
        config["files"] = files
    body["spec"] = {
        "replicas": len(draft.control_plane.matches),
        "version": draft.control_plane.version,
        "machineTemplate": {"spec": {"infrastructureRef": _ref(draft.template_kind, draft.control_plane.name)}},
        "kubeadmConfigSpec": config,
    }
    return body


def config_template_body(draft: Draft, group: Group) -> Json:
    body = _object(draft, KubeadmConfigTemplate.__resource__, group.name)
    registration = {"kubeletExtraArgs": _EXTERNAL} if draft.external else {"imagePullPolicy": "IfNotPresent"}
    body["spec"] = {"template": {"spec": {"joinConfiguration": {"nodeRegistration": registration}}}}
    return body


def deployment_body(draft: Draft, group: Group) -> Json:
    body = _object(draft, MachineDeployment.__resource__, group.name)
    body["spec"] = {
        "clusterName": draft.key.name,
        "replicas": len(group.matches),
        "selector": {"matchLabels": {}},
        "template": {
            "spec": {
                "clusterName": draft.key.name,
                "version": group.version,
                "bootstrap": {"configRef": _ref(KubeadmConfigTemplate.__resource__, group.name)},
                "infrastructureRef": _ref(draft.template_kind, group.name),
            }
        },
    }
    return body


# -- Machines --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MachineBodies:
    """The three objects of one Machine."""

    config: Json
    infra: Json
    machine: Json


def control_plane_machine(
    draft: Draft, kcp: KubeadmControlPlane, template: Unstructured, found: Match, spec: Mapping[str, Any]
) -> MachineBodies:
    name, cluster = found.machine, draft.key.name
    config = desired.kubeadm_config(kcp, cluster, name, join=True)
    config["metadata"].pop("ownerReferences", None)  # its Machine becomes its owner
    labels = desired.machine_labels(kcp, cluster)
    infra = _infra(draft, template, found, spec, labels, desired.machine_annotations(kcp))
    machine = desired.machine(
        kcp,
        cluster,
        name,
        bootstrap=_ref(KubeadmConfig.__resource__, name),
        infrastructure=_ref(draft.machine_kind, name),
    )
    return _finished(draft, config, infra, machine, found)


def worker_machine(
    draft: Draft,
    machine_set: MachineSet,
    template: Unstructured,
    config_template: Unstructured,
    found: Match,
    spec: Mapping[str, Any],
) -> MachineBodies:
    name, labels = found.machine, labels_of(machine_set)
    config = clone(
        config_template, name=name, namespace=draft.key.namespace, cluster_name=draft.key.name, labels=labels
    )
    infra = _infra(draft, template, found, spec, labels, annotations_of(machine_set))
    machine = new_machine(
        machine_set,
        name,
        bootstrap={"apiGroup": BOOTSTRAP_GROUP, "kind": config["kind"], "name": name},
        infrastructure=_ref(draft.machine_kind, name),
    )
    return _finished(draft, config, infra, machine, found)


def _infra(
    draft: Draft,
    template: Unstructured,
    found: Match,
    spec: Mapping[str, Any],
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> Json:
    """Its own size, which may differ from that of the template."""
    body = clone(
        template,
        name=found.machine,
        namespace=draft.key.namespace,
        cluster_name=draft.key.name,
        labels=labels,
        annotations=annotations,
    )
    body["spec"] = {**spec, "providerID": provider_id(found)}
    return body


def provider_id(found: Match) -> str:
    """As the Node has it, whichever form that is."""
    return str((found.node.get("spec") or {}).get("providerID") or found.candidate.provider_id)


def _finished(draft: Draft, config: Json, infra: Json, machine: Json, found: Match) -> MachineBodies:
    """With what says that the machine runs: nothing makes bootstrap data or a VM for it."""
    machine["spec"]["providerID"] = provider_id(found)
    machine["spec"]["bootstrap"]["dataSecretName"] = found.machine
    for body in (config, infra, machine):
        body["metadata"].setdefault("annotations", {})[IMPORTED] = draft.key.name
    return MachineBodies(config, infra, machine)


def owned(body: Mapping[str, Any], owner: Any, *, controller: bool = False) -> Json:
    made = dict(body)
    made["metadata"] = {**body["metadata"], "ownerReferences": [owner_reference(owner, controller=controller)]}
    return made


def annotated(draft: Draft, body: Mapping[str, Any]) -> Json:
    """An object that others built, as one of this import."""
    meta = body["metadata"]
    annotations = {**(meta.get("annotations") or {}), IMPORTED: draft.key.name}
    return {**body, "metadata": {**meta, "annotations": annotations}}


def _object(draft: Draft, kind: Resource, name: str) -> Json:
    meta = {
        "name": name,
        "namespace": draft.key.namespace,
        "labels": {CLUSTER_NAME_LABEL: draft.key.name},
        "annotations": {IMPORTED: draft.key.name},
    }
    return {**kind.type_meta, "metadata": meta}


def _ref(kind: Resource, name: str) -> Json:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}
