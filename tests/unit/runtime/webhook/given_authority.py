"""A Secret as cert-manager writes it for a Certificate with isCA: true."""

from __future__ import annotations

import base64

import trustme


def given_data(root: trustme.CA, child: trustme.CA, **change: bytes) -> dict[str, str]:
    raw = {"tls.crt": child.cert_pem.bytes(), "tls.key": child.private_key_pem.bytes(), "ca.crt": root.cert_pem.bytes()}
    return {name: base64.b64encode(content).decode() for name, content in {**raw, **change}.items()}
