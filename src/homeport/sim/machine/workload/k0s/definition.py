"""The kinds of k0s inside its cluster."""

from __future__ import annotations

from typing import Final

from homeport.api.meta import Resource
from homeport.runtime.definition import definition
from homeport.sim.machine.workload.kind import Json

ETCD_MEMBER: Final = Resource("etcd.k0sproject.io", "v1beta1", "EtcdMember", "etcdmembers", namespaced=False)
CONTROL_NODE: Final = Resource("autopilot.k0sproject.io", "v1beta2", "ControlNode", "controlnodes", namespaced=False)
PLAN: Final = Resource("autopilot.k0sproject.io", "v1beta2", "Plan", "plans", namespaced=False)
CLUSTER_CONFIG: Final = Resource("k0s.k0sproject.io", "v1beta1", "ClusterConfig", "clusterconfigs")
CHART: Final = Resource("helm.k0sproject.io", "v1beta1", "Chart", "charts")

_TEXT = {"type": "string"}
_TIME = {**_TEXT, "format": "date-time"}
_SWITCH = {"type": "boolean"}
_NUMBER = {"type": "integer"}
_ANYTHING: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definitions() -> list[Json]:
    member = definition(ETCD_MEMBER, schema=_object(spec=_object(leave=_SWITCH), status=_member_status()))
    path = '.status.conditions[?(@.type=="Joined")].status'
    member["spec"]["versions"][0]["additionalPrinterColumns"] = [
        {"name": "Peer Address", "type": "string", "jsonPath": ".status.peerAddress"},
        {"name": "Member ID", "type": "string", "jsonPath": ".status.memberID"},
        {"name": "Joined", "type": "string", "jsonPath": path},
        {"name": "Reconcile Status", "type": "string", "jsonPath": ".status.reconcileStatus"},
    ]
    address = {**_object(address=_TEXT, type=_TEXT), "required": ["address", "type"]}
    node = _object(status=_object(k0sVersion=_TEXT, addresses=_list(address)))
    return [
        member,
        definition(CONTROL_NODE, schema=node),
        definition(PLAN, schema=_object(spec=_plan_spec(), status=_plan_status())),
        definition(CLUSTER_CONFIG, schema=_object(spec=_ANYTHING, status=_ANYTHING)),
        definition(CHART, schema=_object(spec=_chart_spec(), status=_chart_status())),
    ]


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


def _member_status() -> Json:
    condition = _object(
        type={**_TEXT, "enum": ["Joined"]},
        status={**_TEXT, "enum": ["True", "False", "Unknown"]},
        lastTransitionTime=_TIME,
        message=_TEXT,
    )
    condition["required"] = ["type", "status"]
    conditions = {
        **_list(condition),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    }
    status = _object(
        peerAddress=_TEXT,
        memberID={**_TEXT, "pattern": "^[a-fA-F0-9]+$"},
        reconcileStatus=_TEXT,
        message=_TEXT,
        conditions=conditions,
    )
    status["required"] = ["peerAddress", "memberID"]
    return status


def _target() -> Json:
    static = _object(nodes=_list(_TEXT))
    discovery = _object(static=static, selector=_object(labels=_TEXT, fields=_TEXT))
    limits = {**_object(concurrent={**_NUMBER, "default": 1}), "default": {"concurrent": 1}}
    return {**_object(discovery=discovery, limits=limits), "required": ["discovery"]}


def _plan_spec() -> Json:
    source = {**_object(url=_TEXT, sha256=_TEXT), "required": ["url"]}
    platforms = {"type": "object", "additionalProperties": source}
    update = _object(
        version=_TEXT,
        forceupdate=_SWITCH,
        platforms=platforms,
        targets=_object(controllers=_target(), workers=_target()),
    )
    update["required"] = ["platforms", "targets", "version"]
    bundle = _object(version=_TEXT, platforms=platforms, workers=_target())
    bundle["required"] = ["platforms", "version", "workers"]
    spec = _object(id=_TEXT, timestamp=_TEXT, commands=_list(_object(k0supdate=update, airgapupdate=bundle)))
    spec["required"] = ["commands", "id", "timestamp"]
    return spec


def _plan_status() -> Json:
    target = _object(name=_TEXT, state=_TEXT, lastUpdatedTimestamp=_TIME)
    target["required"] = ["lastUpdatedTimestamp", "name", "state"]
    command = _object(
        id=_NUMBER,
        state=_TEXT,
        description=_TEXT,
        k0supdate=_object(controllers=_list(target), workers=_list(target)),
        airgapupdate=_object(workers=_list(target)),
    )
    command["required"] = ["id", "state"]
    return _object(state=_TEXT, commands=_list(command))


def _chart_spec() -> Json:
    reference = _object(secretRef={**_object(name=_TEXT, namespace=_TEXT), "required": ["name"]})
    repository = _object(
        url=_TEXT, username=_TEXT, password=_TEXT, caFile=_TEXT, certFile=_TEXT, keyFile=_TEXT, insecure=_SWITCH,
        configFrom=reference,
    )  # fmt: skip
    return _object(
        chartName=_TEXT, releaseName=_TEXT, namespace=_TEXT, version=_TEXT, values=_TEXT, timeout=_TEXT, order=_NUMBER,
        forceUpgrade=_SWITCH, repository=repository,
    )  # fmt: skip


def _chart_status() -> Json:
    return _object(
        appVersion=_TEXT, error=_TEXT, namespace=_TEXT, releaseName=_TEXT, revision={**_NUMBER, "format": "int64"},
        status=_TEXT, updated=_TEXT, valuesHash=_TEXT, version=_TEXT,
    )  # fmt: skip
