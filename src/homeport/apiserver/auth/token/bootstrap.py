"""Bootstrap tokens (`abcdef.0123456789abcdef`): Secrets of kube-system with which new nodes introduce themselves."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from datetime import UTC, datetime

from homeport.apiserver.auth.source import Json, read
from homeport.apiserver.auth.token.jwt import TokenInvalid
from homeport.apiserver.auth.token.serviceaccount import Verified, decoded
from homeport.apiserver.request import User
from homeport.store import Store

GROUP = "system:bootstrappers"
SECRET_TYPE = "bootstrap.kubernetes.io/token"  # noqa: S105 - a type, not a secret

_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})")
_EXTRA_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]")


def looks_like_one(token: str) -> bool:
    return _TOKEN.fullmatch(token) is not None


def verify(token: str, store: Store, now: Callable[[], float], audiences: tuple[str, ...]) -> Verified:
    match = _TOKEN.fullmatch(token)
    if match is None:
        raise TokenInvalid("not a bootstrap token")
    identity, secret = match.groups()
    name = f"bootstrap-token-{identity}"
    found = read(store, "secrets", "kube-system", name)
    # Compared even where there is nothing to compare with, so that the time taken does not tell which ids exist.
    known = hmac.compare_digest(decoded(found or {}, "token-secret").encode(), secret.encode())
    if found is None or not known or not _usable(found, identity):
        raise TokenInvalid("unknown bootstrap token")
    expires = _expiry(found)
    if expires and expires <= now():
        raise TokenInvalid("the bootstrap token has expired")
    user = User(f"system:bootstrap:{identity}", _groups(found))
    return Verified(user, audiences, expires, (("secrets", f"kube-system/{name}"),))


def _usable(secret: Json, identity: str) -> bool:
    return (
        secret.get("type") == SECRET_TYPE
        and not secret["metadata"].get("deletionTimestamp")
        and decoded(secret, "token-id") == identity
        and decoded(secret, "usage-bootstrap-authentication") == "true"
    )


def _expiry(secret: Json) -> float:
    """0: never. What can't be read counts as expired."""
    text = decoded(secret, "expiration")
    if not text:
        return 0.0
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 1.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _groups(secret: Json) -> tuple[str, ...]:
    """The common group and those the Secret adds. One that is not a bootstrappers' group spoils the token."""
    groups = {GROUP}
    for group in filter(None, decoded(secret, "auth-extra-groups").split(",")):
        if not _EXTRA_GROUP.fullmatch(group):
            raise TokenInvalid(f'bootstrap token group "{group}" is invalid')
        groups.add(group)
    return tuple(sorted(groups))
