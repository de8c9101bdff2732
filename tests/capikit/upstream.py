"""What tools/upstream/build has made of upstream's modules: definitions, webhooks and managers."""

from __future__ import annotations

import copy
import functools
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import yaml

BUILD = Path(__file__).resolve().parents[2] / "tools" / "upstream" / "build"
MANAGERS = ("core", "bootstrap", "controlplane", "nutanix")
# What kustomize puts on the definitions when upstream releases them: by this others find their contract.
_LABELS = {
    "core": {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"},
    "bootstrap": {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"},
    "controlplane": {"cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2"},
    "nutanix": {"cluster.x-k8s.io/v1beta1": "v1beta1"},
}


@functools.cache
def folder() -> Path:
    asked = subprocess.run([sys.executable, str(BUILD), "--where"], capture_output=True, text=True, check=True)
    return Path(asked.stdout.strip())


def lacking(*wanted: str) -> str:
    """Why tests that need these must be skipped, in a sentence; '' when they are all there."""
    missing = [each for each in wanted if not (folder() / each).exists()]
    if not missing:
        return ""
    if shutil.which("go"):
        return f"no {', '.join(missing)} of upstream in {folder()}: run tools/upstream/build {' '.join(missing)}"
    return "nothing of upstream: Go is not on PATH and nothing was built before (see tools/upstream/README.md)"


def definitions(*managers: str, newest: bool = False) -> list[dict[str, Any]]:
    """The managers' own CRDs, labelled as they are released; conversion is added by whoever installs them.

    `newest`: of the newest release, of which no managers are built.
    """
    found = []
    manifests = folder() / "manifests" / ("newest" if newest else "")
    for manager in managers:
        for path in sorted((manifests / manager / "crd").glob("*.yaml")):
            crd = copy.deepcopy(_load(path))
            crd["metadata"]["labels"] = {**(crd["metadata"].get("labels") or {}), **_LABELS[manager]}
            found.append(crd)
    return found


@functools.cache
def _load(path: Path) -> dict[str, Any]:
    """Some have ten thousand lines."""
    return cast("dict[str, Any]", yaml.load(path.read_bytes(), yaml.CSafeLoader))


def webhooks(manager: str) -> list[dict[str, Any]]:
    """The manager's webhook configurations, with a service that doesn't exist here."""
    text = (folder() / "manifests" / manager / "webhook.yaml").read_bytes()
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def version(manager: str) -> str:
    facts = json.loads((folder() / "manifests" / manager / "module.json").read_text())
    return f"{facts['module']} {facts['version']}"
