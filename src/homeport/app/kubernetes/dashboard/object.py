"""The objects of the dashboard: one Pod that may do nothing, a Service, and who may reach it."""

from __future__ import annotations

from dataclasses import dataclass

from homeport.app.kubernetes import workload
from homeport.app.kubernetes.dashboard.place import (
    AUTHORITY,
    HOSTS,
    KEY,
    NAME,
    NAMESPACE,
    PLACE,
    PORT,
    PORT_NAME,
    USER_ROLE,
)
from homeport.app.kubernetes.layout import COMBINED
from homeport.app.kubernetes.role import GROUP, account_of, render_binding, render_role
from homeport.app.kubernetes.workload import HEALTH_PORT, Json, PodOptions, render_object
from homeport.capi.rule import Rule

_TLS = "/etc/homeport/tls"
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"  # only the CA of the API server is there, and no token
_EVERYBODY = {"kind": "Group", "apiGroup": GROUP, "name": "system:authenticated"}
_STICKY_SECONDS = 12 * 3600  # as long as a session lasts
# For the controllers, which issue its certificates: see `certificate`.
_NAMED = (KEY.name, AUTHORITY.name)
CERTIFICATE_RULES = (
    Rule("", ("configmaps", "secrets"), ("create",)),
    Rule("", ("configmaps", "secrets"), ("get", "update"), _NAMED),
)


@dataclass(frozen=True, slots=True)
class DashboardOptions:
    """What a user chooses about the dashboard."""

    hosts: tuple[str, ...] = ()  # `NAME` or `NAME:PORT` of a load balancer or an ingress in front of the Service


def render(options: DashboardOptions, pod: PodOptions) -> list[Json]:
    return [*_access(), *_workload(options, pod)]


def _access() -> list[Json]:
    """The ServiceAccount has no role at all. Everybody may find the dashboard and its CA; who may reach its Pod by
    port-forward, an administrator says by binding the last role."""
    issuer, finder = f"{NAME}-certificates", f"{NAME}-finder"
    reach = [Rule("", ("pods",), ("list",)), Rule("", ("pods/portforward",), ("get", "create"))]
    return [
        render_object("v1", "ServiceAccount", PLACE, automountServiceAccountToken=False),
        render_role(issuer, list(CERTIFICATE_RULES), NAMESPACE),
        render_binding(issuer, issuer, account_of(COMBINED), NAMESPACE),
        render_role(finder, [Rule("", ("configmaps",), ("get",), _NAMED)], NAMESPACE),
        render_binding(finder, finder, _EVERYBODY, NAMESPACE),
        render_role(USER_ROLE, reach, NAMESPACE),
    ]


def _workload(options: DashboardOptions, pod: PodOptions) -> list[Json]:
    selector = workload.selector(PLACE)
    port = {"name": PORT_NAME, "port": 443, "targetPort": PORT_NAME, "protocol": "TCP"}
    sticky = {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": _STICKY_SECONDS}}}
    allowed = [{"port": name, "protocol": "TCP"} for name in (PORT_NAME, "health")]
    network = {
        "podSelector": {"matchLabels": selector},
        "policyTypes": ["Ingress"],
        "ingress": [{"ports": allowed}],
    }
    return [
        render_object("v1", "ConfigMap", PLACE, data={HOSTS: " ".join(options.hosts)}),
        workload.render_deployment(PLACE, 1, _pod(options, pod)),  # sessions are in its memory
        render_object("v1", "Service", PLACE, spec={"selector": selector, "ports": [port], **sticky}),
        workload.render_budget(PLACE),
        render_object("networking.k8s.io/v1", "NetworkPolicy", PLACE, spec=network),
    ]


def arguments(options: DashboardOptions) -> list[str]:
    found = ["dashboard", "--serve", "--kubernetes", f"--listen=*:{PORT}", f"--tls={_TLS}", f"--health=*:{HEALTH_PORT}"]
    return [*found, *(f"--host={each}" for each in options.hosts)]


def _pod(options: DashboardOptions, pod: PodOptions) -> Json:
    container = {
        "name": "dashboard",
        "image": pod.image,
        "args": arguments(options),
        "env": [dict(workload.HOME)],
        "ports": workload.render_ports({PORT_NAME: PORT, "health": HEALTH_PORT}),
        **workload.probes(),
        "resources": {"requests": {"cpu": "20m", "memory": "96Mi"}},
        "securityContext": dict(workload.CONFINED),
        "volumeMounts": [
            dict(workload.TMP_MOUNT),
            {"name": "tls", "mountPath": _TLS, "readOnly": True},
            {"name": "cluster", "mountPath": _ACCOUNT, "readOnly": True},
        ],
    }
    volumes = [
        {"name": "tls", "secret": {"secretName": KEY.name, "defaultMode": 0o440}},
        {"name": "cluster", "configMap": {"name": "kube-root-ca.crt"}},
    ]
    return workload.render_pod(PLACE, container, volumes, token=False)
