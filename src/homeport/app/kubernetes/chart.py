"""A Helm chart of an installation: the same objects, with values where users choose."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from homeport import __version__
from homeport.app.kubernetes.dashboard import place as dashboard
from homeport.app.kubernetes.dashboard.object import DashboardOptions, render
from homeport.app.kubernetes.file import write
from homeport.app.kubernetes.layout import LAYOUTS, SYSTEM_NAMESPACE
from homeport.app.kubernetes.plan import Plan
from homeport.app.kubernetes.workload import LABELS, Json, PodOptions

NAME = "homeport"
_IMAGE, _CCM_IMAGE, _REPLICAS, _OPTION, _RESOURCES = (
    "VALUE-IMAGE",
    "VALUE-CCM-IMAGE",
    424242,
    "VALUE-OPTIONS",
    "VALUE-RES",
)
_HOST = "VALUE-HOST"
_PULL, _SELECTOR, _TOLERATIONS = "VALUE-PULL", "VALUE-SELECTOR", "VALUE-TOLERATIONS"
# Text of the rendered objects > text of the template.
_VALUES = {
    f"replicas: {_REPLICAS}": "replicas: {{ .Values.replicas }}",
    f"image: {_IMAGE}": "image: {{ .Values.image | quote }}",
    f"value: {_CCM_IMAGE}": "value: {{ .Values.ccmImage | default .Values.image | quote }}",
    f"        - {_OPTION}\n": "        {{- range .Values.options }}\n        - {{ . | quote }}\n        {{- end }}\n",
    f"        - --host={_HOST}\n": (
        '        {{- range .Values.dashboard.hosts }}\n        - {{ print "--host=" . | quote }}\n        {{- end }}\n'
    ),
    f"hosts: {_HOST}": 'hosts: {{ join " " .Values.dashboard.hosts | quote }}',
    f"resources: {_RESOURCES}": "resources: {{- toYaml .Values.resources | nindent 10 }}",
    f"imagePullSecrets: {_PULL}": "imagePullSecrets: {{- toYaml .Values.imagePullSecrets | nindent 8 }}",
    f"nodeSelector: {_SELECTOR}": "nodeSelector: {{- toYaml .Values.nodeSelector | nindent 8 }}",
    f"tolerations: {_TOLERATIONS}": "tolerations: {{- toYaml .Values.tolerations | nindent 8 }}",
}
_LABELS = {
    "app.kubernetes.io/name": LABELS["app.kubernetes.io/name"],
    "app.kubernetes.io/managed-by": "{{ .Release.Service }}",
    "app.kubernetes.io/instance": "{{ .Release.Name }}",
}
_KEEP = {"helm.sh/resource-policy": "keep"}
_NOTES = """Homeport {{ .Chart.AppVersion }} is installed.

  kubectl get pods -n homeport-system
{{- if ne .Values.layout "combined" }}
  kubectl get deployments -A -l app.kubernetes.io/instance={{ .Release.Name }}
{{- end }}

Helm never updates definitions of kinds. Before an upgrade of this chart:

  kubectl apply --server-side --force-conflicts -f crds/
"""


async def render_chart(plan: Plan) -> dict[str, str]:
    """Path > content, without the definitions of kinds, which belong into `crds/`."""
    files = {"Chart.yaml": _chart(), "values.yaml": _values(), "templates/NOTES.txt": _NOTES}
    bare, pod = replace(plan, dashboard=None), PodOptions(_IMAGE, _REPLICAS, _CCM_IMAGE, (_OPTION,))
    spaces = bare.namespaces()
    files["templates/namespaces.yaml"] = "".join(_namespace(each) for each in spaces)
    files["templates/dashboard.yaml"] = _dashboard([each for each in plan.namespaces() if each not in spaces], pod)
    for layout in LAYOUTS:
        files[f"templates/{layout}.yaml"] = _template(layout, await replace(bare, layout=layout, pod=pod).objects())
    return files


def _chart() -> str:
    return write(
        {
            "apiVersion": "v2",
            "name": NAME,
            "description": "Kubernetes clusters on the hypervisors you own",
            "type": "application",
            "version": __version__,
            "appVersion": __version__,
            "kubeVersion": ">=1.30.0-0",
        }
    )


def _values() -> str:
    pod = PodOptions()
    return f"""# combined: one Deployment, homeport-system/homeport-controller-manager.
# split: one for each component, with the name and namespace that upstream's releases use.
layout: combined
image: {pod.image}
imagePullSecrets: []
# Of the cloud controller manager in workload clusters. Empty: the same image.
ccmImage: ""
replicas: {pod.replicas}
# More options of `homeport up`, for example [--shards, --log-level=debug].
options: []
resources:
  requests: {{cpu: 100m, memory: 256Mi}}
nodeSelector: {{kubernetes.io/os: linux}}
tolerations:
- {{key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}}
# Allow Butler's ManagementAddons, which install charts into this cluster: binds the controllers to cluster-admin.
managementAddons: false
# The web page, homeport-dashboard/homeport-dashboard. It has no rights of its own: users log in with their kubeconfig.
dashboard:
  enabled: true
  # Host names of a load balancer or an ingress in front of its Service, for example [clusters.example.com].
  hosts: []
"""


def _namespace(obj: Json) -> str:
    """The one that `helm install --create-namespace` makes is not ours to make; others stay with what is in them."""
    name = obj["metadata"]["name"]
    kept = {**obj, "metadata": {**obj["metadata"], "annotations": _KEEP}}
    return f'{{{{- if ne .Release.Namespace "{name}" }}}}\n---\n{write(kept)}{{{{- end }}}}\n'


def _template(layout: str, objects: Iterable[Json]) -> str:
    text = "".join(f"---\n{_with_values(each)}" for each in objects)
    return f'{{{{- if eq .Values.layout "{layout}" }}}}\n{text}{_addons(layout)}{{{{- end }}}}\n'


def _dashboard(namespaces: Iterable[Json], pod: PodOptions) -> str:
    text = "".join(_namespace(each) for each in namespaces)
    text += "".join(f"---\n{_with_values(each)}" for each in render(DashboardOptions((_HOST,)), pod))
    return f"{{{{- if .Values.dashboard.enabled }}}}\n{text}{{{{- end }}}}\n"


def _with_values(obj: Json) -> str:
    obj = {**obj, "metadata": {**obj["metadata"], "labels": _LABELS}}
    if obj["kind"] == "Deployment":
        obj = _deployment(obj)
    text = write(obj)
    for found, value in _VALUES.items():
        text = text.replace(found, value)
    return text


def _deployment(obj: Json) -> Json:
    spec: dict[str, Any] = obj["spec"]
    pod = spec["template"]["spec"]
    (container,) = pod["containers"]
    if obj["metadata"]["name"] != dashboard.NAME:  # its needs are others
        container = {**container, "resources": _RESOURCES}
    pod = {**pod, "containers": [container], "nodeSelector": _SELECTOR, "tolerations": _TOLERATIONS}
    return {**obj, "spec": {**spec, "template": {**spec["template"], "spec": {**pod, "imagePullSecrets": _PULL}}}}


def _addons(layout: str) -> str:
    name, namespace = ("homeport-controller-manager", SYSTEM_NAMESPACE)
    if layout == "split":
        name, namespace = ("butler-controller", "butler-system")
    account = {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "homeport-management-addons", "labels": _LABELS},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [account],
    }
    return f"{{{{- if .Values.managementAddons }}}}\n---\n{write(binding)}{{{{- end }}}}\n"
