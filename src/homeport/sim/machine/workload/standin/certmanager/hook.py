"""What cert-manager's validating webhook refuses."""

from __future__ import annotations

from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.object import duration
from homeport.sim.machine.workload.standin.certmanager.kind import CERTIFICATE, CLUSTER_ISSUER, ISSUER
from homeport.sim.machine.workload.standin.review import Store

_NAMES = ("commonName", "dnsNames", "uris", "ipAddresses", "emailAddresses", "otherNames", "literalSubject")
_ISSUERS = ("acme", "ca", "selfSigned", "vault", "venafi")
_LEAST_SECONDS = 3600.0


def check_review(store: Store, request: Json) -> str:
    """Why the request is refused; '' if it is not."""
    del store
    kind, spec = (request.get("kind") or {}).get("kind"), (request.get("object") or {}).get("spec") or {}
    if request.get("operation") not in ("CREATE", "UPDATE"):
        return ""
    if kind == CERTIFICATE.kind:
        return _certificate(spec)
    if kind in (ISSUER.kind, CLUSTER_ISSUER.kind):
        found = [each for each in _ISSUERS if each in spec]
        if not found:
            return "spec: Required value: at least one issuer must be configured"
        if len(found) > 1:
            return f"spec.{found[1]}: Forbidden: may not specify more than one issuer type"
    return ""


def _certificate(spec: Json) -> str:
    if not spec.get("secretName"):
        return "spec.secretName: Required value: must be specified"
    if not (spec.get("issuerRef") or {}).get("name"):
        return "spec.issuerRef.name: Required value: must be specified"
    if not any(spec.get(each) for each in _NAMES):
        return (
            'spec: Invalid value: "": at least one of commonName (from the commonName field or from a '
            "literalSubject), dnsNames, uriSANs, ipAddresses, emailSANs or otherNames must be set"
        )
    life = duration(spec.get("duration"), 90 * 24 * 3600)
    if life < _LEAST_SECONDS:
        return f"spec.duration: Invalid value: {spec['duration']}: certificate duration must be greater than 1h0m0s"
    if spec.get("renewBefore") and duration(spec["renewBefore"], 0) >= life:
        return (
            f"spec.renewBefore: Invalid value: {spec['renewBefore']}: certificate duration must be greater than "
            "renewBefore"
        )
    return ""
