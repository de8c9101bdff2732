"""CertificateSigningRequests: those of kubelets are approved automatically, and approved ones get signed."""

from __future__ import annotations

import base64
import datetime
from collections.abc import Callable

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from homeport.apiserver.auth.certificate import Issuer
from homeport.apiserver.auth.decision import Attributes
from homeport.apiserver.auth.pem import parse_request
from homeport.apiserver.request import User
from homeport.runtime.clock import parse_time
from homeport.sim.machine.workload.kind import REQUEST, Json
from homeport.sim.machine.workload.view import View

KUBELET_CLIENT = "kubernetes.io/kube-apiserver-client-kubelet"
_KUBELET_SERVING = "kubernetes.io/kubelet-serving"
_NODE = "system:node:"
_YEAR_SECONDS = 365 * 24 * 3600
_KEPT_SECONDS = 3600.0  # requests that are done with are swept away after this time
_USAGES = {"client auth": ExtendedKeyUsageOID.CLIENT_AUTH, "server auth": ExtendedKeyUsageOID.SERVER_AUTH}


async def settle_requests(view: View) -> None:
    for request in view.all(REQUEST):
        status = request.get("status") or {}
        verdicts = {each["type"] for each in status.get("conditions") or ()}
        if status.get("certificate") or verdicts & {"Denied", "Failed"}:
            await _sweep(view, request)
        elif "Approved" not in verdicts:
            if _approved_by_itself(view, request):
                await _approve(view, request)
        elif request["spec"]["signerName"] in _RULES:
            await _sign(view, request)


def _approved_by_itself(view: View, request: Json) -> bool:
    """The requests of new nodes and the renewals of known ones, if their users have the right to that.

    Whoever has a bootstrap token may ask: only the shape of the request keeps the answer a kubelet's own certificate.
    """
    spec = request["spec"]
    if spec["signerName"] != KUBELET_CLIENT:
        return False
    csr = _read(request)
    if kubelet_client_error(csr, spec) is not None:
        return False
    user = User(spec.get("username", ""), tuple(spec.get("groups") or ()))
    own = [user.name] == _values(csr.subject, NameOID.COMMON_NAME)
    return (own and _may(view, user, "selfnodeclient")) or _may(view, user, "nodeclient")


def _may(view: View, user: User, subresource: str) -> bool:
    asked = Attributes(user, "create", "certificates.k8s.io", "v1", "certificatesigningrequests", subresource)
    return view.server.rbac.authorize(asked).allowed


def _read(request: Json) -> x509.CertificateSigningRequest:
    return parse_request(base64.b64decode(request["spec"]["request"]))


def _values(name: x509.Name, oid: x509.ObjectIdentifier) -> list[str]:
    return [str(each.value) for each in name.get_attributes_for_oid(oid)]


def _alternatives(csr: x509.CertificateSigningRequest) -> list[x509.GeneralName]:
    try:
        return list(csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def _node_error(csr: x509.CertificateSigningRequest) -> str | None:
    if _values(csr.subject, NameOID.ORGANIZATION_NAME) != ["system:nodes"]:
        return "subject organization is not system:nodes"
    names = _values(csr.subject, NameOID.COMMON_NAME)
    if len(names) != 1 or not names[0].removeprefix(_NODE) or not names[0].startswith(_NODE):
        return "subject common name does not begin with system:node:"
    return None


def _usage_error(spec: Json, purpose: str) -> str | None:
    wanted = {"digital signature", purpose}
    if set(spec.get("usages") or ()) - {"key encipherment"} != wanted:
        return f"usages did not match {sorted(wanted | {'key encipherment'})}"
    return None


def kubelet_client_error(csr: x509.CertificateSigningRequest, spec: Json) -> str | None:
    """Why this is not what a kubelet asks for to be a client, or None."""
    if wrong := _node_error(csr):
        return wrong
    if _alternatives(csr):
        return "subjectAltNames are not allowed"
    return _usage_error(spec, "client auth")


def _kubelet_serving_error(csr: x509.CertificateSigningRequest, spec: Json) -> str | None:
    if wrong := _node_error(csr):
        return wrong
    names = _alternatives(csr)
    if not names:
        return "DNS or IP subjectAltName is required"
    if any(not isinstance(name, (x509.DNSName, x509.IPAddress)) for name in names):
        return "only DNS and IP subjectAltNames are allowed"
    return _usage_error(spec, "server auth")


def _client_error(csr: x509.CertificateSigningRequest, spec: Json) -> str | None:
    usages = set(spec.get("usages") or ())
    if odd := sorted(usages - {"digital signature", "key encipherment", "client auth"}):
        return f"invalid usage for client certificate: {odd[0]}"
    return None if "client auth" in usages else "missing required usage for client certificate: client auth"


# What a signer accepts, approved or not. Each says what is wrong with a request, or None.
_RULES: dict[str, Callable[[x509.CertificateSigningRequest, Json], str | None]] = {
    KUBELET_CLIENT: kubelet_client_error,
    _KUBELET_SERVING: _kubelet_serving_error,
    "kubernetes.io/kube-apiserver-client": _client_error,
}


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
    csr = _read(request)
    if wrong := _RULES[request["spec"]["signerName"]](csr, request["spec"]):
        await _fail(view, request, wrong)
        return
    signed = sign_request(view.server.pki.issuer, csr, request["spec"], view.now)
    certificate = base64.b64encode(signed).decode()
    await view.patch(REQUEST, request, {"status": {"certificate": certificate}}, subresource="status")


async def _fail(view: View, request: Json, why: str) -> None:
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "SignerValidationFailure",
        "message": why,
        "lastUpdateTime": view.stamp,
        "lastTransitionTime": view.stamp,
    }
    conditions = [*request["status"]["conditions"], failed]
    await view.patch(REQUEST, request, {"status": {"conditions": conditions}}, subresource="status")


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
