"""The ClusterClasses of an infrastructure, and the templates that they refer to. Variables carry the values. Pure.

They belong to the provider, not to a cluster: all clusters of one mode share a class.
"""

from __future__ import annotations

from typing import Any

from homeport.capi.name import TOPOLOGY_CLONE_NAME
from homeport.platforms.k0rdent.cluster.vendor import Chart, Vendor
from homeport.platforms.k0rdent.name import MANAGED, RELEASE_NAME_LABEL, RELEASE_NAMESPACE_LABEL, SYSTEM_NAMESPACE

Json = dict[str, Any]

WORKER_CLASS = "default-worker"
KONNECTIVITY_PORT = 8132
K0S_VARIABLE = "k0sConfig"

_CAPI = "cluster.x-k8s.io/v1beta2"
_BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
_PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
_SPEC = "/spec/template/spec"
_TEXT: Json = {"type": "string"}
_OPEN: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
# Whoever deletes the cluster deletes its data: another cluster of the same name must not start with them.
_STORAGE: Json = {"type": "etcd", "etcd": {"autoDeletePVCs": True}}


def worker_topology(chart: Chart) -> str:
    """Clones of the templates of workers are named CLUSTER-...-mt-SUFFIX."""
    return f"{chart.mode}-worker-mt"


def class_objects(chart: Chart) -> list[Json]:
    """The class and its templates, in the order in which they are applied."""
    vendor = chart.vendor
    prefix = f"{vendor.release}-{chart.mode}"
    infra = _template(vendor, vendor.api_version, vendor.cluster_template, f"{prefix}-cluster", {})
    machines = _machines(vendor, f"{prefix}-worker-mt")
    bootstrap = _template(vendor, _BOOTSTRAP, "K0sWorkerConfigTemplate", f"{prefix}-worker-bootstrap", {})
    if chart.hosted:
        plane = _template(vendor, _PLANE, "K0smotronControlPlaneTemplate", f"{prefix}-cp", {"storage": _STORAGE})
        templates = [infra, plane, bootstrap, machines]
        spec = _class_spec(chart, infra, plane, bootstrap, machines)
    else:
        plane = _template(vendor, _PLANE, "K0sControlPlaneTemplate", f"{prefix}-cp", {"k0sConfigSpec": {"args": []}})
        own = _machines(vendor, f"{prefix}-cp-mt")
        own["metadata"]["annotations"] = {TOPOLOGY_CLONE_NAME: f"{chart.mode}-cp-mt"}
        templates = [infra, plane, own, bootstrap, machines]
        spec = _class_spec(chart, infra, plane, bootstrap, machines)
        spec["controlPlane"]["machineInfrastructure"] = {"templateRef": _ref(own)}
    return [*templates, _object(vendor, _CAPI, "ClusterClass", chart.name, spec)]


def _object(vendor: Vendor, api_version: str, kind: str, name: str, spec: Json) -> Json:
    labels = {**MANAGED, RELEASE_NAME_LABEL: vendor.release, RELEASE_NAMESPACE_LABEL: SYSTEM_NAMESPACE}
    meta = {"name": name, "namespace": SYSTEM_NAMESPACE, "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def _machines(vendor: Vendor, name: str) -> Json:
    return _template(vendor, vendor.api_version, vendor.machine_template, name, vendor.placeholder)


def _template(vendor: Vendor, api_version: str, kind: str, name: str, spec: Json) -> Json:
    return _object(vendor, api_version, kind, name, {"template": {"spec": spec}})


def _ref(template: Json) -> Json:
    return {"apiVersion": template["apiVersion"], "kind": template["kind"], "name": template["metadata"]["name"]}


def _class_spec(chart: Chart, infra: Json, plane: Json, bootstrap: Json, machines: Json) -> Json:
    return {
        "infrastructure": {"templateRef": _ref(infra), "naming": {"template": "{{ .cluster.name }}-cluster"}},
        "controlPlane": {
            "templateRef": _ref(plane),
            "naming": {"template": f"{{{{ .cluster.name }}}}-{chart.mode}-cp"},
        },
        "workers": {
            "machineDeployments": [
                {
                    "class": WORKER_CLASS,
                    "bootstrap": {"templateRef": _ref(bootstrap)},
                    "infrastructure": {"templateRef": _ref(machines)},
                    "naming": {"template": "{{ .cluster.name }}-md"},
                }
            ]
        },
        "variables": _variables(chart),
        "patches": [_infra_patch(chart.vendor), *_plane_patches(chart), *_machine_patches(chart), _bootstrap_patch()],
    }


# -- variables -----------------------------------------------------------------------------------------------------


def _variable(name: str, schema: Json) -> Json:
    return {"name": name, "required": True, "schema": {"openAPIV3Schema": schema}}


def _properties(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def _variables(chart: Chart) -> list[Json]:
    vendor = chart.vendor
    endpoint = _properties(host=_TEXT, port={"type": "integer", "minimum": 1, "maximum": 65535})
    machines = _OPEN if chart.hosted else _properties(controlPlane=_OPEN, worker=_OPEN)
    k0s = _properties(
        controlPlane=_properties(
            args={"type": "array", "items": _TEXT},
            config=_OPEN,
            files={"type": "array", "items": _OPEN},
            mounts={"type": "array", "items": _OPEN},
        ),
        worker=_properties(args={"type": "array", "items": _TEXT}),
    )
    return [
        _variable(vendor.cluster_variable, _properties(**vendor.cluster_fields, controlPlaneEndpoint=endpoint)),
        _variable(vendor.machine_variable, machines),
        _variable(K0S_VARIABLE, k0s),
    ]


# -- patches -------------------------------------------------------------------------------------------------------


def _selector(api_version: str, kind: str, **match: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "matchResources": match}


def _from(path: str, variable: str) -> Json:
    return {"op": "add", "path": f"{_SPEC}{path}", "valueFrom": {"variable": variable}}


def _rendered(path: str, template: str) -> Json:
    return {"op": "add", "path": f"{_SPEC}{path}", "valueFrom": {"template": template}}


def _patch(name: str, selector: Json, *operations: Json, **more: Any) -> Json:
    return {"name": name, "definitions": [{"selector": selector, "jsonPatches": list(operations)}], **more}


def _infra_patch(vendor: Vendor) -> Json:
    return _patch(
        "infrastructure",
        _selector(vendor.api_version, vendor.cluster_template, infrastructureCluster=True),
        *(_from(f"/{each}", f"{vendor.cluster_variable}.{each}") for each in vendor.cluster_fields),
        _rendered(
            "/controlPlaneEndpoint",
            f"{{{{ with .{vendor.cluster_variable}.controlPlaneEndpoint }}}}"
            '{host: {{ .host | default "" | quote }}, port: {{ .port }}}{{ end }}',
        ),
    )


def _machine_patches(chart: Chart) -> list[Json]:
    vendor, workers = chart.vendor, {"machineDeploymentClass": {"names": [WORKER_CLASS]}}
    of = vendor.machine_variable if chart.hosted else f"{vendor.machine_variable}.worker"
    api_version, kind = vendor.api_version, vendor.machine_template
    found = [_patch("workers", _selector(api_version, kind, **workers), _from("", of))]
    if not chart.hosted:
        own = _selector(api_version, kind, controlPlane=True)
        found.append(_patch("control-plane-machines", own, _from("", f"{vendor.machine_variable}.controlPlane")))
    return found


def _bootstrap_patch() -> Json:
    workers = {"machineDeploymentClass": {"names": [WORKER_CLASS]}}
    return _patch(
        "worker-bootstrap",
        _selector(_BOOTSTRAP, "K0sWorkerConfigTemplate", **workers),
        _from("/version", "builtin.machineDeployment.version"),
        _from("/args", f"{K0S_VARIABLE}.worker.args"),
    )


def _plane_patches(chart: Chart) -> list[Json]:
    if not chart.hosted:
        plane = _selector(_PLANE, "K0sControlPlaneTemplate", controlPlane=True)
        return [
            _patch(
                "control-plane",
                plane,
                _from("/k0sConfigSpec/args", f"{K0S_VARIABLE}.controlPlane.args"),
                _from("/k0sConfigSpec/k0s", f"{K0S_VARIABLE}.controlPlane.config"),
            ),
            _patch(
                "control-plane-files",
                plane,
                _from("/k0sConfigSpec/files", f"{K0S_VARIABLE}.controlPlane.files"),
                enabledIf="{{ if .k0sConfig.controlPlane.files }}true{{ end }}",
            ),
        ]
    plane = _selector(_PLANE, "K0smotronControlPlaneTemplate", controlPlane=True)
    endpoint = f"{chart.vendor.cluster_variable}.controlPlaneEndpoint"
    service = f"{{type: LoadBalancer, apiPort: {{{{ .{endpoint}.port }}}}, konnectivityPort: {KONNECTIVITY_PORT}}}"
    return [
        _patch(
            "control-plane",
            plane,
            _rendered("/service", service),
            _from("/k0sConfig", f"{K0S_VARIABLE}.controlPlane.config"),
            _from("/controlPlaneFlags", f"{K0S_VARIABLE}.controlPlane.args"),
        ),
        _patch(
            "control-plane-address",
            plane,
            _from("/externalAddress", f"{endpoint}.host"),
            _rendered("/patches", _ADDRESS_PATCH.replace("ENDPOINT", endpoint)),
            enabledIf=f"{{{{ if .{endpoint}.host }}}}true{{{{ end }}}}",
        ),
        _patch(
            "control-plane-mounts",
            plane,
            _from("/mounts", f"{K0S_VARIABLE}.controlPlane.mounts"),
            enabledIf="{{ if .k0sConfig.controlPlane.mounts }}true{{ end }}",
        ),
    ]


# The Service asks for the address itself: nothing else would make it answer there.
_ADDRESS_PATCH = """\
- target: {kind: Service, component: control-plane}
  patch:
    type: merge
    content: |
      spec:
        loadBalancerIP: {{ .ENDPOINT.host }}
"""
