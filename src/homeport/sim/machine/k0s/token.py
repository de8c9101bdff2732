"""Join tokens: a kubeconfig under gzip and base64, whose user tells what it is for."""

from __future__ import annotations

import base64
import binascii

from homeport.sim.machine import yaml
from homeport.sim.machine.kubeadm.config import KubeadmError
from homeport.sim.machine.kubeadm.discovery import Discovery, read_kubeconfig
from homeport.sim.machine.userdata.part import gunzip
from homeport.sim.machine.vm import Machine

WORKER = "kubelet-bootstrap"
CONTROLLER = "controller-bootstrap"


def read_token(machine: Machine, path: str, role: str) -> Discovery:
    """The token in a file, if it is for this role. Raises KubeadmError."""
    content = machine.disk.text(path)
    if content is None:
        raise KubeadmError(f'failed to read token file "{path}": open {path}: no such file or directory')
    if not content.strip():
        raise KubeadmError(f'token file "{path}" is empty')
    try:
        text = gunzip(base64.b64decode(content.strip(), validate=True)).decode()
    except (binascii.Error, ValueError) as broken:
        raise KubeadmError(f"failed to decode join token: {broken}") from broken
    try:
        found = read_kubeconfig(text)
    except KubeadmError as broken:
        raise KubeadmError(f"failed to load kubeconfig from join token: {broken}") from broken
    kind = _user(text)
    if kind != role:
        raise KubeadmError(f"wrong token type {kind}, expected type: {role}")
    if not found.authority or not found.token:
        raise KubeadmError(f"the join token in {path} has no certificate authority or no token")
    return found


def _user(text: str) -> str:
    contexts = (yaml.load(text) or {}).get("contexts") or ()
    return next((str((each.get("context") or {}).get("user") or "") for each in contexts), "")
