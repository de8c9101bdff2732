"""ServiceAccount tokens: who they speak for, and whether what they are bound to still exists."""

from __future__ import annotations

import base64
import hmac
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from homeport.apiserver.auth.certificate import PrivateKey
from homeport.apiserver.auth.source import Json, read
from homeport.apiserver.auth.token import jwt
from homeport.apiserver.auth.token.jwt import Claims, TokenInvalid
from homeport.apiserver.request import User
from homeport.store import Store

ISSUER = "https://kubernetes.default.svc.cluster.local"
LEGACY_ISSUER = "kubernetes/serviceaccount"
# Clocks differ: a token is good a little before it begins, and an object a little after its deletion.
LEEWAY_SECONDS = 60
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"

_USER_PREFIX = "system:serviceaccount:"
_LEGACY = "kubernetes.io/serviceaccount/"
# The order in which Kubernetes looks at them.
_BOUND = (("secret", "secrets"), ("pod", "pods"), ("node", "nodes"))


class BoundObject(NamedTuple):
    """An object that a token lives and dies with. kind is `pod`, `secret` or `node`, as the claim spells it."""

    kind: str
    name: str
    uid: str


class Verified(NamedTuple):
    """Whom a token speaks for, to whom, until when (0: for ever), and the objects that this hangs on."""

    user: User
    audiences: tuple[str, ...]
    expires: float
    objects: tuple[tuple[str, str], ...]  # (bucket, name in the store)
    lasting: bool = True  # False: an object is being deleted, ask again the next time


def user_name(namespace: str, name: str) -> str:
    return f"{_USER_PREFIX}{namespace}:{name}"


def split_user_name(user: str) -> tuple[str, str] | None:
    """Namespace and name of a ServiceAccount's user name, None for another user's."""
    namespace, sep, name = user.removeprefix(_USER_PREFIX).partition(":")
    return (namespace, name) if user.startswith(_USER_PREFIX) and sep and namespace and name else None


def groups_of(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"{_USER_PREFIX.removesuffix(':')}s:{namespace}")


@dataclass(slots=True, eq=False)
class ServiceAccounts:
    """Issues tokens and checks them. `audiences` are those the API server itself answers to.

    With another `key`, tokens that were issued before are no longer valid.
    """

    key: PrivateKey
    store: Store
    now: Callable[[], float]
    issuer: str = ISSUER
    audiences: tuple[str, ...] = (ISSUER,)

    def issue(
        self,
        account: Json,
        *,
        audiences: Sequence[str] = (),
        seconds: int = 3600,
        bound: Sequence[BoundObject] = (),
    ) -> tuple[str, int]:
        """A token for a ServiceAccount (the object), and when it expires, in seconds since 1970."""
        meta = account["metadata"]
        issued = int(self.now())
        private: dict[str, Any] = {
            "namespace": meta["namespace"],
            "serviceaccount": {"name": meta["name"], "uid": meta["uid"]},
        }
        for each in bound:
            private[each.kind] = {"name": each.name, "uid": each.uid}
        claims: Claims = {
            "iss": self.issuer,
            "aud": list(audiences or self.audiences),
            "sub": user_name(meta["namespace"], meta["name"]),
            "exp": issued + seconds,
            "iat": issued,
            "nbf": issued,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": private,
        }
        return jwt.sign(claims, self.key), issued + seconds

    def issue_for_secret(self, account: Json, secret: Json) -> str:
        """The token that goes into a Secret of type kubernetes.io/service-account-token. It does not expire."""
        meta = account["metadata"]
        claims: Claims = {
            "iss": LEGACY_ISSUER,
            "sub": user_name(meta["namespace"], meta["name"]),
            f"{_LEGACY}namespace": meta["namespace"],
            f"{_LEGACY}secret.name": secret["metadata"]["name"],
            f"{_LEGACY}service-account.name": meta["name"],
            f"{_LEGACY}service-account.uid": meta["uid"],
        }
        return jwt.sign(claims, self.key)

    def claims(self, token: str) -> bool:
        """Whether the token names this server as its issuer. If so, no other authenticator is asked."""
        seen = jwt.peek(token)
        return seen is not None and seen.get("iss") in (self.issuer, LEGACY_ISSUER)

    def verify(self, token: str) -> Verified:
        claims = jwt.verify(token, self.key.public_key())
        if claims.get("iss") == LEGACY_ISSUER:
            return self._verify_legacy(token, claims)
        now = self.now()
        expires = _number(claims.get("exp"))
        if expires is None or now > expires:
            raise TokenInvalid("service account token has expired", known=True)
        begins = _number(claims.get("nbf"))
        if begins is not None and now + LEEWAY_SECONDS < begins:
            raise TokenInvalid("service account token is not valid yet", known=True)
        return self._verify_bound(claims, expires)

    def _verify_bound(self, claims: Claims, expires: float) -> Verified:
        private = _mapping(claims.get("kubernetes.io"))
        namespace = str(private.get("namespace") or "")
        account = _mapping(private.get("serviceaccount"))
        name, uid = str(account.get("name") or ""), str(account.get("uid") or "")
        extra = {CREDENTIAL_ID: (f"JTI={claims['jti']}",)} if claims.get("jti") else {}
        live = _Live(self.store, self.now())
        live.require("serviceaccounts", namespace, name, uid, "service account")
        for kind, bucket in _BOUND:
            reference = _mapping(private.get(kind))
            if not reference:
                continue
            home = "" if kind == "node" else namespace
            at, its_uid = str(reference.get("name") or ""), str(reference.get("uid") or "")
            live.require(bucket, home, at, its_uid, f"bound {kind}")
            if kind != "secret":
                extra[f"authentication.kubernetes.io/{kind}-name"] = (at,)
                extra[f"authentication.kubernetes.io/{kind}-uid"] = (its_uid,)
        user = User(user_name(namespace, name), groups_of(namespace), uid, extra)
        return Verified(user, _texts(claims.get("aud")), expires, live.objects, live.lasting)

    def _verify_legacy(self, token: str, claims: Claims) -> Verified:
        namespace, name, uid, secret_name = (
            str(claims.get(f"{_LEGACY}{field}") or "")
            for field in ("namespace", "service-account.name", "service-account.uid", "secret.name")
        )
        live = _Live(self.store, self.now())
        secret = live.require("secrets", namespace, secret_name, "", "secret")
        if not hmac.compare_digest(decoded(secret, "token").encode(), token.encode()):
            raise TokenInvalid("token does not match the one in its secret", known=True)
        live.require("serviceaccounts", namespace, name, uid, "service account")
        user = User(user_name(namespace, name), groups_of(namespace), uid)
        return Verified(user, self.audiences, 0.0, live.objects, live.lasting)


def decoded(secret: Json, field: str) -> str:
    """A value of a Secret as text; '' where it is missing or no text."""
    try:
        return base64.b64decode((secret.get("data") or {}).get(field) or "").decode()
    except ValueError:
        return ""


class _Live:
    """Looks objects up, and keeps a list of those that were needed."""

    def __init__(self, store: Store, now: float) -> None:
        self._store = store
        self._now = now
        self.objects: tuple[tuple[str, str], ...] = ()
        self.lasting = True

    def require(self, bucket: str, namespace: str, name: str, uid: str, what: str) -> Json:
        obj = read(self._store, bucket, namespace, name) if name else None
        if obj is None:
            raise TokenInvalid(f"{what} does not exist", known=True)
        meta = obj["metadata"]
        if uid and meta.get("uid") != uid:
            raise TokenInvalid(f"{what} was created again after the token was issued", known=True)
        if meta.get("deletionTimestamp"):
            self.lasting = False
            if datetime.fromisoformat(meta["deletionTimestamp"]).timestamp() < self._now - LEEWAY_SECONDS:
                raise TokenInvalid(f"{what} has been deleted", known=True)
        self.objects = (*self.objects, (bucket, f"{namespace}/{name}" if namespace else name))
        return obj


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    return tuple(str(each) for each in value) if isinstance(value, list) else ()
