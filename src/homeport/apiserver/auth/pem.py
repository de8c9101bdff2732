"""PEM blocks as certificate requests and certificates use them.

One reader for everybody who looks at the same text: a block that one of them checks is the block that the other signs.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from cryptography import x509

_BLOCK = re.compile(rb"^-----BEGIN ([^\n]*?)-----[ \t\r]*\n(.*?)^-----END \1-----[ \t\r]*$", re.M | re.S)
_HEADER = re.compile(rb"^[^\n:]+:[^\n]*\n", re.M)


class Block(NamedTuple):
    label: str
    content: bytes
    headers: bool


def pem_blocks(text: bytes) -> Iterator[Block]:
    """Every block that can be decoded; what stands around blocks, and broken ones, is passed over."""
    for found in _BLOCK.finditer(text):
        body, headers = found[2], False
        while header := _HEADER.match(body):
            body, headers = body[header.end() :], True
        try:
            content = base64.b64decode(b"".join(body.split()), validate=True)
        except binascii.Error:
            continue
        yield Block(found[1].decode(errors="replace"), content, headers)


def parse_request(text: bytes) -> x509.CertificateSigningRequest:
    """The certificate request in the first block. Raises ValueError with what is wrong with it."""
    block = next(pem_blocks(text), None)
    if block is None or block.label != "CERTIFICATE REQUEST":
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    from cryptography import x509  # a tenth of a second that most servers never need
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        request = x509.load_der_x509_csr(block.content)
        signed = request.is_signature_valid
        _ = request.extensions  # they are decoded when they are first asked for
    except (UnsupportedAlgorithm, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise ValueError(str(error)) from error
    if not signed:
        raise ValueError("the signature does not match the public key in the request")
    return request


def certificate_error(text: bytes) -> str | None:
    """What is wrong with a chain of certificates, or None."""
    from cryptography import x509

    count = 0
    for block in pem_blocks(text):
        if block.label != "CERTIFICATE":
            return f'only CERTIFICATE PEM blocks are allowed, found "{block.label}"'
        if block.headers:
            return "no PEM block headers are permitted"
        try:
            x509.load_der_x509_certificate(block.content)
        except ValueError as error:
            return f"x509: malformed certificate: {error}"
        count += 1
    return None if count else "must contain at least one CERTIFICATE PEM block"
