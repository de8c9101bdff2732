"""X.509: making a CA and the certificates it signs. Our own keys are EC P-256; a CA that is given may have another."""

from __future__ import annotations

import datetime
import os
import ssl
import tempfile
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from homeport.machinery.keyusage import key_usage

CA_DAYS = 3650
LEAF_DAYS = 365
# Certificates are valid from a little before they were made, for clients whose clocks are behind.
SKEW = datetime.timedelta(hours=1)

# Said of every name longer than 64 characters that is read or written, and nobody could do anything about it.
warnings.filterwarnings("ignore", message="Attribute's length must be", category=UserWarning)

EcKey = ec.EllipticCurvePrivateKey
PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, PEM."""

    certificate: bytes
    key: bytes

    @property
    def pem(self) -> bytes:
        """Both in one text, as `ssl.SSLContext.load_cert_chain` reads it from one file."""
        return self.key + self.certificate


def load_pair(context: ssl.SSLContext, pem: bytes) -> None:
    """Key and certificate from memory. OpenSSL reads them from files alone: this one is in memory where there is such a
    thing, and gone again at once."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile(prefix="homeport-") as file:
            file.write(pem)
            file.flush()
            context.load_cert_chain(file.name)
        return
    descriptor = os.memfd_create("homeport")
    try:
        os.write(descriptor, pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def make_key() -> EcKey:
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def load_key(pem: bytes) -> EcKey:
    key = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise ValueError("not an EC P-256 key")
    return key


def load_private_key(pem: bytes) -> PrivateKey:
    """A key that somebody else made: RSA, or EC on a curve that tokens can be signed with. Raises ValueError."""
    key = serialization.load_pem_private_key(pem, password=None)
    if isinstance(key, rsa.RSAPrivateKey):
        return key
    if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1 | ec.SECP384R1):
        return key
    raise ValueError("not an RSA, EC P-256 or EC P-384 key")


def same_key(key: PrivateKey, certificate: x509.Certificate) -> bool:
    return key.public_key() == certificate.public_key()


def subject_name(name: str, organizations: Sequence[str] = ()) -> x509.Name:
    """A user and its groups. Names may be longer than the 64 characters of X.520: those of Nodes often are."""
    named = [(NameOID.ORGANIZATION_NAME, each) for each in organizations] + [(NameOID.COMMON_NAME, name)]
    return x509.Name([x509.NameAttribute(oid, text, _validate=False) for oid, text in named])


def sign_ca(
    key: PrivateKey,
    now: datetime.datetime,
    *,
    days: int = CA_DAYS,
    common_name: str = "homeport-ca",
    skew: datetime.timedelta = SKEW,
) -> x509.Certificate:
    """Valid since `skew` before `now`: the clocks of others may be behind ours by that much."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
    public = key.public_key()
    return (
        _builder(name, name, public, now, days, skew)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(key_usage(key_cert_sign=True, crl_sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        .sign(key, hashes.SHA256())
    )


@dataclass(frozen=True, slots=True)
class Issuer:
    """A CA that can sign."""

    certificate: x509.Certificate
    key: PrivateKey

    @property
    def identifier(self) -> x509.AuthorityKeyIdentifier:
        """As the CA calls its own key: there are several ways to make a name of one, and verifiers compare names."""
        try:
            found = self.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier)
        except x509.ExtensionNotFound:
            return x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(found.value)

    def server(
        self,
        hosts: Iterable[str],
        now: datetime.datetime,
        *,
        days: int = LEAF_DAYS,
        skew: datetime.timedelta = SKEW,
    ) -> Identity:
        extra = x509.SubjectAlternativeName([general_name(host) for host in hosts])
        return self._leaf("kube-apiserver", (), [ExtendedKeyUsageOID.SERVER_AUTH], now, days, extra, skew)

    def peer(self, name: str, hosts: Iterable[str], now: datetime.datetime, *, days: int = LEAF_DAYS) -> Identity:
        """Of a server that is also a client of its peers, as members of etcd are."""
        extra = x509.SubjectAlternativeName([general_name(host) for host in hosts])
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        return self._leaf(name, (), usages, now, days, extra)

    def client(
        self, name: str, organizations: Sequence[str], now: datetime.datetime, *, days: int = LEAF_DAYS
    ) -> Identity:
        return self._leaf(name, organizations, [ExtendedKeyUsageOID.CLIENT_AUTH], now, days, None)

    def _leaf(
        self,
        name: str,
        organizations: Sequence[str],
        usages: Sequence[x509.ObjectIdentifier],
        now: datetime.datetime,
        days: int,
        alternative: x509.SubjectAlternativeName | None,
        skew: datetime.timedelta = SKEW,
    ) -> Identity:
        key = make_key()
        subject = subject_name(name, organizations)
        builder = (
            _builder(subject, self.certificate.subject, key.public_key(), now, days, skew)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(key_usage(), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(self.identifier, critical=False)
        )
        if alternative is not None:
            builder = builder.add_extension(alternative, critical=False)
        return Identity(certificate_pem(builder.sign(self.key, hashes.SHA256())), key_pem(key))


def general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def host_names(certificate: x509.Certificate) -> frozenset[str]:
    """The names and addresses a server certificate is good for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = {str(address) for address in names.get_values_for_type(x509.IPAddress)}
    return frozenset(addresses | set(names.get_values_for_type(x509.DNSName)))


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public: ec.EllipticCurvePublicKey | rsa.RSAPublicKey,
    now: datetime.datetime,
    days: int,
    skew: datetime.timedelta = SKEW,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - skew)
        .not_valid_after(now + datetime.timedelta(days=days))
    )
