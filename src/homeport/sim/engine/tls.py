"""Certificates of simulated servers: one authority in a directory, and a leaf for the names it is called by."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.file import make_private_dir, write_private
from homeport.runtime.clock import Clock

_NAMES_KEPT = 200  # of those that a server was called by without being told before
_RENEW_BEFORE = datetime.timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Authority:
    """Kept over restarts, so that clients which trust it once go on trusting it."""

    directory: Path
    certificate: x509.Certificate
    key: certs.EcKey

    @property
    def path(self) -> Path:
        return self.directory / "ca.crt"

    @classmethod
    def ensure(cls, directory: Path, clock: Clock) -> Authority:
        make_private_dir(directory)
        now = _now(clock)
        key_path, path = directory / "ca.key", directory / "ca.crt"
        if key_path.exists() and path.exists():
            try:
                key = certs.load_key(key_path.read_bytes())
                found = x509.load_pem_x509_certificate(path.read_bytes())
            except (ValueError, TypeError):
                pass  # damaged: nothing but this simulator hangs on it, and a new one is made
            else:
                if certs.same_key(key, found) and _valid(found, now):
                    return cls(directory, found, key)
        key = certs.make_key()
        made = certs.sign_ca(key, now)
        write_private(key_path, certs.key_pem(key))
        write_private(path, certs.certificate_pem(made))
        return cls(directory, made, key)

    def context(self, name: str, hosts: Sequence[str], clock: Clock) -> ssl.SSLContext:
        """For a server called `name`, good for all of `hosts`."""
        path = self.directory / f"{name}.pem"
        if not self._usable(path, hosts, _now(clock)):
            write_private(path, self._issue(name, hosts, _now(clock)))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(path)
        return context

    def called(self, name: str, hosts: Sequence[str], clock: Clock) -> DynamicCertificate:
        """For a server whose names are not known in advance."""
        return DynamicCertificate(self, name, hosts, clock)

    def _usable(self, path: Path, hosts: Sequence[str], now: datetime.datetime) -> bool:
        try:
            leaf = x509.load_pem_x509_certificate(path.read_bytes())
            leaf.verify_directly_issued_by(self.certificate)
        except (OSError, ValueError, TypeError, InvalidSignature):
            return False
        return _valid(leaf, now) and certs.host_names(leaf) == frozenset(hosts)

    def _issue(self, name: str, hosts: Sequence[str], now: datetime.datetime) -> bytes:
        key = certs.make_key()
        public = key.public_key()
        leaf = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(self.certificate.subject)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - certs.SKEW)
            .not_valid_after(now + datetime.timedelta(days=certs.LEAF_DAYS))
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([certs.general_name(host) for host in hosts]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return certs.Identity(certs.certificate_pem(leaf), certs.key_pem(key)).pem


class DynamicCertificate:
    """The certificate of a server that answers to any name: each new one is added before the handshake asks for it.

    Names come with the handshake (SNI); addresses don't, so whoever is dialled by one is told of it with `admit`.
    """

    def __init__(self, authority: Authority, name: str, hosts: Sequence[str], clock: Clock) -> None:
        self._authority = authority
        self._name = name
        self._clock = clock
        self._fixed = tuple(hosts)
        self._more: dict[str, None] = {}
        self._current = authority.context(name, self._fixed, clock)
        self.context = authority.context(name, self._fixed, clock)
        self.context.sni_callback = self._choose

    def admit(self, host: str) -> None:
        """The server is called by this name or address, too. Names that can't stand in a certificate are left out."""
        if host in self._fixed or host in self._more or not _nameable(host):
            return
        self._more[host] = None
        while len(self._more) > _NAMES_KEPT:
            del self._more[next(iter(self._more))]
        self._current = self._authority.context(self._name, (*self._fixed, *self._more), self._clock)

    def _choose(self, handshake: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        del context
        if name:
            self.admit(name.lower())
        handshake.context = self._current


def _nameable(host: str) -> bool:
    try:
        certs.general_name(host)
    except ValueError:
        return False
    return host.isascii() and 0 < len(host) <= 253 and not any(each.isspace() for each in host)


def _valid(certificate: x509.Certificate, now: datetime.datetime) -> bool:
    """Valid already and for a while; not so where the clock was wrong when it was issued."""
    return certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc - _RENEW_BEFORE


def _now(clock: Clock) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(clock.now(), datetime.UTC)
