"""The CA of our webhooks: kept in a Secret, shared by all replicas, replaced in time.

    ca.crt     every certificate that is to be trusted, the one that signs first: this is what gets injected
    ca.key     key of the one that signs
    next.key   key of its successor, while one waits

A CA is replaced in two steps, so that nobody meets a certificate whose CA it has not been given: the successor is
trusted for `overlap_days` before it signs, and the old one is trusted until it expires. Every step is one write
that fails if another replica was faster; the loser reads what the winner wrote.

A CA can also be given, as cert-manager writes one: then others renew it, and the Secret is only read.

    tls.crt    the CA that signs, and the CAs above it
    tls.key    its key
    ca.crt     the root
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import datetime
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog
from cryptography import x509

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.certificate import Issuer
from homeport.client.absence import find_object
from homeport.client.errors import AlreadyExists, Conflict
from homeport.client.protocol import Client, Key, Write
from homeport.runtime.clock import Clock, SystemClock
from homeport.runtime.queue import Backoff

log = structlog.get_logger(__name__)

SECRET = Resource("", "v1", "Secret", "secrets")
_WRITE = Write(field_manager="homeport-webhook")
_ATTEMPTS = 10
_PAUSE = Backoff(first=0.01, limit=1.0, jitter=1.0)
_CURE = "Repair it where it is issued. Or delete the Secret, and the replicas create a CA of their own"


class AuthorityError(ValueError):
    """What the Secret holds can't be used."""


class GivenAuthorityError(AuthorityError):
    """A CA that others wrote can't be used, and is not ours to replace. The text says what to do."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    ca_days: int = certs.CA_DAYS
    overlap_days: float = 1.0
    leaf_days: int = 90
    # Certificates are valid from so long before they were made. API servers whose clocks are behind refuse every write
    # otherwise, and a clock that runs in local time instead of UTC is off by hours.
    skew: datetime.timedelta = datetime.timedelta(days=1)

    def ca_due(self, certificate: x509.Certificate, now: datetime.datetime) -> bool:
        """A fifth of its life is left, or it is not valid yet: the clock was wrong when it was made."""
        return (
            certificate.not_valid_before_utc > now
            or certificate.not_valid_after_utc - now < datetime.timedelta(days=self.ca_days) / 5
        )

    def leaf_due(self, certificate: x509.Certificate, now: datetime.datetime) -> bool:
        """A third of its life is left, or it is not valid yet."""
        whole = certificate.not_valid_after_utc - certificate.not_valid_before_utc
        return certificate.not_valid_before_utc > now or certificate.not_valid_after_utc - now < whole / 3


@dataclass(frozen=True, slots=True)
class Authority:
    issuer: Issuer
    successor: Issuer | None = None
    trusted: tuple[x509.Certificate, ...] = ()  # besides these two
    given: bool = False  # others wrote it and renew it

    @property
    def chain(self) -> bytes:
        """What a server sends after its own certificate. With a given root, a renewed CA is then trusted at once."""
        return certs.certificate_pem(self.issuer.certificate) if self.given else b""

    @property
    def bundle(self) -> bytes:
        own = [self.issuer.certificate, *([self.successor.certificate] if self.successor else [])]
        return b"".join(certs.certificate_pem(each) for each in (*own, *self.trusted))

    def renewed(self, now: datetime.datetime, lifetime: Lifetime) -> Authority:
        """Itself when nothing is due."""
        if self.given:
            return self
        result = self
        if result.successor is None and lifetime.ca_due(result.issuer.certificate, now):
            result = replace(result, successor=_make_issuer(now, lifetime))
            log.info("a new CA for webhooks waits until it is known everywhere")
        if result.successor is not None and self._may_sign(result.successor, now, lifetime):
            trusted = (result.issuer.certificate, *result.trusted)
            result = Authority(result.successor, None, trusted)
            log.info("the new CA for webhooks signs from now on")
        valid = tuple(each for each in result.trusted if each.not_valid_after_utc > now)
        return result if len(valid) == len(result.trusted) else replace(result, trusted=valid)

    def _may_sign(self, successor: Issuer, now: datetime.datetime, lifetime: Lifetime) -> bool:
        made = successor.certificate.not_valid_before_utc + lifetime.skew
        waited = now - made >= datetime.timedelta(days=lifetime.overlap_days)
        return waited or not is_valid(self.issuer.certificate, now)

    def as_data(self) -> dict[str, str]:
        """The `data` of the Secret."""
        raw = {"ca.crt": self.bundle, "ca.key": certs.key_pem(self.issuer.key)}
        if self.successor is not None:
            raw["next.key"] = certs.key_pem(self.successor.key)
        return {name: base64.b64encode(content).decode() for name, content in raw.items()}


def is_valid(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc


def make_authority(now: datetime.datetime, lifetime: Lifetime) -> Authority:
    return Authority(_make_issuer(now, lifetime))


def _make_issuer(now: datetime.datetime, lifetime: Lifetime) -> Issuer:
    key = certs.make_key()
    return Issuer(certs.sign_ca(key, now, days=lifetime.ca_days, skew=lifetime.skew), key)


def parse_authority(data: Mapping[str, str]) -> Authority:
    """Raises AuthorityError, which names the entry of the Secret."""
    if "tls.crt" in data:
        return _given(data)
    bundle = _parsed(data, "ca.crt", x509.load_pem_x509_certificates)
    issuer = _issuer(_parsed(data, "ca.key", certs.load_key), bundle, "ca.key")
    successor = _issuer(_parsed(data, "next.key", certs.load_key), bundle, "next.key") if "next.key" in data else None
    own = {issuer.certificate, *([successor.certificate] if successor else [])}
    return Authority(issuer, successor, tuple(each for each in bundle if each not in own))


def _given(data: Mapping[str, str]) -> Authority:
    try:
        return _parse_given(data)
    except GivenAuthorityError:
        raise
    except AuthorityError as error:
        raise GivenAuthorityError(str(error)) from error


def _parse_given(data: Mapping[str, str]) -> Authority:
    chain = _parsed(data, "tls.crt", x509.load_pem_x509_certificates)
    issuer = _issuer(_parsed(data, "tls.key", certs.load_private_key), chain[:1], "tls.key", "tls.crt")
    if not _may_sign(issuer.certificate):
        raise GivenAuthorityError("data[tls.crt] is not a CA: set isCA: true in the Certificate")
    above = [*chain[1:], *(_parsed(data, "ca.crt", x509.load_pem_x509_certificates) if data.get("ca.crt") else ())]
    others = (each for each in dict.fromkeys(above) if each != issuer.certificate)
    return Authority(issuer, None, tuple(others), given=True)


def _may_sign(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _parsed(data: Mapping[str, str], entry: str, parse: Any) -> Any:
    try:
        return parse(base64.b64decode(data[entry], validate=True))
    except KeyError as missing:
        raise AuthorityError(f"data[{entry}] is missing") from missing
    except (ValueError, TypeError, binascii.Error) as broken:
        raise AuthorityError(f"data[{entry}] is damaged") from broken


def _issuer(key: certs.PrivateKey, bundle: list[x509.Certificate], entry: str, where: str = "ca.crt") -> Issuer:
    for certificate in bundle:
        if certs.same_key(key, certificate):
            return Issuer(certificate, key)
    raise AuthorityError(f"data[{entry}] belongs to no certificate of data[{where}]")


class SharedAuthority:
    """The Secret in the cluster. `ensure` is called by every replica, whenever it likes."""

    def __init__(
        self,
        client: Client,
        secret: Key,
        *,
        lifetime: Lifetime | None = None,
        clock: Clock | None = None,
        owner: Mapping[str, Any] | None = None,  # an owner reference: with the owner the Secret is removed
    ) -> None:
        self._client = client
        self.secret = secret
        self.lifetime = lifetime or Lifetime()
        self._clock = clock or SystemClock()
        self._owners = [dict(owner)] if owner is not None else []
        self._last: Authority | None = None  # what the Secret held last

    def now(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self._clock.now(), datetime.UTC)

    async def ensure(self) -> Authority:
        """What all replicas sign with now; makes or renews it where that is due."""
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._last = await self._attempt()
                return self._last
            except (Conflict, AlreadyExists):
                log.debug("another replica wrote the CA of webhooks first", secret_name=str(self.secret))
            await asyncio.sleep(_PAUSE.delay(attempt))
        raise Conflict(f"secret {self.secret}: {_ATTEMPTS} writes in a row came too late; something keeps changing it")

    async def _attempt(self) -> Authority:
        secret = await find_object(self._client, SECRET, self.secret)
        if secret is None:
            return await self._create()
        try:
            held = parse_authority(secret.get("data") or {})
            wanted = held.renewed(self.now(), self.lifetime)
            if wanted is held and (held.given or not self._expired(held)):
                return self._checked(held)
        except GivenAuthorityError as error:
            raise GivenAuthorityError(f"Secret {self.secret}: {error}. {_CURE}") from error
        except AuthorityError as error:
            log.warning("the Secret of the webhooks is written again", secret_name=str(self.secret), error=str(error))
            wanted = self._known_or_made()
        secret["data"] = {**(secret.get("data") or {}), **wanted.as_data()}
        if wanted.successor is None:
            secret["data"].pop("next.key", None)
        await self._client.replace(secret, _WRITE, kind=SECRET)
        return wanted

    def _checked(self, held: Authority) -> Authority:
        if held.given and self._expired(held):
            certificate = held.issuer.certificate
            valid = f"{certificate.not_valid_before_utc:%Y-%m-%d} to {certificate.not_valid_after_utc:%Y-%m-%d}"
            raise GivenAuthorityError(f"the CA in data[tls.crt] is valid from {valid} only")
        return held

    def _expired(self, held: Authority) -> bool:
        return not is_valid(held.issuer.certificate, self.now())

    def _known_or_made(self) -> Authority:
        """What API servers trust already, if this replica has seen it: another CA would be refused until it is known
        everywhere."""
        if self._last is not None and not self._last.given and not self._expired(self._last):
            return self._last.renewed(self.now(), self.lifetime)
        return make_authority(self.now(), self.lifetime)

    async def _create(self) -> Authority:
        made = self._known_or_made()
        secret = Unstructured(
            apiVersion="v1",
            kind="Secret",
            metadata={
                "name": self.secret.name,
                "namespace": self.secret.namespace,
                **({"ownerReferences": self._owners} if self._owners else {}),
            },
            type="Opaque",
            data=made.as_data(),
        )
        await self._client.create(secret, _WRITE, kind=SECRET)
        log.info("CA of the webhooks created", secret_name=str(self.secret))
        return made
