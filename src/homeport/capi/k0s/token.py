"""Tokens with which machines join a k0s cluster: a kubeconfig with a bootstrap token, compressed. Pure."""

from __future__ import annotations

import base64
import gzip
import secrets
import string
from dataclasses import dataclass

from homeport.machinery import yaml

_ALPHABET = string.ascii_lowercase + string.digits
NAMESPACE = "kube-system"
TOKEN_FILE = "/etc/k0s.token"  # noqa: S105  (a path)
JOIN_PORT = 9443  # k0s' own API, for controllers
USERS = {"worker": "kubelet-bootstrap", "controller": "controller-bootstrap"}
# What k0s allows tokens of either role.
_USAGES = {
    "worker": {
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-api-worker-calls": "true",
    },
    "controller": {
        "usage-bootstrap-authentication": "false",
        "usage-bootstrap-signing": "false",
        "usage-controller-join": "true",
    },
}


@dataclass(frozen=True, slots=True)
class BootstrapToken:
    id: str
    secret: str

    @property
    def text(self) -> str:
        return f"{self.id}.{self.secret}"

    @property
    def name(self) -> str:
        """Of its Secret in the cluster."""
        return f"bootstrap-token-{self.id}"


def make_token(token_id: str = "") -> BootstrapToken:
    return BootstrapToken(token_id or _random(6), _random(16))


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def usages(role: str) -> dict[str, str]:
    """What the Secret of a token says besides the token itself."""
    return {"usage-bootstrap-api-auth": "true", **_USAGES[role]}


def render_token(token: BootstrapToken, role: str, *, expires: str, request: str) -> dict[str, object]:
    """The Secret in the cluster's kube-system. `expires`: a time, '' for never."""
    data = {
        "token-id": token.id,
        "token-secret": token.secret,
        "description": f"{role} token of JoinTokenRequest {request}",
        **usages(role),
        **({"expiration": expires} if expires else {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": token.name, "namespace": NAMESPACE},
        "type": "bootstrap.kubernetes.io/token",
        "data": {name: base64.b64encode(value.encode()).decode() for name, value in data.items()},
    }


def render_join_token(token: str, role: str, *, server: str, ca: bytes) -> str:
    """As `k0s worker --token-file` reads it."""
    user = USERS[role]
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "k0s", "cluster": {"server": server, "certificate-authority-data": base64.b64encode(ca).decode()}}
        ],
        "contexts": [{"name": "k0s", "context": {"cluster": "k0s", "user": user}}],
        "current-context": "k0s",
        "users": [{"name": user, "user": {"token": token}}],
    }
    return base64.b64encode(gzip.compress(yaml.dump(content).encode(), mtime=0)).decode()


def parse_join_token(text: str) -> BootstrapToken | None:
    """The bootstrap token in a join token; None if there is none."""
    try:
        content = yaml.load(gzip.decompress(base64.b64decode(text, validate=True)))
        found = str(content["users"][0]["user"]["token"])
    except (ValueError, OSError, EOFError, KeyError, IndexError, TypeError):
        return None
    token_id, dot, secret = found.partition(".")
    return BootstrapToken(token_id, secret) if dot else None
