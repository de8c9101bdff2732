"""Certificates as Talos makes them: Ed25519 for its own API, EC P-256 for Kubernetes and etcd.

Talos names Ed25519 keys `ED25519 PRIVATE KEY`, a PEM label that OpenSSL does not know: `openssl_key` translates.
"""

from __future__ import annotations

import base64
import datetime
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from homeport.machinery.keyusage import key_usage

Key = ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

AUTHORITY_VALID: Final = datetime.timedelta(hours=87_600)
CLIENT_VALID: Final = datetime.timedelta(days=365)
ADMIN: Final = "os:admin"
# Valid from a little before they were made, for machines whose clocks are behind.
_SKEW: Final = datetime.timedelta(hours=1)
_ED25519_LABEL: Final = b"ED25519 PRIVATE KEY"
_GENERIC_LABEL: Final = b"PRIVATE KEY"


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its key, PEM. `key` is empty where only the certificate is known."""

    certificate: bytes
    key: bytes = field(default=b"", repr=False)

    def document(self) -> dict[str, str]:
        """As Talos' configuration and secrets spell it."""
        return {"crt": encoded(self.certificate), "key": encoded(self.key)}


def encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def make_authority(organization: str, now: datetime.datetime, *, ed25519_key: bool = False) -> KeyPair:
    """A self-signed CA for ten years. An empty organization gives an empty subject, as Talos' aggregator CA has."""
    key: Key = ed25519.Ed25519PrivateKey.generate() if ed25519_key else ec.generate_private_key(ec.SECP256R1())
    name = _organizations([organization] if organization else [])
    certificate = (
        _builder(name, name, key, now, now + AUTHORITY_VALID)
        .add_extension(key_usage(key_cert_sign=True), critical=True)
        .add_extension(_purposes(server=True, client=True), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, _digest(key))
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), key_pem(key))


def make_client(
    authority: KeyPair,
    now: datetime.datetime,
    roles: Sequence[str] = (ADMIN,),
    valid: datetime.timedelta = CLIENT_VALID,
) -> KeyPair:
    """A client of the Talos API: its roles are the organizations of its certificate."""
    return _leaf(authority, _organizations(roles), now, valid, _purposes(server=False, client=True), ())


def make_server(authority: KeyPair, hosts: Iterable[str], now: datetime.datetime, valid: datetime.timedelta) -> KeyPair:
    return _leaf(authority, _organizations(()), now, valid, _purposes(server=True, client=False), hosts)


def _leaf(
    authority: KeyPair,
    subject: x509.Name,
    now: datetime.datetime,
    valid: datetime.timedelta,
    purposes: x509.ExtendedKeyUsage,
    hosts: Iterable[str],
) -> KeyPair:
    issuer, signing = x509.load_pem_x509_certificate(authority.certificate), load_key(authority.key)
    key: Key = (
        ed25519.Ed25519PrivateKey.generate()
        if isinstance(signing, ed25519.Ed25519PrivateKey)
        else ec.generate_private_key(ec.SECP256R1())
    )
    identifier = issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    builder = (
        _builder(subject, issuer.subject, key, now, now + valid)
        .add_extension(key_usage(), critical=True)
        .add_extension(purposes, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
    )
    names = [_general_name(host) for host in hosts]
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=not list(subject))
    signed = builder.sign(signing, _digest(signing))
    return KeyPair(signed.public_bytes(serialization.Encoding.PEM), key_pem(key))


def key_pem(key: Key) -> bytes:
    """PEM with the label that Talos reads: by the kind of the key."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        der = key.private_bytes(
            serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return _pem(_ED25519_LABEL, der)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def openssl_key(pem: bytes) -> bytes:
    """The same key with a label that OpenSSL reads."""
    return pem.replace(_ED25519_LABEL, _GENERIC_LABEL)


@lru_cache(maxsize=256)
def load_key(pem: bytes) -> Key:
    """Raises ValueError for anything but the three kinds of keys that Talos reads.

    Kept, because OpenSSL takes up to a third of a second to check an RSA key.
    """
    try:
        key = serialization.load_pem_private_key(openssl_key(pem), password=None)
    except (TypeError, ValueError) as broken:
        raise ValueError("failed to parse PEM block") from broken
    if not isinstance(key, ed25519.Ed25519PrivateKey | ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise ValueError("unsupported key type")
    return key


def _pem(label: bytes, der: bytes) -> bytes:
    body = "\n".join(textwrap.wrap(base64.b64encode(der).decode(), 64)).encode()
    return b"-----BEGIN " + label + b"-----\n" + body + b"\n-----END " + label + b"-----\n"


def _digest(key: Key) -> hashes.SHA256 | None:
    return None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()


def _organizations(names: Sequence[str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in names])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, start: datetime.datetime, end: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - _SKEW)
        .not_valid_after(end)
    )


def _purposes(*, server: bool, client: bool) -> x509.ExtendedKeyUsage:
    wanted = [(server, ExtendedKeyUsageOID.SERVER_AUTH), (client, ExtendedKeyUsageOID.CLIENT_AUTH)]
    return x509.ExtendedKeyUsage([oid for asked, oid in wanted if asked])


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
