"""CertificateSigningRequest: what controllers of signers read of it. The API server sets who asked."""

from __future__ import annotations

from typing import Any

import msgspec

from homeport.api.meta import Model, Object, resource

GROUP = "certificates.k8s.io"


class CertificateSigningRequestSpec(Model):
    request: str = ""
    signer_name: str = ""
    username: str = ""
    groups: list[str] = []
    usages: list[str] = []
    expiration_seconds: int | None = None


class CertificateSigningRequestStatus(Model):
    conditions: list[dict[str, Any]] = []
    certificate: str = ""


@resource(GROUP, "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False)
class CertificateSigningRequest(Object):
    spec: CertificateSigningRequestSpec = msgspec.field(default_factory=CertificateSigningRequestSpec)
    status: CertificateSigningRequestStatus = msgspec.field(default_factory=CertificateSigningRequestStatus)
