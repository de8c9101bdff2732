"""Patches of ClusterClasses. Pure."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]

WORKER_CLASS = "default-worker"
WORKERS: Json = {"machineDeploymentClass": {"names": [WORKER_CLASS]}}
_SPEC = "/spec/template/spec"


def selector(api_version: str, kind: str, **match: Any) -> Json:
    return {"apiVersion": api_version, "kind": kind, "matchResources": match}


def from_variable(path: str, variable: str) -> Json:
    return {"op": "add", "path": f"{_SPEC}{path}", "valueFrom": {"variable": variable}}


def rendered(path: str, template: str) -> Json:
    return {"op": "add", "path": f"{_SPEC}{path}", "valueFrom": {"template": template}}


def patch(name: str, target: Json, *operations: Json, **more: Any) -> Json:
    return {"name": name, "definitions": [{"selector": target, "jsonPatches": list(operations)}], **more}
