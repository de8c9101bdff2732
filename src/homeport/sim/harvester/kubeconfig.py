"""Kubeconfigs for the simulated Harvester: as its dashboard gives them, and as they lie on its nodes."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from homeport.apiserver.auth.file import tighten, write_private
from homeport.apiserver.auth.pki import PKI
from homeport.machinery import yaml

PORT = 6443
# What /etc/rancher/rke2/rke2.yaml says on every node: right there, and wrong everywhere else.
RKE2_SERVER = f"https://127.0.0.1:{PORT}"


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate with its key (PEM), or a token."""

    certificate: bytes = b""
    key: bytes = b""
    token: str = ""

    @classmethod
    def admin(cls, pki: PKI) -> Identity:
        pem = pki.admin_path.read_bytes()
        mark = b"-----BEGIN CERTIFICATE-----"
        key, _, rest = pem.partition(mark)
        return cls(mark + rest, key)

    def as_user(self) -> dict[str, str]:
        if self.token:
            return {"token": self.token}
        return {"client-certificate-data": _encoded(self.certificate), "client-key-data": _encoded(self.key)}


def render_kubeconfig(server: str, ca: bytes, identity: Identity, *, name: str = "harvester", proxy: str = "") -> str:
    cluster: dict[str, Any] = {"certificate-authority-data": _encoded(ca), "server": server}
    if proxy:
        cluster["proxy-url"] = proxy
    return yaml.dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": name, "cluster": cluster}],
            "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
            "current-context": name,
            "preferences": {},
            "users": [{"name": name, "user": identity.as_user()}],
        }
    )


def render_rke2(pki: PKI) -> str:
    """The file of a node: its server address works on that node alone."""
    return render_kubeconfig(RKE2_SERVER, pki.ca_pem, Identity.admin(pki), name="default")


def write_kubeconfig(path: Path, content: str) -> None:
    """Mode 0600, whole or not at all; left alone when it already says this."""
    if path.exists() and path.read_bytes() == content.encode():
        tighten(path)
        return
    write_private(path, content.encode())


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()
