"""The ClusterClasses of an infrastructure, and the templates that they refer to. Variables carry the values. Pure.

They belong to the provider, not to a cluster: all clusters of one mode share a class.
"""

from __future__ import annotations

from typing import Any

from homeport.capi.name import STAYS_LABEL, TOPOLOGY_CLONE_NAME
from homeport.platforms.k0rdent.cluster.distribution import Blank
from homeport.platforms.k0rdent.cluster.part import OPEN, properties
from homeport.platforms.k0rdent.cluster.patch import WORKER_CLASS, WORKERS, from_variable, patch, rendered, selector
from homeport.platforms.k0rdent.cluster.vendor import Chart, Vendor
from homeport.platforms.k0rdent.name import MANAGED, RELEASE_NAME_LABEL, RELEASE_NAMESPACE_LABEL, SYSTEM_NAMESPACE

Json = dict[str, Any]

_CAPI = "cluster.x-k8s.io/v1beta2"
_TEXT: Json = {"type": "string"}


def worker_topology(chart: Chart) -> str:
    """Clones of the templates of workers are named CLUSTER-...-mt-SUFFIX."""
    return f"{chart.mode}-worker-mt"


def class_objects(chart: Chart) -> list[Json]:
    """The class and its templates, in the order in which they are applied."""
    vendor, distribution = chart.vendor, chart.distribution
    prefix = f"{vendor.release}-{distribution.infix}{chart.mode}"
    infra = _template(vendor, Blank(vendor.api_version, vendor.cluster_template, {}), f"{prefix}-cluster")
    machines = _machines(vendor, f"{prefix}-worker-mt")
    bootstrap = _template(vendor, distribution.worker, f"{prefix}-worker-bootstrap")
    plane = _template(vendor, distribution.plane(chart.hosted), f"{prefix}-cp")
    templates = [infra, plane, bootstrap, machines]
    spec = _class_spec(chart, infra, plane, bootstrap, machines)
    if not chart.hosted:
        own = _machines(vendor, f"{prefix}-cp-mt")
        own["metadata"]["annotations"] = {TOPOLOGY_CLONE_NAME: f"{chart.mode}-cp-mt"}
        templates.insert(2, own)
        spec["controlPlane"]["machineInfrastructure"] = {"templateRef": _ref(own)}
    return [*templates, _object(vendor, _CAPI, "ClusterClass", chart.name, spec)]


def _object(vendor: Vendor, api_version: str, kind: str, name: str, spec: Json) -> Json:
    labels = {**MANAGED, STAYS_LABEL: "", RELEASE_NAME_LABEL: vendor.release, RELEASE_NAMESPACE_LABEL: SYSTEM_NAMESPACE}
    meta = {"name": name, "namespace": SYSTEM_NAMESPACE, "labels": labels}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}


def _machines(vendor: Vendor, name: str) -> Json:
    return _template(vendor, Blank(vendor.api_version, vendor.machine_template, vendor.placeholder), name)


def _template(vendor: Vendor, blank: Blank, name: str) -> Json:
    return _object(vendor, blank.api_version, blank.kind, name, {"template": {"spec": blank.spec}})


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
        "patches": _patches(chart),
    }


# -- variables -----------------------------------------------------------------------------------------------------


def _variable(name: str, schema: Json) -> Json:
    return {"name": name, "required": True, "schema": {"openAPIV3Schema": schema}}


def _variables(chart: Chart) -> list[Json]:
    vendor = chart.vendor
    endpoint = properties(host=_TEXT, port={"type": "integer", "minimum": 1, "maximum": 65535})
    machines = OPEN if chart.hosted else properties(controlPlane=OPEN, worker=OPEN)
    return [
        _variable(vendor.cluster_variable, properties(**vendor.cluster_fields, controlPlaneEndpoint=endpoint)),
        _variable(vendor.machine_variable, machines),
        _variable(chart.distribution.variable, chart.distribution.variable_schema),
    ]


# -- patches -------------------------------------------------------------------------------------------------------


def _patches(chart: Chart) -> list[Json]:
    endpoint = f"{chart.vendor.cluster_variable}.controlPlaneEndpoint"
    return [
        _infra_patch(chart.vendor),
        *chart.distribution.plane_patches(chart.hosted, endpoint),
        *_machine_patches(chart),
        chart.distribution.worker_patch(),
    ]


def _infra_patch(vendor: Vendor) -> Json:
    return patch(
        "infrastructure",
        selector(vendor.api_version, vendor.cluster_template, infrastructureCluster=True),
        *(from_variable(f"/{each}", f"{vendor.cluster_variable}.{each}") for each in vendor.cluster_fields),
        rendered(
            "/controlPlaneEndpoint",
            f"{{{{ with .{vendor.cluster_variable}.controlPlaneEndpoint }}}}"
            '{host: {{ .host | default "" | quote }}, port: {{ .port }}}{{ end }}',
        ),
    )


def _machine_patches(chart: Chart) -> list[Json]:
    vendor = chart.vendor
    of = vendor.machine_variable if chart.hosted else f"{vendor.machine_variable}.worker"
    api_version, kind = vendor.api_version, vendor.machine_template
    found = [patch("workers", selector(api_version, kind, **WORKERS), from_variable("", of))]
    if not chart.hosted:
        own = selector(api_version, kind, controlPlane=True)
        found.append(patch("control-plane-machines", own, from_variable("", f"{vendor.machine_variable}.controlPlane")))
    return found
