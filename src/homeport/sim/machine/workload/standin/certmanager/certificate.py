"""Certificates and CertificateRequests: issued when the Secret is missing or wrong, and again before they end."""

from __future__ import annotations

import base64
import datetime

from cryptography import x509

from homeport.client.errors import AlreadyExists
from homeport.runtime.clock import rfc3339
from homeport.sim.machine.workload.kind import SECRET, Json
from homeport.sim.machine.workload.object import duration
from homeport.sim.machine.workload.standin.certmanager.issuer import Issuers
from homeport.sim.machine.workload.standin.certmanager.kind import CERTIFICATE, GROUP, REQUEST
from homeport.sim.machine.workload.standin.certmanager.sign import (
    Authority,
    Key,
    alternative_names,
    key_pem,
    load_key,
    make_key,
    make_request,
    sign,
)
from homeport.sim.machine.workload.standin.certmanager.status import ready_condition, with_condition, without
from homeport.sim.machine.workload.standin.event import EventRecorder
from homeport.sim.machine.workload.view import View, leaving

_PREFIX = f"{GROUP}/"
_KEY_SECRET = f"{GROUP}/private-key-secret-name"


class Certificates:
    def __init__(self) -> None:
        self._events = EventRecorder("cert-manager-certificates-issuing")

    async def settle(self, view: View, issuers: Issuers) -> None:
        for certificate in view.all(CERTIFICATE):
            if not leaving(certificate):
                await self._settle(view, issuers, certificate)
        for request in view.all(REQUEST):
            if not leaving(request) and not _answered(request):
                await _answer(view, issuers, request)

    async def _settle(self, view: View, issuers: Issuers, certificate: Json) -> None:
        meta, spec = certificate["metadata"], certificate["spec"]
        secret = _secret(view, meta["namespace"], spec["secretName"])
        why = _why_issue(view, certificate, secret)
        if why is None:
            await self._report_ready(view, certificate, secret or {})
            return
        reason, message = why
        await self._events.normal(view, CERTIFICATE, certificate, "Issuing", message)
        await _report_issuing(view, certificate, ready_condition("False", reason, message, certificate))
        issuer, authority = issuers.find(spec.get("issuerRef") or {}, meta["namespace"])
        if issuer is None:
            return  # a change of the issuer brings it back
        try:
            await self._issue(view, certificate, secret, authority)
        except ValueError as error:  # a name that can't be in a certificate
            text = f"The certificate request has failed to complete and will be retried: {error}"
            await self._events.warn(view, CERTIFICATE, certificate, "Failed", text)

    async def _issue(self, view: View, certificate: Json, secret: Json | None, authority: Authority | None) -> None:
        spec = certificate["spec"]
        key = _kept_key(spec, secret) or make_key(spec)
        request = make_request(spec, key)
        pem = sign(request, spec, view.now, authority, key)
        chain = authority.chain if authority is not None else b""
        anchor = _last(chain) if chain else pem
        revision = int((certificate.get("status") or {}).get("revision") or 0) + 1
        await self._record(view, certificate, revision, request, pem + chain, anchor)
        data = {"tls.crt": pem + chain, "tls.key": key_pem(key, spec), "ca.crt": anchor}
        await _write_secret(view, certificate, data)
        issued = x509.load_pem_x509_certificate(pem)
        condition = ready_condition("True", "Ready", "Certificate is up to date and has not expired", certificate)
        status = {
            "conditions": with_condition(without(certificate, "Issuing"), condition, view.stamp),
            "revision": revision,
            **_times(spec, issued),
        }
        await view.set_status(CERTIFICATE, certificate, status)
        text = "The certificate has been successfully issued"
        await self._events.normal(view, CERTIFICATE, certificate, "Issuing", text)

    async def _record(
        self, view: View, certificate: Json, revision: int, request: bytes, chain: bytes, anchor: bytes
    ) -> None:
        """The CertificateRequest by which it was issued."""
        meta, spec = certificate["metadata"], certificate["spec"]
        owner = {
            **CERTIFICATE.type_meta,
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        notes = {f"{_PREFIX}certificate-name": meta["name"], f"{_PREFIX}certificate-revision": str(revision)}
        named = {"name": f"{meta['name']}-{revision}", "namespace": meta["namespace"]}
        body: Json = {
            "metadata": {**named, "annotations": notes, "ownerReferences": [owner]},
            "spec": {
                "request": base64.b64encode(request).decode(),
                "issuerRef": spec["issuerRef"],
                **{name: spec[name] for name in ("duration", "isCA", "usages") if name in spec},
            },
        }
        try:
            made = await view.client.create(body, kind=REQUEST)
        except AlreadyExists:
            return
        await _finish(view, made, chain, anchor)

    async def _report_ready(self, view: View, certificate: Json, secret: Json) -> None:
        issued = x509.load_pem_x509_certificate(base64.b64decode(secret["data"]["tls.crt"]))
        times = _times(certificate["spec"], issued)
        condition = ready_condition("True", "Ready", "Certificate is up to date and has not expired", certificate)
        conditions = with_condition(without(certificate, "Issuing"), condition, view.stamp)
        await view.set_status(CERTIFICATE, certificate, {"conditions": conditions, **times})
        view.later(max(_renewal(certificate["spec"], issued) - view.now, 0) + 1.0)


async def _report_issuing(view: View, certificate: Json, ready: Json) -> None:
    first = {"status": {"conditions": with_condition(certificate, ready, view.stamp)}}
    condition = {**ready, "type": "Issuing", "status": "True"}
    await view.set_status(CERTIFICATE, certificate, {"conditions": with_condition(first, condition, view.stamp)})


def _why_issue(view: View, certificate: Json, secret: Json | None) -> tuple[str, str] | None:
    """Reason and message, in cert-manager's words; None if the Secret has what is asked for."""
    spec = certificate["spec"]
    if secret is None:
        return "DoesNotExist", "Issuing certificate as Secret does not exist"
    data = secret.get("data") or {}
    if not data.get("tls.key") or not data.get("tls.crt"):
        return "MissingData", "Issuing certificate as Secret does not contain a certificate"
    try:
        issued = x509.load_pem_x509_certificate(base64.b64decode(data["tls.crt"]))
        key = load_key(base64.b64decode(data["tls.key"]))
    except ValueError:
        return "InvalidCertificate", "Issuing certificate as Secret contains an invalid certificate or key"
    if key.public_key() != issued.public_key():
        return "InvalidKeyPair", "Issuing certificate as Secret contains an invalid key-pair"
    notes = secret["metadata"].get("annotations") or {}
    reference = spec.get("issuerRef") or {}
    if notes.get(f"{_PREFIX}issuer-name") != reference.get("name") or notes.get(f"{_PREFIX}issuer-kind") != (
        reference.get("kind") or "Issuer"
    ):
        return "IncorrectIssuer", "Issuing certificate as Secret was previously issued by another issuer"
    if not _has_names(issued, spec):
        return "RequestChanged", "Fields on existing CertificateRequest resource not up to date: [spec.dnsNames]"
    if view.now >= issued.not_valid_after_utc.timestamp():
        return "Expired", "Issuing certificate as the existing one has expired"
    if view.now >= _renewal(spec, issued):
        return "Renewing", "Renewing certificate as renewal was scheduled"
    return None


def _has_names(issued: x509.Certificate, spec: Json) -> bool:
    try:
        names = list(issued.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        names = []
    common = [str(each.value) for each in issued.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)]
    return set(names) == set(alternative_names(spec)) and common == [each for each in [spec.get("commonName")] if each]


def _renewal(spec: Json, issued: x509.Certificate) -> float:
    """A third of its life before its end, or as the Certificate says."""
    begin, end = issued.not_valid_before_utc.timestamp(), issued.not_valid_after_utc.timestamp()
    if spec.get("renewBeforePercentage"):
        before = (end - begin) * float(spec["renewBeforePercentage"]) / 100
    else:
        before = duration(spec.get("renewBefore"), (end - begin) / 3)
    return end - (before if before < end - begin else (end - begin) / 3)


def _times(spec: Json, issued: x509.Certificate) -> dict[str, str]:
    def text(moment: datetime.datetime) -> str:
        return rfc3339(moment.timestamp())

    return {
        "notBefore": text(issued.not_valid_before_utc),
        "notAfter": text(issued.not_valid_after_utc),
        "renewalTime": rfc3339(_renewal(spec, issued)),
    }


def _kept_key(spec: Json, secret: Json | None) -> Key | None:
    """With rotationPolicy Never, the key stays."""
    if (spec.get("privateKey") or {}).get("rotationPolicy") != "Never" or secret is None:
        return None
    try:
        return load_key(base64.b64decode((secret.get("data") or {})["tls.key"]))
    except (KeyError, ValueError):
        return None


async def _write_secret(view: View, certificate: Json, data: dict[str, bytes]) -> None:
    meta, spec = certificate["metadata"], certificate["spec"]
    reference = spec["issuerRef"]
    template = spec.get("secretTemplate") or {}
    notes = {
        **(template.get("annotations") or {}),
        f"{_PREFIX}certificate-name": meta["name"],
        f"{_PREFIX}common-name": spec.get("commonName") or "",
        f"{_PREFIX}alt-names": ",".join(spec.get("dnsNames") or ()),
        f"{_PREFIX}ip-sans": ",".join(spec.get("ipAddresses") or ()),
        f"{_PREFIX}uri-sans": ",".join(spec.get("uris") or ()),
        f"{_PREFIX}issuer-name": reference["name"],
        f"{_PREFIX}issuer-kind": reference.get("kind") or "Issuer",
        f"{_PREFIX}issuer-group": reference.get("group") or GROUP,
    }
    named = {"name": spec["secretName"], "namespace": meta["namespace"]}
    labels = {**(template.get("labels") or {}), "controller.cert-manager.io/fao": "true"}
    body: Json = {
        "metadata": {**named, "annotations": notes, "labels": labels},
        "data": {name: base64.b64encode(value).decode() for name, value in data.items()},
    }
    try:
        await view.client.create({**body, "type": "kubernetes.io/tls"}, kind=SECRET)
    except AlreadyExists:
        await view.patch(SECRET, body, body)


def _secret(view: View, namespace: str, name: str) -> Json | None:
    for each in view.all(SECRET):
        if (each["metadata"]["namespace"], each["metadata"]["name"]) == (namespace, name):
            return each
    return None


def _last(chain: bytes) -> bytes:
    """The certificate at the top of a chain."""
    mark = b"-----BEGIN CERTIFICATE-----"
    return mark + chain.split(mark)[-1]


# -- requests ------------------------------------------------------------------------------------------------------


def _answered(request: Json) -> bool:
    conditions = (request.get("status") or {}).get("conditions") or ()
    return bool((request.get("status") or {}).get("certificate")) or any(
        (each["type"] in ("Denied", "InvalidRequest") and each["status"] == "True")
        or (each["type"] == "Ready" and each.get("reason") == "Failed")
        for each in conditions
    )


async def _answer(view: View, issuers: Issuers, request: Json) -> None:
    """One that somebody else made: approved, as the built-in approver does, and signed."""
    meta, spec = request["metadata"], request["spec"]
    issuer, authority = issuers.find(spec.get("issuerRef") or {}, meta["namespace"])
    if issuer is None:
        text = f"Referenced issuer {(spec.get('issuerRef') or {}).get('name')!r} not found or not Ready"
        await _write_request(view, request, ready_condition("False", "Pending", text, request), {})
        return
    try:
        key = None if authority is not None else _request_key(view, request)
        pem = sign(base64.b64decode(spec["request"]), spec, view.now, authority, key)
    except ValueError as error:
        text = f"Error generating certificate template: {error}"
        await _write_request(
            view, request, ready_condition("False", "Failed", text, request), {"failureTime": view.stamp}
        )
        return
    chain = authority.chain if authority is not None else b""
    await _finish(view, request, pem + chain, _last(chain) if chain else pem)


def _request_key(view: View, request: Json) -> Key:
    """Raises ValueError: who signs itself has to name the Secret with its key."""
    meta = request["metadata"]
    name = (meta.get("annotations") or {}).get(_KEY_SECRET, "")
    secret = _secret(view, meta["namespace"], name) if name else None
    if secret is None:
        raise ValueError(f"annotation {_KEY_SECRET} must name a Secret with the private key")
    return load_key(base64.b64decode((secret.get("data") or {}).get("tls.key", "")))


async def _finish(view: View, request: Json, chain: bytes, anchor: bytes) -> None:
    condition = ready_condition("True", "Issued", "Certificate fetched from issuer successfully", request)
    found = {"certificate": base64.b64encode(chain).decode(), "ca": base64.b64encode(anchor).decode()}
    await _write_request(view, request, condition, found)


async def _write_request(view: View, request: Json, ready: Json, more: Json) -> None:
    text = "Certificate request has been approved by cert-manager.io"
    approved = {"type": "Approved", "status": "True", "reason": "cert-manager.io", "message": text}
    first = {"status": {"conditions": with_condition(request, approved, view.stamp)}}
    await view.set_status(REQUEST, request, {"conditions": with_condition(first, ready, view.stamp), **more})
