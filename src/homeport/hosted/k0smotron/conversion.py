"""k0smotron's kinds between v1beta1 and v1beta2, without loss.

Settings of the Service that only v1beta1 has are kept in annotations, under the names that k0smotron itself uses: the
controller reads them there.
"""

from __future__ import annotations

from typing import Any

import orjson

from homeport.api.k0smotron import v1beta1, v1beta2
from homeport.api.meta import Object
from homeport.capi.conversion.codec import Context
from homeport.capi.conversion.registration import register_conversions
from homeport.capi.conversion.rule import ABSENT, Custom, Move, Rule, Within, find, put, take
from homeport.capi.k0s.status import status_down, status_up
from homeport.hosted.k0smotron.name import CLUSTER_NAMESPACE_ANNOTATION, DROPPED_SERVICE_PREFIX
from homeport.runtime.webhook.hook import Hooks

Json = dict[str, Any]

SERVICE_FIELDS = ("labels", "annotations", "externalTrafficPolicy", "loadBalancerClass")


# -- spec ----------------------------------------------------------------------------------------------------------


def _storage_up(spec: Json, _: Context) -> None:
    kine = {
        new: value
        for old, new in (("kineDataSourceURL", "dataSourceURL"), ("kineDataSourceSecretName", "dataSourceSecretName"))
        if (value := spec.pop(old, None))
    }
    storage: Json = {"type": "kine" if kine else "etcd"}
    etcd = spec.pop("etcd", None)
    if etcd is not None:
        storage["etcd"] = etcd
    if kine:
        storage["kine"] = kine
    spec["storage"] = storage


def _storage_down(spec: Json, _: Context) -> None:
    storage = spec.pop("storage", None) or {}
    if storage.get("etcd") is not None:
        spec["etcd"] = storage["etcd"]
    if storage.get("type") == "kine":
        kine = storage.get("kine") or {}
        for new, old in (("dataSourceURL", "kineDataSourceURL"), ("dataSourceSecretName", "kineDataSourceSecretName")):
            if kine.get(new):
                spec[old] = kine[new]


_SPEC: list[Rule] = [
    Custom(_storage_up, _storage_down),
    Move("controllerPlaneFlags", "controlPlaneFlags"),
    Move("kubeconfigRef", "remoteHostCluster.kubeconfigRef"),
]


def _service(spec: str, metadata: str) -> Rule:
    """`spec`: where the spec stands in the object; `metadata`: whose annotations the controller of that spec sees."""

    def up(obj: Json, _: Context) -> None:
        for field in SERVICE_FIELDS:
            value = take(obj, f"{spec}.service.{field}")
            if value is not ABSENT and value not in (None, "", {}):
                annotations = find(obj, f"{metadata}.annotations")
                kept = dict(annotations) if isinstance(annotations, dict) else {}
                put(
                    obj,
                    f"{metadata}.annotations",
                    kept | {DROPPED_SERVICE_PREFIX + field: orjson.dumps(value).decode()},
                )

    def down(obj: Json, _: Context) -> None:
        annotations = find(obj, f"{metadata}.annotations")
        if not isinstance(annotations, dict):
            return
        left = dict(annotations)
        for field in SERVICE_FIELDS:
            value = dropped_service_field(annotations, field)
            if value is not None:
                put(obj, f"{spec}.service.{field}", value)
                left.pop(DROPPED_SERVICE_PREFIX + field)
        if left:
            put(obj, f"{metadata}.annotations", left)
        elif annotations:
            take(obj, f"{metadata}.annotations")

    return Custom(up, down)


def dropped_service_field(annotations: dict[str, str], field: str) -> Any:
    """What v1beta1 said of the Service; None: nothing that can be read."""
    text = annotations.get(DROPPED_SERVICE_PREFIX + field, "")
    try:
        value = orjson.loads(text) if text else None
    except orjson.JSONDecodeError:
        return None
    wanted: type = dict if field in ("labels", "annotations") else str
    return value if isinstance(value, wanted) and value else None


# -- status --------------------------------------------------------------------------------------------------------


def _reconciliation_status() -> Rule:
    """Required in v1beta1."""

    def up(_: Json, __: Context) -> None:
        return

    def down(obj: Json, _: Context) -> None:
        status = obj.get("status")
        if isinstance(status, dict) and status:
            status.setdefault("reconciliationStatus", "")

    return Custom(up, down)


def _condition_up(obj: Json, _: Context) -> None:
    _rename_condition(obj.get("status"), "ControlPlaneReady", "Available")


def _condition_down(obj: Json, _: Context) -> None:
    _rename_condition(obj.get("status"), "Available", "ControlPlaneReady")


def _rename_condition(status: Any, old: str, new: str) -> None:
    if not isinstance(status, dict):
        return
    for each in status.get("conditions") or ():
        if isinstance(each, dict) and each.get("type") == old:
            each["type"] = new


def _cluster_namespace_up(obj: Json, _: Context) -> None:
    namespace = take(obj, "spec.clusterRef.namespace")
    if isinstance(namespace, str) and namespace and namespace != (obj.get("metadata") or {}).get("namespace"):
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        obj["metadata"]["annotations"] = annotations | {CLUSTER_NAMESPACE_ANNOTATION: namespace}


def _cluster_namespace_down(obj: Json, _: Context) -> None:
    metadata = obj.get("metadata") or {}
    annotations = dict(metadata.get("annotations") or {})
    namespace = annotations.pop(CLUSTER_NAMESPACE_ANNOTATION, "") or metadata.get("namespace", "")
    if CLUSTER_NAMESPACE_ANNOTATION in (metadata.get("annotations") or {}):
        metadata["annotations"] = annotations
        if not annotations:
            del metadata["annotations"]
    if namespace:
        put(obj, "spec.clusterRef.namespace", namespace)


def _deprecated(*fields: str) -> list[Rule]:
    return [Move(f"status.{field}", f"status.deprecated.v1beta1.{field}") for field in fields]


CLUSTER: list[Rule] = [
    _service("spec", "metadata"),
    Within("spec", _SPEC),
    _reconciliation_status(),
    *_deprecated("reconciliationStatus", "ready"),
]
JOIN_TOKEN_REQUEST: list[Rule] = [
    Custom(_cluster_namespace_up, _cluster_namespace_down),
    Move("spec.clusterRef.name", "spec.clusterName"),
    _reconciliation_status(),
    *_deprecated("reconciliationStatus", "clusterUID"),
]
CONTROL_PLANE: list[Rule] = [
    _service("spec", "metadata"),
    Within("spec", _SPEC),
    Custom(status_up, status_down),
    Custom(_condition_up, _condition_down),
]
# The annotations of the template's own metadata reach the control planes that are made from it.
CONTROL_PLANE_TEMPLATE: list[Rule] = [
    _service("spec.template.spec", "spec.template.metadata"),
    Within("spec.template.spec", _SPEC),
]

KINDS: tuple[tuple[tuple[type[Object], type[Object]], list[Rule]], ...] = (
    ((v1beta1.Cluster, v1beta2.Cluster), CLUSTER),
    ((v1beta1.JoinTokenRequest, v1beta2.JoinTokenRequest), JOIN_TOKEN_REQUEST),
    ((v1beta1.K0smotronControlPlane, v1beta2.K0smotronControlPlane), CONTROL_PLANE),
    ((v1beta1.K0smotronControlPlaneTemplate, v1beta2.K0smotronControlPlaneTemplate), CONTROL_PLANE_TEMPLATE),
)


def register(hooks: Hooks) -> None:
    register_conversions(hooks, KINDS)
