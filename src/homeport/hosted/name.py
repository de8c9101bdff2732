"""Names of what is made for a TenantControlPlane, as users of Steward and Kamaji know them."""

from __future__ import annotations

# -- Secrets and ConfigMaps in the namespace of the control plane ------------------------------------------------------

CA = "ca"
API_SERVER = "api-server-certificate"
KUBELET_CLIENT = "api-server-kubelet-client-certificate"
FRONT_PROXY_CA = "front-proxy-ca-certificate"
FRONT_PROXY_CLIENT = "front-proxy-client-certificate"
SERVICE_ACCOUNT = "sa-certificate"
ADMIN = "admin-kubeconfig"
CONTROLLER_MANAGER = "controller-manager-kubeconfig"
SCHEDULER = "scheduler-kubeconfig"
DATASTORE_CONFIG = "datastore-config"
DATASTORE_CERTIFICATE = "datastore-certificate"
KONNECTIVITY_CERTIFICATE = "konnectivity-certificate"
KONNECTIVITY_KUBECONFIG = "konnectivity-kubeconfig"
EGRESS_SELECTOR = "konnectivity-egress-selector-configuration"
KUBEADM_CONFIG = "kubeadmconfig"


def part(name: str, suffix: str) -> str:
    """`demo` and `ca`: `demo-ca`."""
    return f"{name}-{suffix}"


# -- containers --------------------------------------------------------------------------------------------------------

KUBE_APISERVER = "kube-apiserver"
KUBE_CONTROLLER_MANAGER = "kube-controller-manager"
KUBE_SCHEDULER = "kube-scheduler"
KONNECTIVITY_SERVER = "konnectivity-server"
KINE = "kine"

API_PORT_NAME = "kube-apiserver"
KONNECTIVITY_PORT_NAME = "konnectivity"  # names of container ports have 15 characters at most
CONTROLLER_MANAGER_PORT = 10257
SCHEDULER_PORT = 10259
KONNECTIVITY_ADMIN_PORT = 8133
KONNECTIVITY_HEALTH_PORT = 8134


def labels(group: str, name: str, project: str) -> dict[str, str]:
    """Of everything that is made for a control plane; they also select its Pods."""
    return {f"{group}/name": name, f"{group}/project": project, f"{group}/soot": name}


def selector(group: str, name: str) -> dict[str, str]:
    return {f"{group}/name": name, f"{group}/component": "control-plane"}
