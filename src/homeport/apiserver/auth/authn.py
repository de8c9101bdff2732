"""Who asks: a client certificate or a bearer token becomes a User.

    certificate of our CA     CN is the user, each O a group
    static token              DIR/pki/tokens.csv
    ServiceAccount token      ES256, bound to live objects
    bootstrap token           a Secret of kube-system

Without any of these the request is anonymous; with one that is not good it is refused.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

import structlog
from cryptography import x509
from cryptography.x509.oid import NameOID

from homeport.apiserver.auth.certificate import PrivateKey
from homeport.apiserver.auth.token import bootstrap
from homeport.apiserver.auth.token.jwt import TokenInvalid
from homeport.apiserver.auth.token.serviceaccount import CREDENTIAL_ID, ServiceAccounts, Verified
from homeport.apiserver.request import User
from homeport.client.errors import Unauthorized
from homeport.store import Change, Store

log = structlog.get_logger(__name__)

AUTHENTICATED = "system:authenticated"
CACHE_LIMIT = 10_000
TOKEN_LIMIT = 32 * 1024  # characters; our own tokens are far shorter
_WATCHED = ("serviceaccounts", "secrets", "pods", "nodes")


def authenticated(user: User) -> User:
    """The user with the group that everybody known has."""
    if AUTHENTICATED in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED), user.uid, user.extra)


class Authenticator:
    """`static` are users by the SHA-256 of their token (tokenfile.load_tokens)."""

    def __init__(
        self,
        store: Store,
        accounts: ServiceAccounts,
        static: dict[bytes, User] | None = None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.accounts = accounts
        self._store = store
        self._static = {token: authenticated(user) for token, user in (static or {}).items()}
        self._now = now
        self._tokens = TokenCache(store)
        self._certificates: OrderedDict[bytes, tuple[User, float]] = OrderedDict()

    async def authenticate(self, *, peer_cert: bytes | None, authorization: str) -> User | None:
        """None: anonymous. `peer_cert` is DER and was verified by TLS; `authorization` is the header, '' if absent."""
        if peer_cert:
            return self._from_certificate(peer_cert)
        scheme, _, rest = authorization.strip().partition(" ")
        token = rest.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        try:
            return self.verify(token).user
        except TokenInvalid as invalid:
            log.info("bearer token refused", why=str(invalid))
            raise Unauthorized("Unauthorized") from None

    def use_key(self, key: PrivateKey) -> None:
        """Another key of service accounts: what was verified with the old one is no longer valid."""
        self.accounts.key = key
        self._tokens.clear()

    def verify(self, token: str, audiences: Sequence[str] = ()) -> Verified:
        """Whom a token speaks for. Raises TokenInvalid, also when it is for none of `audiences`."""
        if len(token) > TOKEN_LIMIT:
            raise TokenInvalid("token is too long")
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()
        found = self._tokens.get(digest, self._now())
        if found is None:
            found = self._verify(token, digest)
            found = found._replace(user=authenticated(found.user))
            self._tokens.put(digest, found)
        wanted = tuple(audiences) or self.accounts.audiences
        common = tuple(each for each in found.audiences if each in wanted)
        if not common:
            raise TokenInvalid(
                f"token audiences {_listed(found.audiences)} is invalid for the target audiences {_listed(wanted)}",
                known=True,
            )
        return found._replace(audiences=common)

    def _verify(self, token: str, digest: bytes) -> Verified:
        static = self._static.get(digest)
        if static is not None:
            return Verified(static, self.accounts.audiences, 0.0, ())
        if self.accounts.claims(token):
            return self.accounts.verify(token)
        return bootstrap.verify(token, self._store, self._now, self.accounts.audiences)

    def _from_certificate(self, der: bytes) -> User:
        found = self._certificates.get(der)
        if found is None:
            found = _read_certificate(der)
            self._certificates[der] = found
            if len(self._certificates) > CACHE_LIMIT:
                self._certificates.popitem(last=False)
        user, expires = found
        # TLS looked when the connection was made, which may be long ago.
        if self._now() > expires:
            raise Unauthorized("Unauthorized")
        return user


class TokenCache:
    """Verified tokens by their hash, each until it expires or an object that it hangs on goes away."""

    def __init__(self, store: Store, limit: int = CACHE_LIMIT) -> None:
        self._limit = limit
        self._entries: OrderedDict[bytes, Verified] = OrderedDict()
        self._by_object: dict[tuple[str, str], set[bytes]] = {}
        for bucket in _WATCHED:
            store.subscribe(bucket, self._take)

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        self._entries.clear()
        self._by_object.clear()

    def get(self, digest: bytes, now: float) -> Verified | None:
        found = self._entries.get(digest)
        if found is None:
            return None
        if found.expires and now > found.expires:
            self._drop(digest)
            return None
        self._entries.move_to_end(digest)
        return found

    def put(self, digest: bytes, verified: Verified) -> None:
        if not verified.lasting:
            return
        self._entries[digest] = verified
        for key in verified.objects:
            self._by_object.setdefault(key, set()).add(digest)
        if len(self._entries) > self._limit:
            self._drop(next(iter(self._entries)))

    def _take(self, changes: list[Change]) -> None:
        for change in changes:
            key = (change.bucket, change.name)
            if key in self._by_object and _matters(change):
                for digest in tuple(self._by_object[key]):
                    self._drop(digest)

    def _drop(self, digest: bytes) -> None:
        for key in self._entries.pop(digest).objects:
            digests = self._by_object.get(key)
            if digests is not None:
                digests.discard(digest)
                if not digests:
                    del self._by_object[key]


def _matters(change: Change) -> bool:
    """Pods change often; a token minds only that they go. A Secret's content is the token."""
    if change.bucket == "secrets" or change.record is None or change.previous is None:
        return True
    return b'"deletionTimestamp"' in change.record.value


def _read_certificate(der: bytes) -> tuple[User, float]:
    try:
        certificate = x509.load_der_x509_certificate(der)
        subject = certificate.subject
        names = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        groups = [str(each.value) for each in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    except ValueError as broken:
        raise Unauthorized("Unauthorized") from broken
    if not names or not names[-1]:
        raise Unauthorized("Unauthorized")
    extra = {CREDENTIAL_ID: (f"X509SHA256={hashlib.sha256(der).hexdigest()}",)}
    user = authenticated(User(names[-1], tuple(groups), "", extra))
    return user, certificate.not_valid_after_utc.timestamp()


def _listed(texts: Sequence[str]) -> str:
    return "[" + " ".join(f'"{text}"' for text in texts) + "]"
