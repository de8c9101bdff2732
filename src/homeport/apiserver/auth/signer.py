"""Who may decide on certificate requests, and which subjects nobody may ask for.

approve or deny     the verb `approve` on the signer (or on all signers of its domain, `example.com/*`)
sign or fail        the verb `sign` on it
system:masters      never from kubernetes.io/kube-apiserver-client: such a certificate passes every check of RBAC
"""

from __future__ import annotations

import base64

from homeport.apiserver.auth.decision import Attributes as Question
from homeport.apiserver.auth.decision import refusal
from homeport.apiserver.auth.pem import parse_request
from homeport.apiserver.auth.rbac.rbac import MASTERS, Rbac
from homeport.apiserver.request import User
from homeport.apiserver.resource import Json
from homeport.apiserver.verb.admission import Attributes
from homeport.client.errors import Forbidden

GROUP = "certificates.k8s.io"
REQUESTS = "certificatesigningrequests"
API_CLIENT = "kubernetes.io/kube-apiserver-client"


def may(rbac: Rbac, user: User, verb: str, signer: str) -> bool:
    domain = signer.partition("/")[0]
    asked = (Question(user, verb, GROUP, "v1", "signers", name=name) for name in (signer, f"{domain}/*"))
    return any(rbac.authorize(question).allowed for question in asked)


def check_approval(rbac: Rbac, attributes: Attributes) -> None:
    """The stored signer counts: what the request says about it is ignored anyway."""
    signer = _signer(attributes.old)
    if not may(rbac, attributes.ctx.user, "approve", signer):
        raise _refused(attributes, f'user not permitted to approve requests with signerName "{signer}"')


def check_signing(rbac: Rbac, attributes: Attributes) -> None:
    now, before = ((found or {}).get("status") or {} for found in (attributes.object, attributes.old))
    if all((now.get(field) or None) == (before.get(field) or None) for field in ("certificate", "conditions")):
        return
    signer = _signer(attributes.old)
    if not may(rbac, attributes.ctx.user, "sign", signer):
        raise _refused(attributes, f'user not permitted to sign requests with signerName "{signer}"')


def check_subject(attributes: Attributes) -> None:
    spec = (attributes.object or {}).get("spec") or {}
    if spec.get("signerName") != API_CLIENT:
        return
    from cryptography.x509.oid import NameOID  # a tenth of a second that most servers never need

    request = parse_request(base64.b64decode(spec.get("request", "")))
    organizations = request.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    if any(each.value == MASTERS for each in organizations):
        raise _refused(attributes, f"use of {API_CLIENT} signer with {MASTERS} group is not allowed")


def _signer(request: Json | None) -> str:
    return str(((request or {}).get("spec") or {}).get("signerName", ""))


def _refused(attributes: Attributes, why: str) -> Forbidden:
    return refusal(GROUP, REQUESTS, attributes.name, why)
