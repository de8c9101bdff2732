"""CertificateSigningRequests: those of kubelets are approved by themselves, and whatever is approved gets signed."""

from __future__ import annotations

import base64
import datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from homeport.apiserver.auth.certificate import Issuer
from homeport.apiserver.auth.decision import Attributes
from homeport.apiserver.request import User
from homeport.runtime.clock import parse_time
from homeport.sim.machine.workload.kind import REQUEST, Json
from homeport.sim.machine.workload.view import View

KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
_SIGNERS = (KUBELET_CLIENT, "kubernetes.io/kube-apiserver-client", "kubernetes.io/kubelet-serving")
_YEAR_SECONDS = 365 * 24 * 3600
_KEPT_SECONDS = 3600.0  # requests that are done with are swept away after this time
_USAGES = {"client auth": ExtendedKeyUsageOID.CLIENT_AUTH, "server auth": ExtendedKeyUsageOID.SERVER_AUTH}


async def settle_requests(view: View) -> None:
    for request in view.all(REQUEST):
        status = request.get("status") or {}
        verdicts = {each["type"] for each in status.get("conditions") or ()}
        if status.get("certificate") or "Denied" in verdicts:
            await _sweep(view, request)
        elif "Approved" not in verdicts:
            if _approved_by_itself(view, request):
                await _approve(view, request)
        elif request["spec"]["signerName"] in _SIGNERS and "Failed" not in verdicts:
            await _sign(view, request)


def _approved_by_itself(view: View, request: Json) -> bool:
    """The requests of new nodes and the renewals of known ones, if their users have the right to that."""
    spec = request["spec"]
    if spec["signerName"] != KUBELET_CLIENT:
        return False
    user = User(spec.get("username", ""), tuple(spec.get("groups") or ()))
    own = user.name.startswith("system:node:")
    asked = Attributes(
        user,
        "create",
        "certificates.k8s.io",
        "v1",
        "certificatesigningrequests",
        "selfnodeclient" if own else "nodeclient",
    )
    return view.server.rbac.authorize(asked).allowed


async def _approve(view: View, request: Json) -> None:
    condition = {
        "type": "Approved",
        "status": "True",
        "reason": "AutoApproved",
        "message": "Auto approving kubelet client certificate after SubjectAccessReview.",
        "lastUpdateTime": view.stamp,
        "lastTransitionTime": view.stamp,
    }
    await view.patch(REQUEST, request, {"status": {"conditions": [condition]}}, subresource="approval")


async def _sign(view: View, request: Json) -> None:
    csr = x509.load_pem_x509_csr(base64.b64decode(request["spec"]["request"]))
    signed = sign_request(view.server.pki.issuer, csr, request["spec"], view.now)
    certificate = base64.b64encode(signed).decode()
    await view.patch(REQUEST, request, {"status": {"certificate": certificate}}, subresource="status")


def sign_request(issuer: Issuer, csr: x509.CertificateSigningRequest, spec: Json, now: float) -> bytes:
    """The certificate, PEM: subject, names and usages as they were asked for."""
    begin = datetime.datetime.fromtimestamp(now, datetime.UTC)
    seconds = min(int(spec.get("expirationSeconds") or _YEAR_SECONDS), _YEAR_SECONDS)
    usages = [_USAGES[each] for each in spec.get("usages") or () if each in _USAGES]
    builder = (
        x509.CertificateBuilder()
        .subject_name(csr.subject)
        .issuer_name(issuer.certificate.subject)
        .public_key(csr.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - datetime.timedelta(minutes=5))
        .not_valid_after(begin + datetime.timedelta(seconds=seconds))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(issuer.identifier, critical=False)
    )
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    try:
        names = csr.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        builder = builder.add_extension(names.value, critical=False)
    except x509.ExtensionNotFound:
        pass
    return builder.sign(issuer.key, hashes.SHA256()).public_bytes(Encoding.PEM)


async def _sweep(view: View, request: Json) -> None:
    left = parse_time(request["metadata"]["creationTimestamp"]) + _KEPT_SECONDS - view.now
    if left <= 0:
        await view.delete(REQUEST, request)
    else:
        view.later(left + 1)
