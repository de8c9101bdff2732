"""What the key of a certificate may be used for."""

from __future__ import annotations

from cryptography import x509


def key_usage(
    *,
    digital_signature: bool = True,
    content_commitment: bool = False,
    key_encipherment: bool = False,
    data_encipherment: bool = False,
    key_agreement: bool = False,
    key_cert_sign: bool = False,
    crl_sign: bool = False,
) -> x509.KeyUsage:
    """The extension with the usages that are named, and a signature unless that is denied."""
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=content_commitment,
        key_encipherment=key_encipherment,
        data_encipherment=data_encipherment,
        key_agreement=key_agreement,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )
