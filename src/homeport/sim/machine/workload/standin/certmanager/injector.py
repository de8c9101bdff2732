"""cert-manager's cainjector: writes authorities into webhook configurations, CRDs and APIServices."""

from __future__ import annotations

import base64

from homeport.api.meta import Resource
from homeport.sim.machine.workload.kind import SECRET, Json
from homeport.sim.machine.workload.standin.certmanager.kind import CERTIFICATE
from homeport.sim.machine.workload.standin.review import DEFINITION, MUTATING, VALIDATING
from homeport.sim.machine.workload.view import View

API_SERVICE = Resource("apiregistration.k8s.io", "v1", "APIService", "apiservices", namespaced=False)
_FROM_CERTIFICATE = "cert-manager.io/inject-ca-from"
_FROM_SECRET = "cert-manager.io/inject-ca-from-secret"  # noqa: S105 - an annotation
_FROM_SERVER = "cert-manager.io/inject-apiserver-ca"
_ALLOWED = "cert-manager.io/allow-direct-injection"


async def inject(view: View, server_authority: bytes) -> None:
    for kind in (VALIDATING, MUTATING, DEFINITION, API_SERVICE):
        for obj in view.all(kind):
            bundle = _bundle(view, obj, server_authority)
            patch = _patch(kind, obj, bundle) if bundle else None
            if patch is not None:
                await view.patch(kind, obj, patch)


def _bundle(view: View, obj: Json, server_authority: bytes) -> str:
    """'' if nothing is to be injected, or not yet."""
    notes = obj["metadata"].get("annotations") or {}
    if notes.get(_FROM_SERVER) == "true":
        return base64.b64encode(server_authority).decode()
    if name := notes.get(_FROM_SECRET):
        secret = _find(view, SECRET, name)
        allowed = secret is not None and (secret["metadata"].get("annotations") or {}).get(_ALLOWED) == "true"
        return str((secret.get("data") or {}).get("ca.crt", "")) if secret is not None and allowed else ""
    if name := notes.get(_FROM_CERTIFICATE):
        certificate = _find(view, CERTIFICATE, name)
        if certificate is None:
            return ""
        secret = _find(view, SECRET, f"{certificate['metadata']['namespace']}/{certificate['spec']['secretName']}")
        owner = (secret or {"metadata": {}})["metadata"].get("annotations") or {}
        if secret is None or owner.get("cert-manager.io/certificate-name") != certificate["metadata"]["name"]:
            return ""
        return str((secret.get("data") or {}).get("ca.crt", ""))
    return ""


def _find(view: View, kind: Resource, key: str) -> Json | None:
    namespace, _, name = key.partition("/")
    for each in view.all(kind):
        if (each["metadata"]["namespace"], each["metadata"]["name"]) == (namespace, name):
            return each
    return None


def _patch(kind: Resource, obj: Json, bundle: str) -> Json | None:
    """None if it is there already."""
    if kind is API_SERVICE:
        return {"spec": {"caBundle": bundle}} if obj["spec"].get("caBundle") != bundle else None
    if kind is DEFINITION:
        webhook = (obj["spec"].get("conversion") or {}).get("webhook") or {}
        client = webhook.get("clientConfig")
        if client is None or client.get("caBundle") == bundle:
            return None
        return {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}
    webhooks = obj.get("webhooks") or []
    if all(each["clientConfig"].get("caBundle") == bundle for each in webhooks):
        return None
    return {"webhooks": [{**each, "clientConfig": {**each["clientConfig"], "caBundle": bundle}} for each in webhooks]}
