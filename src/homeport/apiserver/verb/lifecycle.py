"""Admission that is always on: namespaces must exist and not be on their way out; Pods have a ServiceAccount."""

from __future__ import annotations

from functools import partial

import orjson

from homeport.apiserver.auth.decision import refusal
from homeport.apiserver.auth.rbac.escalation import check_binding, check_role
from homeport.apiserver.auth.rbac.rbac import GROUP as RBAC_GROUP
from homeport.apiserver.auth.rbac.rbac import Rbac
from homeport.apiserver.auth.signer import GROUP as CERTIFICATES
from homeport.apiserver.auth.signer import REQUESTS, check_approval, check_signing, check_subject
from homeport.apiserver.resource import Json, ServedKind
from homeport.apiserver.verb.admission import CREATE, DELETE, UPDATE, Admission, Attributes
from homeport.client.errors import Cause, Forbidden, not_found
from homeport.store import Store

IMMORTAL = frozenset({"default", "kube-system", "kube-public"})
# Questions are answered for any namespace, also one that is not there.
_QUESTIONS = ("authorization.k8s.io", "localsubjectaccessreviews")


class NamespaceLifecycle:
    def __init__(self, store: Store) -> None:
        self._store = store

    def mutates(self, served: ServedKind, operation: str, subresource: str) -> bool:
        if (served.group, served.plural) == ("", "namespaces"):
            return operation == DELETE and not subresource
        return operation == CREATE and served.namespaced and (served.group, served.plural) != _QUESTIONS

    def validates(self, served: ServedKind, operation: str, subresource: str) -> bool:
        return False

    async def mutate(self, attributes: Attributes) -> Json | None:
        if attributes.operation == DELETE:
            if attributes.name in IMMORTAL:
                raise refusal("", "namespaces", attributes.name, "this namespace may not be deleted")
            return None
        namespace = attributes.namespace
        record = self._store.head("namespaces", namespace)
        if record is None:
            raise not_found("", "namespaces", namespace)
        # Searching the bytes is much cheaper than decoding them for every create, and never misses.
        if b"Terminating" in record.value or b'"deletionTimestamp"' in record.value:
            if _terminating(orjson.loads(record.value)):
                raise _ending(attributes)
        return None

    async def validate(self, attributes: Attributes) -> None:
        return None


def _terminating(namespace: Json) -> bool:
    return bool(namespace["metadata"].get("deletionTimestamp")) or (
        (namespace.get("status") or {}).get("phase") == "Terminating"
    )


def _ending(a: Attributes) -> Forbidden:
    served = a.served
    qualified = f"{served.plural}.{served.group}" if served.group else served.plural
    return Forbidden(
        f'{qualified} "{a.name}" is forbidden: unable to create new content in namespace {a.namespace} '
        "because it is being terminated",
        group=served.group,
        kind=served.plural,
        name=a.name,
        causes=[Cause("NamespaceTerminating", f"namespace {a.namespace} is being terminated", "metadata.namespace")],
    )


def default_service_account(attributes: Attributes) -> None:
    """A Pod that names no ServiceAccount runs as the namespace's default one."""
    spec = (attributes.object or {}).get("spec")
    if isinstance(spec, dict):
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def install(admission: Admission, store: Store, rbac: Rbac | None = None) -> None:
    """What every server has, before any webhook. Without `rbac`, no further permissions are required."""
    admission.add(NamespaceLifecycle(store))
    admission.on("", "pods", default_service_account, (CREATE,), mutating=True)
    admission.on(CERTIFICATES, REQUESTS, check_subject, (CREATE,))
    if rbac is None:
        return

    def roles(a: Attributes) -> None:
        if a.object is not None:
            check_role(rbac, a.ctx.user, a.served.plural, a.namespace, a.object, a.old)

    def bindings(a: Attributes) -> None:
        if a.object is not None:
            check_binding(rbac, a.ctx.user, a.served.plural, a.namespace, a.object, a.old)

    for plural in ("roles", "clusterroles"):
        admission.on(RBAC_GROUP, plural, roles, (CREATE, UPDATE))
    for plural in ("rolebindings", "clusterrolebindings"):
        admission.on(RBAC_GROUP, plural, bindings, (CREATE, UPDATE))
    approval, signing = partial(check_approval, rbac), partial(check_signing, rbac)
    admission.on(CERTIFICATES, REQUESTS, approval, (UPDATE,), subresources=("approval",))
    admission.on(CERTIFICATES, REQUESTS, signing, (UPDATE,), subresources=("status",))
