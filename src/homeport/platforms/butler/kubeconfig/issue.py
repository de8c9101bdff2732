"""Certificates for members of a team: who gets one, and for how long. Pure."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Iterable

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from homeport.api.butler.v1alpha1 import GROUP
from homeport.api.certificates.v1 import CertificateSigningRequestSpec
from homeport.apiserver.auth.certificate import Issuer, subject_name
from homeport.apiserver.auth.pem import parse_request
from homeport.client.protocol import Key

SIGNER = f"{GROUP}/"
DEFAULT_SECONDS = 8 * 3600
LONGEST_SECONDS = 24 * 3600
USAGES = ("digital signature", "client auth")
_ALLOWED = {*USAGES, "key encipherment"}


class RefusedRequest(Exception):
    """The request is denied; the text says why and what to do."""


def signer_name(tenant: Key) -> str:
    return f"{SIGNER}{tenant.namespace}.{tenant.name}"


def tenant_of(signer: str) -> Key | None:
    """None: the request is for another signer."""
    if not signer.startswith(SIGNER):
        return None
    namespace, dot, name = signer.removeprefix(SIGNER).partition(".")
    return Key(namespace, name) if dot and namespace and name else None


def check_request(spec: CertificateSigningRequestSpec) -> x509.CertificateSigningRequest:
    """Raises RefusedRequest."""
    try:
        csr = parse_request(base64.b64decode(spec.request))
    except ValueError as error:
        raise RefusedRequest(f"spec.request is not a certificate request: {error}") from None
    if not csr.is_signature_valid:
        raise RefusedRequest("spec.request is not signed with its own key")
    names = [str(each.value) for each in csr.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    if names != [spec.username]:
        shown = ", ".join(names) or "none"
        raise RefusedRequest(f'the common name of the request is "{shown}", and you are "{spec.username}"')
    if spec.username.startswith("system:"):
        raise RefusedRequest(f'"{spec.username}" is a name of Kubernetes itself: ask as a person')
    if odd := sorted(set(spec.usages) - _ALLOWED):
        raise RefusedRequest(f'usage "{odd[0]}" is not allowed: use {", ".join(USAGES)}')
    if "client auth" not in spec.usages:
        raise RefusedRequest("spec.usages must contain client auth")
    return csr


def sign(
    csr: x509.CertificateSigningRequest,
    spec: CertificateSigningRequestSpec,
    groups: Iterable[str],
    issuer: Issuer,
    now: float,
) -> tuple[bytes, datetime.datetime]:
    """The certificate as PEM, and when it expires. The subject is the one of the API server's record, not of the
    request."""
    begin = datetime.datetime.fromtimestamp(now, datetime.UTC)
    seconds = min(spec.expiration_seconds or DEFAULT_SECONDS, LONGEST_SECONDS)
    end = min(begin + datetime.timedelta(seconds=seconds), issuer.certificate.not_valid_after_utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject_name(spec.username, list(groups)))
        .issuer_name(issuer.certificate.subject)
        .public_key(csr.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - datetime.timedelta(minutes=5))
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(issuer.identifier, critical=False)
    )
    return builder.sign(issuer.key, hashes.SHA256()).public_bytes(Encoding.PEM), end
