"""k0s as a distribution of built-in templates: values, templates, patches. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from homeport.capi.k0s import version as k0sversion
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.cluster.distribution import Blank, Distribution
from homeport.platforms.k0rdent.cluster.label import kubelet_labels
from homeport.platforms.k0rdent.cluster.merge import merged
from homeport.platforms.k0rdent.cluster.part import FREE, LIST, OPEN, TEXT, flag, group, number, properties, text
from homeport.platforms.k0rdent.cluster.patch import WORKERS, from_variable, patch, rendered, selector
from homeport.platforms.k0rdent.cluster.role import worker_fields

Json = dict[str, Any]

VARIABLE = "k0sConfig"
KONNECTIVITY_PORT = 8132
_VERSION = "v1.33.4+k0s.0"
_BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
_PLANE = "controlplane.cluster.x-k8s.io/v1beta2"
_CLOUD_ARGS = ("--enable-cloud-provider", "--kubelet-extra-args=--cloud-provider=external")
_CONTROLLER_ARGS = ("--enable-worker", *_CLOUD_ARGS, "--no-taints")
# Whoever deletes the cluster deletes its data: another cluster of the same name must not start with them.
_STORAGE: Json = {"type": "etcd", "etcd": {"autoDeletePVCs": True}}


# -- values --------------------------------------------------------------------------------------------------------


def _section(hosted: bool) -> Json:
    args = {**LIST, "description": "Arguments of k0s on all machines."}
    plane = group("Control plane.", replicas=number("The same as controlPlaneNumber."), args=args)
    more: dict[str, Json] = {} if hosted else {"calico": _calico()}
    return group(
        "k0s.",
        version=text("Version of k0s. A change upgrades the control plane, then the workers.", _VERSION),
        args=args,
        worker=group("Workers.", **worker_fields()),
        controlPlane=plane,
        config={**FREE, "description": "Configuration of k0s (ClusterConfig). It is merged into the generated one."},
        **more,
    )


def _calico() -> Json:
    pool = group(cidr=TEXT, encapsulation=TEXT, natOutgoing=TEXT, nodeSelector=TEXT)
    return group(
        "Calico, if network.provider is calico.",
        mode=text("How Pods of different Nodes reach each other.", enum=["", "ipip", "vxlan", "bgp"]),
        mtu={"type": ["integer", "null"], "minimum": 0, "description": "MTU. Default: chosen by Calico."},
        ipPools={"type": "array", "items": pool, "description": "Only cidr of the first one counts: the Pod network."},
        typha=group(enabled=flag("Accepted for older values. k0s decides about Typha.", False)),
    )


def _value(config: ClusterConfig) -> Json:
    args = [*config.args, *config.control_plane_args]
    if not config.hosted:
        args = [*_CONTROLLER_ARGS, *args]
    plane: Json = {"args": args, "config": k0s_config(config)}
    plane |= {"files": list(config.files)} if config.files else {}
    plane |= {"mounts": list(config.mounts)} if config.mounts else {}
    return {
        "controlPlane": plane,
        "worker": {"args": [*_CLOUD_ARGS, *_label_args(config.labels), *config.args]},
    }


def _label_args(labels: Mapping[str, str]) -> list[str]:
    own = kubelet_labels(labels)
    return [f"--labels={own}"] if own else []


def k0s_config(config: ClusterConfig) -> Json:
    """The ClusterConfig of k0s: what the user writes wins."""
    spec: Json = {"telemetry": {"enabled": False}}
    if not config.hosted:
        spec["network"] = {
            "provider": config.network_provider,
            "podCIDR": config.pods[0],
            "serviceCIDR": config.services[0],
        }
        if config.network_provider == "calico":
            mode = config.calico.get("mode") or "vxlan"
            # k0s names routes without encapsulation after the daemon that announces them.
            calico = {"mode": "bird" if mode == "bgp" else mode, "mtu": config.calico.get("mtu")}
            spec["network"]["calico"] = {name: value for name, value in calico.items() if value}
    made: Json = {
        "apiVersion": "k0s.k0sproject.io/v1beta1",
        "kind": "ClusterConfig",
        "metadata": {"name": "k0s"},
        "spec": spec,
    }
    made = merged(made, config.plane_config)
    return merged(made, {"spec": {"api": {"extraArgs": config.api_arguments}}}) if config.api_arguments else made


# -- class ---------------------------------------------------------------------------------------------------------


def _plane(hosted: bool) -> Blank:
    if hosted:
        return Blank(_PLANE, "K0smotronControlPlaneTemplate", {"storage": _STORAGE})
    return Blank(_PLANE, "K0sControlPlaneTemplate", {"k0sConfigSpec": {"args": []}})


def _worker_patch() -> Json:
    return patch(
        "worker-bootstrap",
        selector(_BOOTSTRAP, "K0sWorkerConfigTemplate", **WORKERS),
        from_variable("/version", "builtin.machineDeployment.version"),
        from_variable("/args", f"{VARIABLE}.worker.args"),
    )


def _plane_patches(hosted: bool, endpoint: str) -> list[Json]:
    return _hosted_patches(endpoint) if hosted else _standalone_patches()


def _standalone_patches() -> list[Json]:
    plane = selector(_PLANE, "K0sControlPlaneTemplate", controlPlane=True)
    return [
        patch(
            "control-plane",
            plane,
            from_variable("/k0sConfigSpec/args", f"{VARIABLE}.controlPlane.args"),
            from_variable("/k0sConfigSpec/k0s", f"{VARIABLE}.controlPlane.config"),
        ),
        patch(
            "control-plane-files",
            plane,
            from_variable("/k0sConfigSpec/files", f"{VARIABLE}.controlPlane.files"),
            enabledIf="{{ if .k0sConfig.controlPlane.files }}true{{ end }}",
        ),
    ]


def _hosted_patches(endpoint: str) -> list[Json]:
    plane = selector(_PLANE, "K0smotronControlPlaneTemplate", controlPlane=True)
    service = f"{{type: LoadBalancer, apiPort: {{{{ .{endpoint}.port }}}}, konnectivityPort: {KONNECTIVITY_PORT}}}"
    return [
        patch(
            "control-plane",
            plane,
            rendered("/service", service),
            from_variable("/k0sConfig", f"{VARIABLE}.controlPlane.config"),
            from_variable("/controlPlaneFlags", f"{VARIABLE}.controlPlane.args"),
        ),
        patch(
            "control-plane-address",
            plane,
            from_variable("/externalAddress", f"{endpoint}.host"),
            rendered("/patches", _ADDRESS_PATCH.replace("ENDPOINT", endpoint)),
            enabledIf=f"{{{{ if .{endpoint}.host }}}}true{{{{ end }}}}",
        ),
        patch(
            "control-plane-mounts",
            plane,
            from_variable("/mounts", f"{VARIABLE}.controlPlane.mounts"),
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


K0S = Distribution(
    name="k0s",
    version=_VERSION,
    infix="",
    settings_folder="/etc/k0s-settings",  # not k0s' own folder, of which it decides the permissions
    network_addons=False,
    network_port=False,
    normal=lambda given: str(k0sversion.parse(given)),
    providers=lambda hosted: {
        "control-plane-k0sproject-k0smotron": "k0smotron" if hosted else "k0s-control-plane",
        "bootstrap-k0sproject-k0smotron": "k0s-bootstrap",
    },
    networks=lambda hosted: () if hosted else ("calico", "kube-router", "custom"),
    section=_section,
    variable=VARIABLE,
    variable_schema=properties(
        controlPlane=properties(
            args=LIST,
            config=OPEN,
            files={"type": "array", "items": OPEN},
            mounts={"type": "array", "items": OPEN},
        ),
        worker=properties(args=LIST),
    ),
    plane=_plane,
    worker=Blank(_BOOTSTRAP, "K0sWorkerConfigTemplate", {}),
    plane_patches=_plane_patches,
    worker_patch=_worker_patch,
    value=_value,
)
