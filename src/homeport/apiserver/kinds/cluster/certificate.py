"""CertificateSigningRequest: who asks is recorded by the server, and approval is a subresource of its own."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping

from homeport.apiserver.auth.pem import certificate_error, parse_request
from homeport.apiserver.kinds.check import (
    dns_label,
    dns_subdomain,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from homeport.apiserver.kinds.strategy import Plain
from homeport.apiserver.resource import Json
from homeport.apiserver.verb.admission import Attributes
from homeport.client.errors import Cause

_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_VERDICTS = ("Approved", "Denied")
_SHORTEST = 600


def record_requester(attributes: Attributes) -> None:
    """The spec says who asked: the server's word, not the client's."""
    spec = (attributes.object or {}).setdefault("spec", {})
    user = attributes.ctx.user
    for field in ("username", "uid", "groups", "extra"):
        spec.pop(field, None)
    spec |= user.info()


class CertificateSigningRequest(Plain):
    def begin(self, obj: Json) -> None:
        obj["status"] = {}

    def prepare_update(self, obj: Json, old: Json) -> None:
        """A request does not change. What a client sends is taken for what there is."""
        obj["spec"] = old["spec"]

    def default(self, obj: Json) -> None:
        for condition in (obj.get("status") or {}).get("conditions") or ():
            condition["status"] = condition.get("status") or "True"

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        return list(_request(obj["spec"])) if old is None else []

    def fields(self, obj: Json) -> Mapping[str, str]:
        return {"spec.signerName": (obj.get("spec") or {}).get("signerName", "")}


class Approval:
    """certificatesigningrequests/approval: the verdict, and nothing else."""

    def prepare(self, obj: Json, old: Json) -> None:
        status, before = obj.get("status") or {}, old.get("status") or {}
        obj["spec"] = old["spec"]
        obj["status"] = {**before, "conditions": status.get("conditions") or []}
        if not obj["status"]["conditions"]:
            del obj["status"]["conditions"]

    def validate(self, obj: Json, old: Json) -> list[Cause]:
        return list(_status(obj.get("status") or {}, old.get("status") or {}, verdict=True))


class Status:
    """certificatesigningrequests/status: the certificate, written by the signer."""

    def prepare(self, obj: Json, old: Json) -> None:
        """The registry holds everything but the status."""

    def validate(self, obj: Json, old: Json) -> list[Cause]:
        return list(_status(obj.get("status") or {}, old.get("status") or {}, verdict=False))


def _request(spec: Json) -> Iterator[Cause]:
    yield from _pem(spec.get("request", ""))
    usages = spec.get("usages") or []
    if not usages:
        yield required("spec.usages")
    seen: set[str] = set()
    for i, usage in enumerate(usages):
        if usage not in _USAGES:
            yield unsupported(f"spec.usages[{i}]", usage, _USAGES)
        if usage in seen:
            yield duplicate(f"spec.usages[{i}]", usage)
        seen.add(usage)
    yield from signer_name("spec.signerName", spec.get("signerName", ""))
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SHORTEST:
        detail = "may not specify a duration less than 600 seconds (10 minutes)"
        yield invalid("spec.expirationSeconds", seconds, detail)


def _pem(request: str) -> Iterator[Cause]:
    try:
        parse_request(base64.b64decode(request))
    except ValueError as error:
        yield invalid("spec.request", request or None, str(error))


def signer_name(field: str, name: str) -> Iterator[Cause]:
    if not name:
        yield required(field)
        return
    domain, slash, path = name.partition("/")
    if not slash or "/" in path or not path or "." not in domain:
        yield invalid(field, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")
        return
    for label in domain.split("."):
        if wrong := dns_label(label):
            yield invalid(field, label, f"validating label {label!r}: {wrong}")
    if wrong := dns_subdomain(path):
        yield invalid(field, path, f"validating label {path!r}: {wrong}")


def _conditions(conditions: list[Json]) -> Iterator[Cause]:
    kinds = [condition.get("type", "") for condition in conditions]
    for i, condition in enumerate(conditions):
        field = f"status.conditions[{i}]"
        if not kinds[i]:
            yield required(f"{field}.type")
        choices = ("True",) if kinds[i] in (*_VERDICTS, "Failed") else ("False", "True", "Unknown")
        if condition.get("status") not in choices:
            yield unsupported(f"{field}.status", condition.get("status"), choices)
        if kinds[i] in kinds[:i]:
            yield duplicate(f"{field}.type", kinds[i])
    if set(_VERDICTS) <= set(kinds):
        yield invalid("status.conditions", "Approved, Denied", "Approved and Denied conditions are mutually exclusive")


def _status(status: Json, old: Json, *, verdict: bool) -> Iterator[Cause]:
    """Only the approval subresource gives a verdict, and none is ever taken back."""
    yield from _conditions(status.get("conditions") or [])
    now = {c.get("type") for c in status.get("conditions") or ()}
    before = {c.get("type") for c in old.get("conditions") or ()}
    for kind in ("Approved", "Denied", "Failed"):
        if kind in before - now:
            yield forbidden("status.conditions", f'updates may not remove a condition of type "{kind}"')
    for kind in () if verdict else _VERDICTS:
        if kind in now - before:
            yield forbidden("status.conditions", f'updates may not add a condition of type "{kind}"')
        elif kind in now and _of(status, kind) != _of(old, kind):
            yield forbidden("status.conditions", f'updates may not modify a condition of type "{kind}"')
    yield from _certificate(status, old)


def _of(status: Json, kind: str) -> list[Json]:
    return [condition for condition in status.get("conditions") or () if condition.get("type") == kind]


def _certificate(status: Json, old: Json) -> Iterator[Cause]:
    now, before = status.get("certificate", ""), old.get("certificate", "")
    if now == before:
        return
    if now and (wrong := certificate_error(base64.b64decode(now))):
        yield invalid("status.certificate", "<certificate data>", wrong)
    if before:
        yield forbidden("status.certificate", "updates may not modify existing certificate content")
