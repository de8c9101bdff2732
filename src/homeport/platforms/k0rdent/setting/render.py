"""How settings reach the API servers of a cluster: files, arguments, and the objects that hold them. Pure.

A hosted control plane mounts them; machines get them as files. kube-apiserver reads the authentication file again when
it changes, and the policy only when it starts: so the policy's path has its digest, and a new one replaces the Pods.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace
from typing import Any

from homeport.api.k0rdent.v1beta1 import ClusterDeployment
from homeport.capi.name import CLUSTER_NAME_LABEL
from homeport.capi.object.ownership import owner_reference
from homeport.platforms.k0rdent.cluster.config import ClusterConfig
from homeport.platforms.k0rdent.deployment.render import release_labels
from homeport.platforms.k0rdent.setting.find import Settings

Json = dict[str, Any]

AUTHENTICATION_KEY, AUDIT_KEY = "config", "policy"
_READABLE = "0644"  # kube-apiserver runs as a user of its own


def authentication_name(deployment: str) -> str:
    return f"{deployment}-auth-config"


def audit_name(deployment: str) -> str:
    return f"{deployment}-audit-policy"


def with_settings(config: ClusterConfig, settings: Settings, deployment: str) -> ClusterConfig:
    root = config.chart.distribution.settings_folder
    arguments: dict[str, str] = {}
    files: list[Json] = []
    mounts: list[Json] = []
    if settings.authentication:
        folder = f"{root}/authentication"
        arguments["authentication-config"] = path = f"{folder}/{AUTHENTICATION_KEY}"
        files.append(_file(path, settings.authentication))
        mounts.append({"path": folder, "secret": {"secretName": authentication_name(deployment)}})
    if settings.audit:
        folder = f"{root}/audit-{_digest(settings.audit)}"
        path = f"{folder}/{AUDIT_KEY}"
        arguments |= {"audit-policy-file": path, "audit-log-path": "-"}  # '-': its own log
        files.append(_file(path, settings.audit))
        mounts.append({"path": folder, "configMap": {"name": audit_name(deployment)}})
    if not arguments:
        return config
    if config.hosted:
        return replace(config, api_arguments=arguments, mounts=tuple(mounts))
    return replace(config, api_arguments=arguments, files=tuple(files))


def _file(path: str, content: str) -> Json:
    return {"path": path, "content": content, "permissions": _READABLE}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def render_settings(deployment: ClusterDeployment, settings: Settings) -> list[Json]:
    """The objects that hold the files: a Secret and a ConfigMap, as far as there are settings."""
    name, made = deployment.metadata.name, []
    if settings.authentication:
        data = {AUTHENTICATION_KEY: base64.b64encode(settings.authentication.encode()).decode()}
        made.append(_object(deployment, "Secret", authentication_name(name), data))
    if settings.audit:
        made.append(_object(deployment, "ConfigMap", audit_name(name), {AUDIT_KEY: settings.audit}))
    return made


def _object(deployment: ClusterDeployment, kind: str, name: str, data: dict[str, str]) -> Json:
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": deployment.metadata.namespace,
            "labels": {**release_labels(deployment), CLUSTER_NAME_LABEL: deployment.metadata.name},
            "ownerReferences": [owner_reference(deployment, controller=True)],
        },
        "data": data,
    }
