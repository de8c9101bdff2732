"""Keys, requests and certificates as cert-manager makes them."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from homeport.machinery.keyusage import key_usage
from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.object import duration

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

DEFAULT_SECONDS = 90 * 24 * 3600.0
_CURVES: dict[int, type[ec.EllipticCurve]] = {256: ec.SECP256R1, 384: ec.SECP384R1, 521: ec.SECP521R1}
_EXTENDED = {
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
}
_SUBJECT = (
    ("organizations", NameOID.ORGANIZATION_NAME),
    ("countries", NameOID.COUNTRY_NAME),
    ("organizationalUnits", NameOID.ORGANIZATIONAL_UNIT_NAME),
    ("localities", NameOID.LOCALITY_NAME),
    ("provinces", NameOID.STATE_OR_PROVINCE_NAME),
)


@dataclass(frozen=True, slots=True)
class Authority:
    """What signs: a certificate with its key. None: each certificate signs itself."""

    certificate: x509.Certificate
    key: Key
    chain: bytes  # PEM: its own certificate, and those above it


def make_key(spec: Json) -> Key:
    wanted = spec.get("privateKey") or {}
    algorithm, size = wanted.get("algorithm") or "RSA", int(wanted.get("size") or 0)
    if algorithm == "ECDSA":
        return ec.generate_private_key(_CURVES.get(size, ec.SECP256R1)())
    if algorithm == "Ed25519":
        return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65537, size or 2048)


def key_pem(key: Key, spec: Json) -> bytes:
    encoding = (spec.get("privateKey") or {}).get("encoding") or "PKCS1"
    traditional = encoding == "PKCS1" and not isinstance(key, ed25519.Ed25519PrivateKey)
    form = serialization.PrivateFormat.TraditionalOpenSSL if traditional else serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


@lru_cache(maxsize=256)  # reading one checks it, which takes longer than all else in a pass
def load_key(pem: bytes) -> Key:
    """Raises ValueError."""
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, Key):
        raise ValueError("not an RSA, ECDSA or Ed25519 key")
    return key


def make_request(spec: Json, key: Key) -> bytes:
    """A signing request, PEM."""
    subject = [
        x509.NameAttribute(oid, str(value))
        for field, oid in _SUBJECT
        for value in (spec.get("subject") or {}).get(field) or ()
    ]
    if spec.get("commonName"):
        subject.append(x509.NameAttribute(NameOID.COMMON_NAME, str(spec["commonName"])))
    builder = x509.CertificateSigningRequestBuilder().subject_name(x509.Name(subject))
    if names := alternative_names(spec):
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=not subject)
    return builder.sign(key, _digest(key)).public_bytes(serialization.Encoding.PEM)


def alternative_names(spec: Json) -> list[x509.GeneralName]:
    return [
        *(x509.DNSName(each) for each in spec.get("dnsNames") or ()),
        *(x509.UniformResourceIdentifier(each) for each in spec.get("uris") or ()),
        *(x509.RFC822Name(each) for each in spec.get("emailAddresses") or ()),
        *(x509.IPAddress(ip_address(each)) for each in spec.get("ipAddresses") or ()),
    ]


def sign(request_pem: bytes, spec: Json, now: float, authority: Authority | None, own_key: Key | None) -> bytes:
    """The certificate that a CertificateRequest asks for, PEM. Without an authority, `own_key` signs.

    Raises ValueError for a request that can't be read.
    """
    request = x509.load_pem_x509_csr(request_pem)
    begin = datetime.datetime.fromtimestamp(int(now), datetime.UTC)
    end = begin + datetime.timedelta(seconds=duration(spec.get("duration"), DEFAULT_SECONDS))
    signer = authority.key if authority is not None else own_key
    if signer is None:
        raise ValueError("nothing to sign with")
    builder = (
        x509.CertificateBuilder()
        .subject_name(request.subject)
        .issuer_name(authority.certificate.subject if authority is not None else request.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=bool(spec.get("isCA")), path_length=None), critical=True)
        .add_extension(_usage(spec), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(request.public_key()), critical=False)
    )
    if authority is not None:
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
        builder = builder.add_extension(identifier, critical=False)
    extended = [_EXTENDED[each] for each in spec.get("usages") or () if each in _EXTENDED]
    if extended:
        builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
    for extension in request.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            builder = builder.add_extension(extension.value, critical=extension.critical)
    return builder.sign(signer, _digest(signer)).public_bytes(serialization.Encoding.PEM)


def _digest(key: Key) -> hashes.SHA256 | None:
    return None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()


def _usage(spec: Json) -> x509.KeyUsage:
    usages = set(spec.get("usages") or ("digital signature", "key encipherment"))
    authority = bool(spec.get("isCA"))
    return key_usage(
        digital_signature=bool(usages & {"digital signature", "signing"}),
        content_commitment="content commitment" in usages,
        key_encipherment="key encipherment" in usages,
        data_encipherment="data encipherment" in usages,
        key_agreement="key agreement" in usages,
        key_cert_sign=authority or "cert sign" in usages,
        crl_sign="crl sign" in usages,
    )


def read_authority(data: Mapping[str, str]) -> Authority:
    """From a Secret's data. Raises KeyError if a key is missing, ValueError if it can't be used."""
    chain = base64.b64decode(data["tls.crt"])
    certificate = x509.load_pem_x509_certificate(chain)
    key = load_key(base64.b64decode(data["tls.key"]))
    if key.public_key() != certificate.public_key():
        raise ValueError("the key does not belong to the certificate")
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        raise ValueError("certificate is not a CA") from None
    if not constraints.ca:
        raise ValueError("certificate is not a CA")
    return Authority(certificate, key, chain)
