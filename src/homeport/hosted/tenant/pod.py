"""The Pods of a control plane: programs, flags, mounts and probes. Pure: the same inputs give the same Pod template.

The flags are those that kubeadm writes, with the datastore's in place of a local etcd. Files:

    /etc/kubernetes/pki/                         certificates and keys, from the Secrets of the control plane
    /etc/kubernetes/pki/etcd/                    CA and client certificate of the datastore
    /etc/kubernetes/controller-manager.conf      kubeconfigs of the programs
    /etc/kubernetes/scheduler.conf
    /etc/kubernetes/konnectivity-server.conf
    /etc/kubernetes/konnectivity/                egress selector configuration
    /run/konnectivity/, /kine/                   sockets between containers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from homeport.api.meta import wire
from homeport.api.steward.part import Resources
from homeport.hosted import name as names
from homeport.hosted.tenant.flag import (
    api_server_args,
    controller_manager_args,
    konnectivity_version,
    scheduler_args,
    with_extra,
)
from homeport.hosted.tenant.podinputs import CONF, KINE, KINE_TLS, PKI, SOCKETS, PodInputs
from homeport.hosted.tenant.storage import KINE_SOCKET
from homeport.hosted.tenant.volume import api_server_mounts, extra_mounts, mount, volumes

Json = dict[str, Any]


def render_pod_template(inputs: PodInputs) -> Json:
    deployment = inputs.spec.control_plane.deployment
    extra = deployment.pod_additional_metadata
    checksums = {f"component.{inputs.group}/{suffix}": each for suffix, each in sorted(inputs.checksums.items())}
    spec: Json = {
        "automountServiceAccountToken": False,
        "serviceAccountName": deployment.service_account_name or "default",
        "containers": [*_containers(inputs), *deployment.additional_containers],
        "volumes": [*volumes(inputs), *deployment.additional_volumes],
        **_given(
            {
                "initContainers": deployment.additional_init_containers,
                "nodeSelector": deployment.node_selector,
                "runtimeClassName": deployment.runtime_class_name,
                "tolerations": deployment.tolerations,
                "affinity": deployment.affinity,
                "topologySpreadConstraints": deployment.topology_spread_constraints,
            }
        ),
    }
    labels = {
        **extra.labels,
        **names.labels(inputs.group, inputs.name, inputs.project),
        **names.selector(inputs.group, inputs.name),
    }
    return {"metadata": {"labels": labels, **_given({"annotations": {**extra.annotations, **checksums}})}, "spec": spec}


def _given(fields: Mapping[str, Any]) -> Json:
    return {name: value for name, value in fields.items() if value}


# -- containers --------------------------------------------------------------------------------------------------------


def _containers(inputs: PodInputs) -> list[Json]:
    deployment = inputs.spec.control_plane.deployment
    images, resources, mounts = deployment.registry_settings, deployment.resources, deployment.additional_volume_mounts

    def image(name: str) -> str:
        return f"{images.registry.rstrip('/')}/{name}:{inputs.version}{images.tag_suffix}"

    found = [
        _container(
            names.KUBE_APISERVER,
            image(images.api_server_image),
            api_server_args(inputs),
            [*api_server_mounts(inputs), *extra_mounts(mounts.api_server)],
            resources.api_server,
            ports=[{"name": names.API_PORT_NAME, "containerPort": inputs.port, "protocol": "TCP"}],
            probes=_api_server_probes(inputs.port),
        ),
        _container(
            names.KUBE_CONTROLLER_MANAGER,
            image(images.controller_manager_image),
            controller_manager_args(inputs),
            [mount("pki", PKI), _configuration("controller-manager"), *extra_mounts(mounts.controller_manager)],
            resources.controller_manager,
            probes=_probes(names.CONTROLLER_MANAGER_PORT),
        ),
        _container(
            names.KUBE_SCHEDULER,
            image(images.scheduler_image),
            scheduler_args(inputs),
            [_configuration("scheduler"), *extra_mounts(mounts.scheduler)],
            resources.scheduler,
            probes=_probes(names.SCHEDULER_PORT),
        ),
    ]
    if inputs.konnectivity:
        found.append(_konnectivity(inputs))
    if not inputs.storage.etcd:
        found.append(_kine(inputs))
    return found


def _configuration(program: str) -> Json:
    return mount(f"{program}-conf", f"{CONF}/{program}.conf", f"{program}.conf")


def _container(
    name: str,
    image: str,
    command: Sequence[str],
    mounts: Sequence[Json],
    resources: Resources | None,
    *,
    ports: Sequence[Json] = (),
    probes: Mapping[str, Json] | None = None,
    env: Sequence[Json] = (),
) -> Json:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": list(command),
        "volumeMounts": list(mounts),
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        **_given({"ports": list(ports), "resources": wire(resources) if resources else None, "env": list(env)}),
        **(probes or {}),
    }


def _konnectivity(inputs: PodInputs) -> Json:
    konnectivity = inputs.spec.addons.konnectivity
    assert konnectivity is not None
    server = konnectivity.server
    args: dict[str, str | None] = {
        "--admin-port": str(names.KONNECTIVITY_ADMIN_PORT),
        "--agent-namespace": "kube-system",
        "--agent-port": str(server.port),
        "--agent-service-account": "konnectivity-agent",
        "--authentication-audience": "system:konnectivity-server",
        "--cluster-cert": f"{PKI}/apiserver.crt",
        "--cluster-key": f"{PKI}/apiserver.key",
        "--health-port": str(names.KONNECTIVITY_HEALTH_PORT),
        "--kubeconfig": f"{CONF}/konnectivity-server.conf",
        "--logtostderr": "true",
        "--mode": "grpc",
        "--server-count": str(max(1, inputs.spec.control_plane.deployment.replicas)),
        "--server-port": "0",
        "--uds-name": f"{SOCKETS}/konnectivity-server.socket",
    }
    health = {"httpGet": {"path": "/healthz", "port": names.KONNECTIVITY_HEALTH_PORT, "scheme": "HTTP"}}
    return _container(
        names.KONNECTIVITY_SERVER,
        f"{server.image}:{konnectivity_version(inputs, server.version)}",
        with_extra("/proxy-server", args, server.extra_args),
        [
            mount("pki", PKI),
            mount("konnectivity-conf", f"{CONF}/konnectivity-server.conf", "konnectivity-server.conf"),
            {"name": "konnectivity-socket", "mountPath": SOCKETS},
        ],
        server.resources,
        ports=[
            {"name": names.KONNECTIVITY_PORT_NAME, "containerPort": server.port, "protocol": "TCP"},
        ],
        probes={"livenessProbe": {**health, "initialDelaySeconds": 30, "periodSeconds": 10, "timeoutSeconds": 60}},
    )


def _kine(inputs: PodInputs) -> Json:
    """SQL and NATS. The credentials come from a Secret as variables: no flag in the Pod's definition shows them."""
    storage = inputs.storage
    tail = "$(DB_CONNECTION_STRING)/$(DB_SCHEMA)"
    if storage.driver == "MySQL":
        tail = "tcp($(DB_CONNECTION_STRING))/$(DB_SCHEMA)"
    elif storage.driver == "NATS":
        tail = "$(DB_CONNECTION_STRING)?bucket=$(DB_SCHEMA)&noEmbed"
    args: dict[str, str | None] = {
        "--endpoint": f"{storage.kine_scheme}://$(DB_USER):$(DB_PASSWORD)@{tail}",
        "--listen-address": KINE_SOCKET,
        "--ca-file": f"{KINE_TLS}/ca.crt" if storage.tls else None,
        "--cert-file": f"{KINE_TLS}/server.crt" if storage.tls else None,
        "--key-file": f"{KINE_TLS}/server.key" if storage.tls else None,
    }
    secret = inputs.secret(names.DATASTORE_CONFIG)
    env = [
        {"name": each, "valueFrom": {"secretKeyRef": {"name": secret, "key": each}}}
        for each in ("DB_CONNECTION_STRING", "DB_SCHEMA", "DB_USER", "DB_PASSWORD")
    ]
    deployment = inputs.spec.control_plane.deployment
    mounts = [{"name": "kine-socket", "mountPath": KINE}]
    if storage.tls:
        mounts.append(mount("kine-tls", KINE_TLS))
    return _container(
        names.KINE,
        inputs.kine_image,
        with_extra("kine", args, deployment.extra_args.kine),
        mounts,
        deployment.resources.kine,
        env=env,
    )


# -- probes ------------------------------------------------------------------------------------------------------------


def _api_server_probes(port: int) -> dict[str, Json]:
    def get(path: str) -> Json:
        return {"httpGet": {"path": path, "port": port, "scheme": "HTTPS"}, "timeoutSeconds": 15}

    return {
        "startupProbe": {**get("/livez"), "periodSeconds": 1, "failureThreshold": 240},
        "livenessProbe": {**get("/livez"), "periodSeconds": 10, "failureThreshold": 8},
        "readinessProbe": {**get("/readyz"), "periodSeconds": 1, "failureThreshold": 3},
    }


def _probes(port: int) -> dict[str, Json]:
    get = {"httpGet": {"path": "/healthz", "port": port, "scheme": "HTTPS"}, "timeoutSeconds": 15, "periodSeconds": 10}
    return {
        "startupProbe": {**get, "periodSeconds": 1, "failureThreshold": 240},
        "livenessProbe": {**get, "failureThreshold": 8},
    }
