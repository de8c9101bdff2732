"""All secrets of a Talos cluster, made once: every machine configuration and client certificate comes from them.

Written as `talosctl gen secrets` writes them, so that talosctl can go on with a cluster that Homeport made.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa

from homeport.machinery import yaml
from homeport.machinery.talos.certificate import KeyPair, encoded, key_pem, load_key, make_authority

_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_RANDOM_BYTES: Final = 32
_SERVICE_ACCOUNT_BITS: Final = 4096
_AUTHORITIES: Final = {"etcd": "etcd", "k8s": "kubernetes", "k8saggregator": "aggregator", "os": "os"}


class BundleError(ValueError):
    """A secrets bundle that can't be used: names the field."""


@dataclass(frozen=True, slots=True)
class Bundle:
    cluster_id: str
    cluster_secret: str = field(repr=False)
    bootstrap_token: str = field(repr=False)
    secretbox_key: str = field(repr=False)
    trustd_token: str = field(repr=False)
    etcd: KeyPair
    kubernetes: KeyPair
    aggregator: KeyPair
    service_account: bytes = field(repr=False)  # the private key, PEM
    os: KeyPair


def make_bundle(now: datetime.datetime) -> Bundle:
    """New secrets. The RSA key takes a second or two: call it in a thread."""
    account = rsa.generate_private_key(public_exponent=65537, key_size=_SERVICE_ACCOUNT_BITS)
    return Bundle(
        cluster_id=base64.urlsafe_b64encode(secrets.token_bytes(_RANDOM_BYTES)).decode(),
        cluster_secret=_random(),
        bootstrap_token=_token(),
        secretbox_key=_random(),
        trustd_token=_token(),
        etcd=make_authority("etcd", now),
        kubernetes=make_authority("kubernetes", now),
        aggregator=make_authority("", now),
        service_account=key_pem(account),
        os=make_authority("talos", now, ed25519_key=True),
    )


def render_bundle(bundle: Bundle) -> str:
    certificates: dict[str, Any] = {name: getattr(bundle, own).document() for name, own in _AUTHORITIES.items()}
    certificates["k8sserviceaccount"] = {"key": encoded(bundle.service_account)}
    return yaml.dump(
        {
            "cluster": {"id": bundle.cluster_id, "secret": bundle.cluster_secret},
            "secrets": {
                "bootstraptoken": bundle.bootstrap_token,
                "secretboxencryptionsecret": bundle.secretbox_key,
            },
            "trustdinfo": {"token": bundle.trustd_token},
            "certs": certificates,
        }
    )


def parse_bundle(text: str | bytes) -> Bundle:
    """Raises BundleError for what is missing or broken."""
    try:
        document = yaml.load(text)
    except yaml.YamlError as broken:
        raise BundleError(f"not valid YAML: {broken}") from broken
    if not isinstance(document, dict):
        raise BundleError("expected an object with the fields cluster, secrets, trustdinfo and certs")
    pairs = {own: _read_pair(document, f"certs.{name}") for name, own in _AUTHORITIES.items()}
    return Bundle(
        cluster_id=_text(document, "cluster.id"),
        cluster_secret=_text(document, "cluster.secret"),
        bootstrap_token=_text(document, "secrets.bootstraptoken"),
        secretbox_key=_text(document, "secrets.secretboxencryptionsecret"),
        trustd_token=_text(document, "trustdinfo.token"),
        service_account=_read_key(document, "certs.k8sserviceaccount.key"),
        **pairs,
    )


def _read_pair(document: Mapping[str, Any], path: str) -> KeyPair:
    certificate = _decoded(document, f"{path}.crt")
    try:
        x509.load_pem_x509_certificate(certificate)
    except ValueError as broken:
        raise BundleError(f"{path}.crt is not a PEM certificate") from broken
    return KeyPair(certificate, _read_key(document, f"{path}.key"))


def _read_key(document: Mapping[str, Any], path: str) -> bytes:
    found = _decoded(document, path)
    try:
        load_key(found)
    except ValueError as broken:
        raise BundleError(f"{path} is not a PEM private key") from broken
    return found


def _decoded(document: Mapping[str, Any], path: str) -> bytes:
    try:
        return base64.b64decode(_text(document, path), validate=True)
    except binascii.Error as broken:
        raise BundleError(f"{path} is not valid base64") from broken


def _text(document: Mapping[str, Any], path: str) -> str:
    found: Any = document
    for name in path.split("."):
        found = found.get(name) if isinstance(found, Mapping) else None
    if not isinstance(found, str) or not found:
        raise BundleError(f"{path} is required")
    return found


def _random() -> str:
    return encoded(secrets.token_bytes(_RANDOM_BYTES))


def _token() -> str:
    first, second = ("".join(secrets.choice(_LETTERS) for _ in range(size)) for size in (6, 16))
    return f"{first}.{second}"
