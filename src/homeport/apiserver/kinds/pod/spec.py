"""Defaults of a PodSpec, alone in a Pod or in the template of something that makes Pods."""

from __future__ import annotations

import re
from collections.abc import Iterator

from homeport.apiserver.resource import Json

CONTAINERS = ("containers", "initContainers", "ephemeralContainers")
_FILE_MODE = 0o644
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}").fullmatch
# Every volume source that can be given; a volume without any is an emptyDir.
_NOT_A_SOURCE = {"name"}


def default_pod_spec(spec: Json) -> None:
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for field, value in (
        ("dnsPolicy", "ClusterFirst"),
        ("restartPolicy", "Always"),
        ("schedulerName", "default-scheduler"),
        ("terminationGracePeriodSeconds", 30),
    ):
        if spec.get(field) in (None, ""):
            spec[field] = value
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    for constraint in spec.get("topologySpreadConstraints") or ():
        constraint.setdefault("whenUnsatisfiable", "DoNotSchedule")
    for container in every_container(spec):
        _default_container(container)


def every_container(spec: Json) -> Iterator[Json]:
    for field in CONTAINERS:
        yield from spec.get(field) or ()


def default_template(template: Json) -> None:
    spec = template["spec"] = template.get("spec") or {}
    default_pod_spec(spec)


def image_is_latest(image: str) -> bool:
    """Whether no tag or digest pins the image, or the tag is `latest`."""
    name, _, digest = image.partition("@")
    last = name.rpartition("/")[2]
    _, colon, tag = last.partition(":")
    if colon:
        return tag == "latest"
    return bool(image) and not digest and bool(_TAG(last))


def _default_container(container: Json) -> None:
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = "Always" if image_is_latest(container.get("image", "")) else "IfNotPresent"
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    for port in container.get("ports") or ():
        if not port.get("protocol"):
            port["protocol"] = "TCP"
    for variable in container.get("env") or ():
        source = variable.get("valueFrom") or {}
        if source.get("fieldRef") is not None:
            source["fieldRef"].setdefault("apiVersion", "v1")
        if source.get("fileKeyRef") is not None:
            source["fileKeyRef"].setdefault("optional", False)
    for field in _PROBES:
        if container.get(field) is not None:
            _default_probe(container[field])
    lifecycle = container.get("lifecycle") or {}
    for name in ("postStart", "preStop"):
        if lifecycle.get(name) is not None:
            _default_get(lifecycle[name].get("httpGet"))
    # A field of a feature that is off by default: accepted and forgotten.
    if lifecycle.pop("stopSignal", None) is not None and not lifecycle:
        del container["lifecycle"]


def _default_probe(probe: Json) -> None:
    for field, value in (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ):
        if not probe.get(field):
            probe[field] = value
    _default_get(probe.get("httpGet"))
    grpc = probe.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def _default_get(get: Json | None) -> None:
    if get is not None:
        get["path"] = get.get("path") or "/"
        get["scheme"] = get.get("scheme") or "HTTP"


def _default_volume(volume: Json) -> None:
    if not volume.keys() - _NOT_A_SOURCE:
        volume["emptyDir"] = {}
    for field in ("secret", "configMap", "downwardAPI", "projected"):
        if volume.get(field) is not None:
            volume[field].setdefault("defaultMode", _FILE_MODE)
    if volume.get("hostPath") is not None:
        volume["hostPath"].setdefault("type", "")
    if volume.get("downwardAPI") is not None:
        _default_items(volume["downwardAPI"])
    for source in (volume.get("projected") or {}).get("sources") or ():
        if source.get("serviceAccountToken") is not None:
            source["serviceAccountToken"].setdefault("expirationSeconds", 3600)
        if source.get("downwardAPI") is not None:
            _default_items(source["downwardAPI"])
    if volume.get("image") is not None and not volume["image"].get("pullPolicy"):
        latest = image_is_latest(volume["image"].get("reference", ""))
        volume["image"]["pullPolicy"] = "Always" if latest else "IfNotPresent"
    claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate")
    if claim is not None:
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    _default_driver(volume)


def _default_items(downward: Json) -> None:
    for item in downward.get("items") or ():
        if item.get("fieldRef") is not None:
            item["fieldRef"].setdefault("apiVersion", "v1")


def _default_driver(volume: Json) -> None:
    for field, defaults in (
        ("iscsi", {"iscsiInterface": "default"}),
        ("rbd", {"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}),
        ("azureDisk", {"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": False, "kind": "Shared"}),
        ("scaleIO", {"storageMode": "ThinProvisioned", "fsType": "xfs"}),
    ):
        if volume.get(field) is not None:
            for name, value in defaults.items():
                volume[field].setdefault(name, value)


def default_requests(spec: Json) -> None:
    """In a Pod (not in a template) a limit is a request as well, unless the request is given."""
    for field in ("containers", "initContainers"):
        for container in spec.get(field) or ():
            resources = container.get("resources") or {}
            if resources.get("limits"):
                resources["requests"] = {**resources["limits"], **(resources.get("requests") or {})}
