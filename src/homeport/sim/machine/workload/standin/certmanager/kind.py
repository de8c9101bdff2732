"""cert-manager's own kinds."""

from __future__ import annotations

from typing import Final

from homeport.api.meta import Resource

GROUP: Final = "cert-manager.io"
CERTIFICATE: Final = Resource(GROUP, "v1", "Certificate", "certificates")
REQUEST: Final = Resource(GROUP, "v1", "CertificateRequest", "certificaterequests")
ISSUER: Final = Resource(GROUP, "v1", "Issuer", "issuers")
CLUSTER_ISSUER: Final = Resource(GROUP, "v1", "ClusterIssuer", "clusterissuers", namespaced=False)
KINDS: Final = (CERTIFICATE, REQUEST, ISSUER, CLUSTER_ISSUER)

CONTROLLER: Final = ("cert-manager-controller",)
WEBHOOK: Final = ("cert-manager-webhook",)
INJECTOR: Final = ("cert-manager-cainjector",)
