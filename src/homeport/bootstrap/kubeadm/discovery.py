"""How a joining machine finds the cluster and knows that it is the right one. Pure: on the wire form of the config."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from homeport.bootstrap.document import dump_yaml
from homeport.bootstrap.kubeadm.userdata import File, Json

_EXEC_API = "client.authentication.k8s.io/v1"


def by_file(join: Mapping[str, Any]) -> bool:
    """The user chose discovery by a kubeconfig on the machine."""
    return bool((join.get("discovery") or {}).get("file"))


def given_token(join: Mapping[str, Any]) -> str:
    """The bootstrap token that the user gave, '' if we have to make one."""
    return str(((join.get("discovery") or {}).get("bootstrapToken") or {}).get("token") or "")


def with_token(join: Mapping[str, Any], *, token: str, endpoint: str, hashes: list[str]) -> Json:
    """The join configuration with a discovery by token; what the user set stays."""
    given = dict((join.get("discovery") or {}).get("bootstrapToken") or {})
    filled: Json = {"token": token, "apiServerEndpoint": endpoint, "caCertHashes": hashes}
    filled |= {name: value for name, value in given.items() if value not in (None, "", [])}
    return {**join, "discovery": {**(join.get("discovery") or {}), "bootstrapToken": filled}}


def discovery_file(join: Mapping[str, Any], *, endpoint: str, authority: bytes) -> File | None:
    """The kubeconfig for discovery by file; None when the user brings the file along by other means."""
    file = (join.get("discovery") or {}).get("file") or {}
    asked = file.get("kubeConfig") or {}
    if not asked:
        return None
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "default", "cluster": _cluster(asked.get("cluster") or {}, endpoint, authority)}],
        "users": [{"name": "default", "user": _user(asked.get("user") or {})}],
        "contexts": [{"name": "default", "context": {"cluster": "default", "user": "default"}}],
        "current-context": "default",
    }
    return File(file["kubeConfigPath"], dump_yaml(kubeconfig), "root:root", "0640")


def _cluster(asked: Mapping[str, Any], endpoint: str, authority: bytes) -> Json:
    cluster: Json = {"server": asked.get("server") or f"https://{endpoint}"}
    if asked.get("insecureSkipTLSVerify"):
        cluster["insecure-skip-tls-verify"] = True  # clients refuse an authority beside it
    else:
        given = asked.get("certificateAuthorityData")
        cluster["certificate-authority-data"] = given or base64.b64encode(authority).decode()
    for ours, theirs in (("tlsServerName", "tls-server-name"), ("proxyURL", "proxy-url")):
        if asked.get(ours):
            cluster[theirs] = asked[ours]
    return cluster


def _user(asked: Mapping[str, Any]) -> Json:
    provider, command = asked.get("authProvider") or {}, asked.get("exec") or {}
    if provider:
        return {"auth-provider": {name: provider[name] for name in ("name", "config") if provider.get(name)}}
    if not command:
        return {}
    made: Json = {"apiVersion": command.get("apiVersion") or _EXEC_API, "command": command.get("command") or ""}
    for name in ("args", "env"):
        if command.get(name):
            made[name] = command[name]
    made["provideClusterInfo"] = bool(command.get("provideClusterInfo"))
    made["interactiveMode"] = "Never"
    return {"exec": made}
