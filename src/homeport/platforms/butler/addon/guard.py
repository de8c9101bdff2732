"""Who may decide what is installed in the management cluster: those who may do everything there already.

An add-on is whatever its chart says, and it is applied with the rights of the controllers: writing a ManagementAddon,
or an AddonDefinition for one, would otherwise be a way to all rights. The API server checks it, because no one else
knows the author: the embedded one with a hook, another Kubernetes with a ValidatingAdmissionPolicy. What was stored
before is not acted on.
"""

from __future__ import annotations

from typing import Any

from homeport.api.butler.v1alpha1 import GROUP
from homeport.api.meta import Resource, Unstructured
from homeport.apiserver.auth.decision import Attributes as Question
from homeport.apiserver.embedded import EmbeddedServer
from homeport.apiserver.verb.admission import CREATE, DELETE, UPDATE, Attributes
from homeport.client.errors import AlreadyExists, ApiError, Forbidden, NotFound
from homeport.client.protocol import Client, Key, Write
from homeport.platforms.butler.name import FIELD_MANAGER, SYSTEM_NAMESPACE
from homeport.runtime.clock import parse_time

Json = dict[str, Any]

# On AddonDefinitions that ManagementAddons may use. Only those who may do everything can set it, and change such one.
MANAGEMENT_LABEL = f"{GROUP}/management"
GUARD_NAME = f"managementaddons.{GROUP}"
KINDS = ("managementaddons", "addondefinitions")
_WHY = "it decides what runs in the management cluster with all rights: only somebody with the verb * on * may write it"
POLICY = Resource(
    "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False
)
BINDING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingAdmissionPolicyBinding",
    "validatingadmissionpolicybindings",
    namespaced=False,
)
_CONFIG_MAP = Resource("", "v1", "ConfigMap", "configmaps")
_WRITE = Write(field_manager=FIELD_MANAGER)
_ENFORCED_SECONDS = 10.0  # until every API server enforces a new policy


class Unguarded(Exception):
    """Nothing checks who writes ManagementAddons; says why, and what to do."""


# -- the embedded API server -------------------------------------------------------------------------------------------


def join(server: EmbeddedServer) -> None:
    """Call once, before the first request."""

    def check(a: Attributes) -> None:
        if a.served.plural == "addondefinitions" and not (_is_marked(a.object) or _is_marked(a.old)):
            return
        if not server.rbac.authorize(Question(a.ctx.user, "*", "*", "*", "*")).allowed:
            raise Forbidden(f'{a.served.plural}.{GROUP} "{a.name}" is forbidden: {_WHY}')

    for plural in KINDS:
        server.admission.on(GROUP, plural, check, (CREATE, UPDATE, DELETE))


def _is_marked(obj: Json | None) -> bool:
    return MANAGEMENT_LABEL in (((obj or {}).get("metadata") or {}).get("labels") or {})


# -- another Kubernetes ------------------------------------------------------------------------------------------------


def render_policy() -> Json:
    marked = " || ".join(
        f"({each} != null && has({each}.metadata.labels) && '{MANAGEMENT_LABEL}' in {each}.metadata.labels)"
        for each in ("object", "oldObject")
    )
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": ["*"],
        "operations": ["CREATE", "UPDATE", "DELETE"],
        "resources": list(KINDS),
    }
    return {
        **POLICY.type_meta,
        "metadata": {"name": GUARD_NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "variables": [
                {"name": "concerned", "expression": f"request.resource.resource != '{KINDS[1]}' || {marked}"}
            ],
            "validations": [
                {
                    "expression": "!variables.concerned || authorizer.group('*').resource('*').check('*').allowed()",
                    "message": _WHY,
                    "reason": "Forbidden",
                }
            ],
        },
    }


def render_binding() -> Json:
    return {
        **BINDING.type_meta,
        "metadata": {"name": GUARD_NAME},
        "spec": {"policyName": GUARD_NAME, "validationActions": ["Deny"]},
    }


# -- both --------------------------------------------------------------------------------------------------------------


class Guard:
    def __init__(self, client: Client, *, embedded: bool) -> None:
        self._client = client
        self._embedded = embedded

    async def since(self) -> float:
        """From when on what was created has an author who may do everything. Raises Unguarded."""
        try:
            if self._embedded:
                return _created(await self._hold(_CONFIG_MAP, _record()))
            policy = await self._hold(POLICY, render_policy())
            binding = await self._hold(BINDING, render_binding())
        except ApiError as error:
            raise Unguarded(f"ValidatingAdmissionPolicy {GUARD_NAME} can't be created: {error}") from error
        wrong = [
            each for each, wanted in ((policy, render_policy()), (binding, render_binding())) if differs(each, wanted)
        ]
        if wrong:
            text = f"{wrong[0].get('kind')} {GUARD_NAME} was changed: delete it, and it is created again"
            raise Unguarded(text)
        return max(_created(policy), _created(binding)) + _ENFORCED_SECONDS

    async def _hold(self, kind: Resource, body: Json) -> Unstructured:
        meta = body["metadata"]
        key = Key(meta.get("namespace", ""), meta["name"])
        try:
            return await self._client.get(kind, key)
        except NotFound:
            pass
        try:
            return await self._client.create(Unstructured(body), _WRITE, kind=kind)
        except AlreadyExists:
            return await self._client.get(kind, key)


def _record() -> Json:
    """The embedded server has no policies: its creation says since when the hook has been there."""
    meta = {"name": GUARD_NAME, "namespace": SYSTEM_NAMESPACE}
    text = "ManagementAddons that are older than this object were not checked, and are not acted on."
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"about": text}}


def differs(found: Unstructured, wanted: Json) -> bool:
    """API servers fill in defaults: what is wanted must be there."""
    return not _contains(found.get("spec"), wanted["spec"])


def _contains(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_contains(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        return (
            isinstance(found, list)
            and len(found) == len(wanted)
            and all(_contains(one, other) for one, other in zip(found, wanted, strict=True))
        )
    return bool(found == wanted)


def _created(obj: Unstructured) -> float:
    return parse_time(obj.metadata["creationTimestamp"])
