"""The volumes of a control plane's Pods, and where containers mount them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from homeport.api.meta import wire
from homeport.api.steward.part import VolumeMount
from homeport.hosted import name as names
from homeport.hosted.tenant.podinputs import EGRESS, KINE, PKI, SOCKETS, PodInputs

Json = dict[str, Any]

_FILE_MODE = 0o440


def mount(volume: str, path: str, part: str = "") -> Json:
    mount: Json = {"name": volume, "mountPath": path, "readOnly": True}
    return {**mount, "subPath": part} if part else mount


def extra_mounts(mounts: Iterable[VolumeMount]) -> list[Json]:
    return [wire(each) for each in mounts]


def api_server_mounts(inputs: PodInputs) -> list[Json]:
    found = [mount("pki", PKI)]
    if inputs.konnectivity:
        found += [mount("egress-selector", EGRESS), {"name": "konnectivity-socket", "mountPath": SOCKETS}]
    if not inputs.storage.etcd:
        found.append({"name": "kine-socket", "mountPath": KINE})
    return found


def volumes(inputs: PodInputs) -> list[Json]:
    found: list[Json] = [
        {"name": "pki", "projected": {"defaultMode": 0o400 | 0o040, "sources": _pki_sources(inputs)}},
        _secret_volume(
            "controller-manager-conf", inputs.secret(names.CONTROLLER_MANAGER), ("controller-manager.conf",)
        ),
        _secret_volume("scheduler-conf", inputs.secret(names.SCHEDULER), ("scheduler.conf",)),
    ]
    if inputs.konnectivity:
        conf = inputs.secret(names.KONNECTIVITY_KUBECONFIG)
        found += [
            _secret_volume("konnectivity-conf", conf, ("konnectivity-server.conf",)),
            {"name": "egress-selector", "configMap": {"name": inputs.secret(names.EGRESS_SELECTOR)}},
            {"name": "konnectivity-socket", "emptyDir": {"medium": "Memory"}},
        ]
    if not inputs.storage.etcd:
        found.append({"name": "kine-socket", "emptyDir": {"medium": "Memory"}})
        if inputs.storage.tls:
            files = ("ca.crt", "server.crt", "server.key")
            found.append(_secret_volume("kine-tls", inputs.secret(names.DATASTORE_CERTIFICATE), files))
    return found


def _secret_volume(volume: str, secret: str, files: Iterable[str]) -> Json:
    items = [{"key": each, "path": each} for each in files]
    return {"name": volume, "secret": {"secretName": secret, "items": items, "defaultMode": _FILE_MODE}}


# Secret > its keys, which are also the names of the files.
PKI_FILES: Mapping[str, tuple[str, ...]] = {
    names.CA: ("ca.crt", "ca.key"),
    names.API_SERVER: ("apiserver.crt", "apiserver.key"),
    names.KUBELET_CLIENT: ("apiserver-kubelet-client.crt", "apiserver-kubelet-client.key"),
    names.FRONT_PROXY_CA: ("front-proxy-ca.crt", "front-proxy-ca.key"),
    names.FRONT_PROXY_CLIENT: ("front-proxy-client.crt", "front-proxy-client.key"),
    names.SERVICE_ACCOUNT: ("sa.pub", "sa.key"),
}
DATASTORE_FILES = ("ca.crt", "server.crt", "server.key")


def _pki_sources(inputs: PodInputs) -> list[Json]:
    sources = [_source(inputs.secret(suffix), {each: each for each in files}) for suffix, files in PKI_FILES.items()]
    if inputs.storage.etcd:
        files = {each: f"etcd/{each}" for each in DATASTORE_FILES}
        sources.append(_source(inputs.secret(names.DATASTORE_CERTIFICATE), files))
    return sources


def _source(secret: str, files: Mapping[str, str]) -> Json:
    return {"secret": {"name": secret, "items": [{"key": key, "path": path} for key, path in files.items()]}}
