"""The keys and authorities of a workload cluster, kept in Secrets that users may also bring themselves.

    <cluster>-ca                     the cluster's authority
    <cluster>-etcd                   etcd's authority; with an external etcd its certificate alone, brought by the user
    <cluster>-proxy                  the front proxy's authority
    <cluster>-sa                     signs ServiceAccount tokens: tls.crt is the public key
    <cluster>-apiserver-etcd-client  external etcd alone, brought by the user

What is there is used as it is, after a look whether it can work; what is missing is made.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import datetime
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth import certificate as certs
from homeport.apiserver.auth.certificate import Issuer, PrivateKey
from homeport.capi.name import CLUSTER_NAME_LABEL, SECRET_TYPE
from homeport.client.errors import AlreadyExists, NotFound
from homeport.client.protocol import Client, Key, Write

SECRET = Resource("", "v1", "Secret", "secrets")

Purpose = Literal["ca", "etcd", "proxy", "sa", "apiserver-etcd-client"]
GENERATED: tuple[Purpose, ...] = ("ca", "etcd", "proxy", "sa")
EXTERNAL_ETCD: tuple[Purpose, ...] = ("ca", "proxy", "sa", "etcd", "apiserver-etcd-client")
Algorithm = Literal["", "ECDSA-P256", "ECDSA-P384", "RSA-2048", "RSA-3072", "RSA-4096"]

_COMMON_NAMES = {"ca": "kubernetes", "etcd": "etcd-ca", "proxy": "front-proxy-ca"}
_DIRECTORY = "/etc/kubernetes/pki"
_FILES: dict[Purpose, tuple[str, str]] = {
    "ca": ("ca.crt", "ca.key"),
    "etcd": ("etcd/ca.crt", "etcd/ca.key"),
    "proxy": ("front-proxy-ca.crt", "front-proxy-ca.key"),
    "sa": ("sa.pub", "sa.key"),
}


# Nothing can replace the CA of a cluster once it is used, so a clock that was wrong when it was made must not matter.
_SKEW = datetime.timedelta(days=7)


class PkiError(Exception):
    """A Secret that can't be used. Names it, the key in it, and what to do."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """PEM. `key` may be empty where only the certificate is known."""

    certificate: bytes
    key: bytes = field(default=b"", repr=False)

    def issuer(self) -> Issuer:
        """To sign with. The pair must have passed `check`."""
        return Issuer(x509.load_pem_x509_certificate(self.certificate), certs.load_private_key(self.key))


Certificates = Mapping[Purpose, KeyPair]


def secret_name(cluster: str, purpose: str) -> str:
    return f"{cluster}-{purpose}"


def files(purpose: Purpose, directory: str = "") -> tuple[str, str]:
    """Where kubeadm looks for certificate and key. Not for the client certificate: the user says where that is."""
    certificate, key = _FILES[purpose]
    where = (directory or _DIRECTORY).rstrip("/")
    return f"{where}/{certificate}", f"{where}/{key}"


def moment(now: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(now, datetime.UTC)


# -- making ----------------------------------------------------------------------------------------------------------


async def generate(
    purposes: Iterable[Purpose], *, now: float, algorithm: Algorithm = "", days: int = certs.CA_DAYS
) -> dict[Purpose, KeyPair]:
    """New pairs. EC keys take less than a millisecond; RSA keys are made in a thread, for they take a tenth second."""
    wanted = tuple(purposes)
    if algorithm.startswith("RSA"):
        return await asyncio.to_thread(_generate, wanted, now, algorithm, days)
    return _generate(wanted, now, algorithm, days)


def _generate(purposes: Sequence[Purpose], now: float, algorithm: Algorithm, days: int) -> dict[Purpose, KeyPair]:
    made: dict[Purpose, KeyPair] = {}
    for purpose in purposes:
        key = _make_key(algorithm)
        if purpose == "sa":
            certificate = _public_pem(key)
        else:
            signed = certs.sign_ca(key, moment(now), days=days, common_name=_COMMON_NAMES[purpose], skew=_SKEW)
            certificate = certs.certificate_pem(signed)
        made[purpose] = KeyPair(certificate, certs.key_pem(key))
    return made


def _make_key(algorithm: Algorithm) -> PrivateKey:
    kind, _, size = algorithm.partition("-")
    if kind == "RSA":
        return rsa.generate_private_key(public_exponent=65537, key_size=int(size))
    return ec.generate_private_key(ec.SECP384R1() if size == "P384" else ec.SECP256R1())


def _public_pem(key: PrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def client_certificate(
    ca: KeyPair, name: str, groups: Sequence[str] = (), *, now: float, days: int = certs.LEAF_DAYS
) -> KeyPair:
    """A client's: `name` becomes the user, `groups` its groups."""
    made = ca.issuer().client(name, groups, moment(now), days=days)
    return KeyPair(made.certificate, made.key)


def hashes(certificate: bytes) -> list[str]:
    """Of each certificate's public key, as `kubeadm join --discovery-token-ca-cert-hash` takes them."""
    return [
        "sha256:" + hashlib.sha256(_spki(each)).hexdigest() for each in x509.load_pem_x509_certificates(certificate)
    ]


def _spki(certificate: x509.Certificate) -> bytes:
    return certificate.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


def expiry(certificate: bytes) -> float:
    """Seconds since the epoch."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()


# -- Secrets ---------------------------------------------------------------------------------------------------------


def secret_data(secret: Mapping[str, Any], name: str) -> bytes:
    """A value of a Secret; b"" when it is not there. Raises PkiError for what is not base64."""
    text = (secret.get("data") or {}).get(name) or ""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        where = (secret.get("metadata") or {}).get("name", "")
        raise PkiError(f"Secret {where}: data[{name}] is not base64") from None


def as_secret(cluster: Key, purpose: Purpose, pair: KeyPair, owner: Mapping[str, Any] | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "name": secret_name(cluster.name, purpose),
        "namespace": cluster.namespace,
        "labels": {CLUSTER_NAME_LABEL: cluster.name},
    }
    if owner is not None:
        metadata["ownerReferences"] = [dict(owner)]
    data = {"tls.crt": pair.certificate, "tls.key": pair.key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": SECRET_TYPE,
        "data": {name: base64.b64encode(value).decode() for name, value in data.items() if value},
    }


def parse(secret: Mapping[str, Any], purpose: Purpose, *, now: float, external: bool = False) -> KeyPair:
    """What a Secret holds, looked at. `external`: it is about an etcd that is not ours. Raises PkiError."""
    pair = KeyPair(secret_data(secret, "tls.crt"), secret_data(secret, "tls.key"))
    where = f"Secret {(secret.get('metadata') or {}).get('name', '')}"
    check(pair, purpose, where=where, now=now, external=external)
    return pair


async def lookup(
    client: Client, cluster: Key, purposes: Sequence[Purpose] = GENERATED, *, now: float
) -> dict[Purpose, KeyPair]:
    """Those that are there, looked at."""
    external = "apiserver-etcd-client" in purposes
    found = await _secrets(client, cluster, purposes)
    return {
        purpose: parse(found[name], purpose, now=now, external=external)
        for purpose in purposes
        if (name := secret_name(cluster.name, purpose)) in found
    }


async def _secrets(client: Client, cluster: Key, purposes: Iterable[Purpose]) -> dict[str, Unstructured]:
    """Those that are there. By name: for a list by label the server looks at every Secret of the namespace, so that
    each further cluster would cost more than the one before; and a user's own may lack the label."""
    keys = [Key(cluster.namespace, secret_name(cluster.name, purpose)) for purpose in purposes]
    found = await asyncio.gather(*(_get(client, key) for key in keys))
    return {each.name: each for each in found if each is not None}


async def _get(client: Client, key: Key) -> Unstructured | None:
    try:
        return await client.get(SECRET, key)
    except NotFound:
        return None


async def ensure(
    client: Client,
    cluster: Key,
    *,
    owner: Mapping[str, Any] | None,
    now: float,
    options: Write,
    algorithm: Algorithm = "",
    days: int = certs.CA_DAYS,
    external_etcd: bool = False,
) -> dict[Purpose, KeyPair]:
    """All that the cluster needs: looked up, and made where missing. Safe to repeat, also by two at once.

    Raises PkiError when something that a user brought can't work, or that a user has to bring is missing.
    """
    external: tuple[Purpose, ...] = ("etcd", "apiserver-etcd-client") if external_etcd else ()
    ours = [purpose for purpose in GENERATED if purpose not in external]
    found = await _secrets(client, cluster, (*ours, *external))
    missing = [purpose for purpose in ours if secret_name(cluster.name, purpose) not in found]
    made = await generate(missing, now=now, algorithm=algorithm, days=days)
    written = await asyncio.gather(
        *(_create(client, cluster, purpose, pair, owner, options) for purpose, pair in made.items())
    )
    found |= {each.name: each for each in written}
    for purpose in external:
        name = secret_name(cluster.name, purpose)
        if name not in found:
            found[name] = await _brought(client, Key(cluster.namespace, name))
    return {
        purpose: parse(found[secret_name(cluster.name, purpose)], purpose, now=now, external=external_etcd)
        for purpose in (*ours, *external)
    }


async def _create(
    client: Client, cluster: Key, purpose: Purpose, pair: KeyPair, owner: Mapping[str, Any] | None, options: Write
) -> Unstructured:
    secret = as_secret(cluster, purpose, pair, owner)
    try:
        return await client.create(secret, options, kind=SECRET)
    except AlreadyExists:  # a user's own without the label, or somebody was faster: what is there counts
        return await client.get(SECRET, Key(cluster.namespace, secret["metadata"]["name"]))


async def _brought(client: Client, key: Key) -> Unstructured:
    try:
        return await client.get(SECRET, key)
    except NotFound:
        raise PkiError(
            f"Secret {key} is missing: with an external etcd you must create it, with tls.crt"
            + ("" if key.name.endswith("-etcd") else " and tls.key")
        ) from None


# -- looking at what users bring -------------------------------------------------------------------------------------


def check(pair: KeyPair, purpose: Purpose, *, where: str, now: float, external: bool = False) -> None:
    """Raises PkiError, with `where` in front, when the pair can't do its work."""
    if not pair.certificate:
        raise PkiError(f"{where}: data[tls.crt] is missing: add the {_what(purpose)} in PEM")
    key_needed = not (external and purpose == "etcd")
    if key_needed and not pair.key:
        raise PkiError(f"{where}: data[tls.key] is missing: add the private key that belongs to tls.crt")
    key = _private(pair.key, where) if pair.key else None
    if purpose == "sa":
        _check_public(pair.certificate, key, where)
        return
    chain = _chain(pair.certificate, where)
    if key is not None and not certs.same_key(key, chain[0]):
        raise PkiError(f"{where}: tls.key does not belong to the first certificate of tls.crt: use a matching pair")
    _check_dates(chain[0], where, now)
    if purpose != "apiserver-etcd-client":
        _check_authority(chain, where)


def _what(purpose: Purpose) -> str:
    return "public key" if purpose == "sa" else "certificate"


def _private(pem: bytes, where: str) -> PrivateKey:
    try:
        return certs.load_private_key(pem)
    except (ValueError, TypeError):
        raise PkiError(
            f"{where}: tls.key is not an unencrypted RSA or EC (P-256, P-384) private key in PEM format: replace it"
        ) from None


def _check_public(pem: bytes, key: PrivateKey | None, where: str) -> None:
    try:
        public = serialization.load_pem_public_key(pem)
    except (ValueError, TypeError):
        raise PkiError(
            f"{where}: tls.crt is not a public key in PEM format: use the output of `openssl pkey -pubout`"
        ) from None
    if key is not None and key.public_key() != public:
        raise PkiError(f"{where}: tls.key does not belong to the public key in tls.crt: use a matching pair")


def _chain(pem: bytes, where: str) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise PkiError(f"{where}: tls.crt contains no valid PEM certificate: replace it") from None


def _check_dates(certificate: x509.Certificate, where: str, now: float) -> None:
    if certificate.not_valid_after_utc <= moment(now):
        raise PkiError(f"{where}: the certificate expired on {certificate.not_valid_after_utc:%Y-%m-%d}: renew it")
    if certificate.not_valid_before_utc > moment(now):
        raise PkiError(
            f"{where}: the certificate is valid from {certificate.not_valid_before_utc:%Y-%m-%d} only: check the "
            "clock of the machine that runs the controllers"
        )


def _check_authority(chain: Sequence[x509.Certificate], where: str) -> None:
    """The first is the one that signs; those after it lead to its root."""
    try:
        constraints = chain[0].extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        constraints = None
    if constraints is None or not constraints.ca:
        raise PkiError(
            f"{where}: the certificate is not a CA certificate (CA is not true in its basic constraints): replace it"
        )
    # A root by itself, or several to trust while one replaces the other. One that is not a root needs its issuer.
    if len(chain) > 1 and chain[0].issuer != chain[0].subject and not any(_issued(chain[0], up) for up in chain[1:]):
        raise PkiError(
            f"{where}: none of the other certificates of tls.crt issued the first one: add the issuer, or remove the "
            "others"
        )


def _issued(certificate: x509.Certificate, by: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(by)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
