"""Bootstrap tokens: cluster-info is signed with each of them, and those that have expired are swept away."""

from __future__ import annotations

import base64
import hashlib
import hmac

import orjson

from homeport.apiserver.auth.token.serviceaccount import decoded
from homeport.runtime.clock import parse_time
from homeport.sim.machine.workload.kind import CONFIG_MAP, SECRET, Json
from homeport.sim.machine.workload.view import View

PREFIX = "jws-kubeconfig-"
_NAME = "kube-system/bootstrap-token-"


async def settle_tokens(view: View) -> None:
    signing: dict[str, str] = {}
    for record in view.server.store.range("secrets", prefix=_NAME):
        secret: Json = orjson.loads(record.value)
        if secret.get("type") != "bootstrap.kubernetes.io/token":
            continue
        left = _seconds_left(secret, view.now)
        if left is not None and left <= 0:
            await view.delete(SECRET, secret)
            continue
        if left is not None:
            view.later(left + 0.1)
        if decoded(secret, "usage-bootstrap-signing") == "true":
            signing[decoded(secret, "token-id")] = decoded(secret, "token-secret")
    await _sign(view, signing)


def _seconds_left(secret: Json, now: float) -> float | None:
    """None: for ever. What can't be read counts as expired."""
    text = decoded(secret, "expiration")
    if not text:
        return None
    try:
        return parse_time(text) - now
    except ValueError:
        return 0.0


async def _sign(view: View, signing: dict[str, str]) -> None:
    record = view.server.store.get("configmaps", "kube-public/cluster-info")
    if record is None:
        return
    info: Json = orjson.loads(record.value)
    data: dict[str, str] = info.get("data") or {}
    content = data.get("kubeconfig", "").encode()
    wanted = {PREFIX + identity: signature(content, identity, secret) for identity, secret in signing.items()}
    changes: dict[str, str | None] = {key: value for key, value in wanted.items() if data.get(key) != value}
    changes |= {key: None for key in data if key.startswith(PREFIX) and key not in wanted}
    if changes:
        await view.patch(CONFIG_MAP, info, {"data": changes})


def signature(content: bytes, identity: str, secret: str) -> str:
    """A JSON Web Signature that leaves out what it signs."""
    header = _encoded(orjson.dumps({"alg": "HS256", "kid": identity}))
    mac = hmac.new(secret.encode(), f"{header}.{_encoded(content)}".encode(), hashlib.sha256).digest()
    return f"{header}..{_encoded(mac)}"


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
