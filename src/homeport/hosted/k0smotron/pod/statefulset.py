"""The Pods of a control plane. Pure."""

from __future__ import annotations

import copy
from typing import Any

from homeport.hosted.k0smotron.name import base_labels, volume_name
from homeport.hosted.k0smotron.pod.config import CONFIG_KEY
from homeport.hosted.k0smotron.pod.entrypoint import CONFIG_PATH, SCRIPT_KEY, SCRIPT_PATH
from homeport.hosted.k0smotron.pod.etcd import projected, spread
from homeport.hosted.k0smotron.pod.monitoring import add_monitoring
from homeport.hosted.k0smotron.pod.nats import add_nats
from homeport.hosted.k0smotron.pod.subject import DATA_DIR, Subject, config_map

Json = dict[str, Any]

CONFIG_ANNOTATION = "k0smotron.io/config-hash"
CONTAINER = "controller"
_CERTIFICATES = "/certs-init"
_FILES = {"ca": "ca", "sa": "sa", "proxy": "front-proxy-ca", "etcd": "etcd-ca"}
_LOWEST_UNPRIVILEGED_PORT = 1024


def render_statefulset(subject: Subject, config_digest: str) -> Json:
    """`config_digest`: Pods are replaced when it changes."""
    names, spec = subject.names, subject.spec
    metadata = subject.metadata(names.statefulset, "control-plane", subject.pod_selector)
    annotations = {**metadata.get("annotations", {}), CONFIG_ANNOTATION: config_digest}
    statefulset: Json = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": metadata,
        "spec": {
            "replicas": spec.replicas,
            "selector": {"matchLabels": subject.pod_selector},
            "template": {
                "metadata": {"labels": dict(metadata["labels"]), "annotations": annotations},
                "spec": {
                    "automountServiceAccountToken": False,
                    "affinity": spread(base_labels(subject.name)),
                    "initContainers": [],
                    "containers": [_container(subject)],
                    "volumes": _files(subject),
                },
            },
        },
    }
    data_volume = _add_data(subject, statefulset)
    _add_certificates(subject, statefulset, data_volume)
    _add_manifests(subject, statefulset)
    _add_mounts(subject, statefulset)
    if subject.storage == "nats":
        add_nats(subject, statefulset)
    if spec.monitoring.enabled:
        add_monitoring(subject, statefulset, data_volume)
    _add_placement(subject, statefulset)
    return statefulset


def _container(subject: Subject) -> Json:
    names, service = subject.names, subject.spec.service
    status = {"exec": {"command": ["k0s", "status"]}, "timeoutSeconds": 5}
    container: Json = {
        "name": CONTAINER,
        "image": subject.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", SCRIPT_PATH],
        "ports": [
            {"name": "api", "containerPort": service.api_port, "protocol": "TCP"},
            {"name": "konnectivity", "containerPort": service.konnectivity_port, "protocol": "TCP"},
        ],
        "readinessProbe": {**status, "initialDelaySeconds": 5, "periodSeconds": 5, "failureThreshold": 15},
        "livenessProbe": {**status, "initialDelaySeconds": 90, "periodSeconds": 10, "failureThreshold": 10},
        "volumeMounts": [
            {"name": names.entrypoint, "mountPath": SCRIPT_PATH, "subPath": SCRIPT_KEY, "readOnly": True},
            {"name": names.config, "mountPath": CONFIG_PATH, "subPath": CONFIG_KEY, "readOnly": True},
        ],
    }
    kine = subject.spec.storage.kine
    if subject.storage == "kine" and kine.data_source_secret_name:
        container["envFrom"] = [{"secretRef": {"name": kine.data_source_secret_name}}]
    return {**container, "resources": subject.spec.resources} if subject.spec.resources else container


def _files(subject: Subject) -> list[Json]:
    return [{"name": name, "configMap": {"name": name}} for name in (subject.names.entrypoint, subject.names.config)]


def _pod(statefulset: Json) -> Json:
    pod: Json = statefulset["spec"]["template"]["spec"]
    return pod


def _mount(statefulset: Json, mount: Json, volume: Json | None = None) -> None:
    pod = _pod(statefulset)
    pod["containers"][0]["volumeMounts"].append(mount)
    if volume is not None:
        pod["volumes"].append(volume)


def _add_data(subject: Subject, statefulset: Json) -> str:
    """The folder of k0s; returns the name of its volume."""
    persistence, name = subject.spec.persistence, subject.names.volume
    claim = persistence.persistent_volume_claim
    mount: Json = {"name": name, "mountPath": DATA_DIR}
    if persistence.type == "pvc" and claim is not None:
        name = mount["name"] = claim.metadata.name or name
        metadata: Json = {"name": name}
        metadata |= {"labels": claim.metadata.labels} if claim.metadata.labels else {}
        metadata |= {"annotations": claim.metadata.annotations} if claim.metadata.annotations else {}
        statefulset["spec"]["volumeClaimTemplates"] = [{"metadata": metadata, "spec": copy.deepcopy(claim.spec)}]
        _mount(statefulset, mount)
    elif persistence.type == "hostPath":
        _mount(statefulset, mount, {"name": name, "hostPath": {"path": persistence.host_path}})
    else:
        _mount(statefulset, mount, {"name": name, "emptyDir": {}})
    return name


def _add_certificates(subject: Subject, statefulset: Json, data_volume: str) -> None:
    """k0s writes beside its certificates, and wants them with permissions of its own: they are copied first."""
    wanted = ["ca", "sa", "proxy", *(["etcd"] if subject.storage == "etcd" else [])]
    sources = [
        projected(subject.certificate(each), _FILES[each], public="pub" if each == "sa" else "crt") for each in wanted
    ]
    if subject.storage == "etcd":
        sources.append(projected(subject.certificate("apiserver-etcd-client"), "apiserver-etcd-client"))
    pod = _pod(statefulset)
    pod["volumes"].append({"name": "certs", "projected": {"sources": sources}})
    pki = f"{DATA_DIR}/pki"
    copy_files = f"set -eu; mkdir -p {pki}; rm -f {pki}/server.*; cp -L {_CERTIFICATES}/*.* {pki}/"
    pod["initContainers"].append(
        {
            "name": "certs-init",
            "image": subject.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c", copy_files],
            "volumeMounts": [
                {"name": "certs", "mountPath": _CERTIFICATES, "readOnly": True},
                {"name": data_volume, "mountPath": DATA_DIR},
            ],
        }
    )


def _add_manifests(subject: Subject, statefulset: Json) -> None:
    """k0s applies what it finds in these folders."""
    for volume in manifest_volumes(subject):
        path = f"{DATA_DIR}/manifests/{volume['name']}"
        _mount(statefulset, {"name": volume["name"], "mountPath": path, "readOnly": True}, copy.deepcopy(volume))
    telemetry = subject.names.telemetry
    path = f"{DATA_DIR}/manifests/k0s-telemetry"
    volume = {"name": telemetry, "configMap": {"name": telemetry}}
    _mount(statefulset, {"name": telemetry, "mountPath": path, "readOnly": True}, volume)


def manifest_volumes(subject: Subject) -> list[Json]:
    """The user's, and those that every control plane of this kind gets."""
    own = [dict(each) for each in subject.spec.manifests]
    extra = [subject.names.endpoint]
    if subject.spec.ingress is not None:
        extra.append(subject.names.ingress_manifests)
    taken = {each.get("name") for each in own}
    made: list[Json] = [{"name": name, "configMap": {"name": name}} for name in extra if name not in taken]
    if subject.spec.ingress is not None:
        name = f"{subject.names.ingress_manifests}-certs"
        made.append({"name": "ingress-certificates", "secret": {"secretName": name}})
    return [*own, *made]


def _add_mounts(subject: Subject, statefulset: Json) -> None:
    for each in subject.spec.mounts:
        path = str(each["path"])
        source = {key: value for key, value in each.items() if key not in ("path", "readOnly")}
        read_only = bool(each.get("readOnly")) or "configMap" in source or "secret" in source
        mount: Json = {"name": volume_name(path), "mountPath": path}
        volume = {"name": volume_name(path), **copy.deepcopy(source)}
        _mount(statefulset, {**mount, "readOnly": True} if read_only else mount, volume)


def _add_placement(subject: Subject, statefulset: Json) -> None:
    pod, spec = _pod(statefulset), subject.spec
    if spec.service_account:
        pod["serviceAccountName"] = spec.service_account
    if spec.topology_spread_constraints:
        pod["topologySpreadConstraints"] = copy.deepcopy(spec.topology_spread_constraints)
    if min(spec.service.api_port, spec.service.konnectivity_port) < _LOWEST_UNPRIVILEGED_PORT:
        # k0s runs its components as users without privileges.
        pod["securityContext"] = {"sysctls": [{"name": "net.ipv4.ip_unprivileged_port_start", "value": "0"}]}


def render_telemetry(subject: Subject) -> Json:
    text = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: k0s-telemetry\n  namespace: kube-system\n"
        "data:\n  provider: k0smotron\n"
    )
    return config_map(subject, subject.names.telemetry, "telemetry", {"configmap.yaml": text})
