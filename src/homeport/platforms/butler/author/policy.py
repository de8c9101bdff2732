"""The rules as ValidatingAdmissionPolicies, for another Kubernetes. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from homeport.api.butler.v1alpha1 import GROUP
from homeport.api.butler.v1alpha1.part import PROVIDER_TYPES
from homeport.platforms.butler.author.rule import ADMINISTER, OS_FIELDS, PREFIXES, ROLES
from homeport.platforms.butler.name import ENVIRONMENT_LABEL

Json = dict[str, Any]

_API = "admissionregistration.k8s.io/v1"
_OF_CLUSTER = f"authorizer.group('{GROUP}').resource('tenantclusters').namespace(request.namespace)"


def render_policies() -> list[Json]:
    """Each with its binding."""
    found = [_owners(), _finalizers(), _tenant_clusters(), _tenant_addons(), _provider_configs(), _machine_requests()]
    return [each for policy in found for each in (policy, _binding(policy))]


def _policy(
    name: str,
    resources: Sequence[str],
    operations: Sequence[str],
    expression: str,
    message: str,
    variables: Sequence[tuple[str, str]] = (),
) -> Json:
    rule = {"apiGroups": [GROUP], "apiVersions": ["*"], "operations": list(operations), "resources": list(resources)}
    spec: Json = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": message, "reason": "Forbidden"}],
    }
    if variables:
        spec["variables"] = [{"name": each, "expression": text} for each, text in variables]
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"{name}.{GROUP}"},
        "spec": spec,
    }


def _binding(policy: Json) -> Json:
    name = policy["metadata"]["name"]
    return {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }


def _owners() -> Json:
    allowed = (
        f"authorizer.group('{GROUP}').resource(request.resource.resource)"
        ".namespace(request.?namespace.orValue('')).name(request.name).check('delete').allowed()"
    )
    before = "oldObject.metadata.?ownerReferences.orValue([])"
    return _policy(
        "owners",
        ["*"],
        ["UPDATE"],
        f"object.metadata.?ownerReferences.orValue([]).all(o, {before}.exists(b, b.uid == o.uid)) || {allowed}",
        "metadata.ownerReferences: an object is deleted with its owner: only somebody who may delete it may add one",
    )


def _finalizers() -> Json:
    ours = " || ".join(f"f.startsWith('{each}')" for each in PREFIXES)
    removed = f"oldObject.metadata.?finalizers.orValue([]).filter(f, {ours})"
    kept = "object.metadata.?finalizers.orValue([])"
    # A request for an object of the whole cluster has no field namespace.
    allowed = (
        f"authorizer.group('{GROUP}').resource(request.resource.resource).subresource('finalizers')"
        ".namespace(request.?namespace.orValue('')).name(request.name).check('update').allowed()"
    )
    return _policy(
        "finalizers",
        ["*"],
        ["UPDATE"],
        f"{removed}.all(f, f in {kept}) || {allowed}",
        "metadata.finalizers: a finalizer of Butler is removed when all that belongs to the object is gone: delete the "
        "object and wait; its status says for what",
    )


def _tenant_clusters() -> Json:
    names = f"object.metadata.?labels[?'{ENVIRONMENT_LABEL}'].orValue('')"
    moved = f"oldObject != null && {names} != {names.replace('object.', 'oldObject.', 1)}"
    return _policy(
        "tenantclusters",
        ["tenantclusters"],
        ["CREATE", "UPDATE"],
        "(variables.now.all(each, each in variables.before) && !variables.moved) || "
        f"{_OF_CLUSTER}.name(object.metadata.name).check('{ADMINISTER}').allowed()",
        "SSH keys, installer images, values of add-ons, a Git repository and another environment give all rights in "
        f"the cluster: only somebody with the verb {ADMINISTER} on the TenantCluster may set them",
        [
            ("now", _powers("object")),
            ("before", f"oldObject == null ? [] : {_powers('oldObject')}"),
            ("moved", moved),
        ],
    )


def _powers(obj: str) -> str:
    """A list of [field, value] for each field that gives rights."""
    pool = "[" + ", ".join(f"dyn(p.?machineTemplate.?os.?{each}.orValue(dyn('')))" for each in OS_FIELDS) + "]"
    empty = "[" + ", ".join("dyn('')" for _ in OS_FIELDS) + "]"
    workers = f"[{obj}.?spec.?workers.orValue(dyn({{}}))].map(p, [dyn('spec.workers'), dyn({pool})])"
    pools = f"{obj}.?spec.?workerPools.orValue([]).map(p, [dyn(p.name), dyn({pool})])"
    values = [f"[dyn('{role}'), dyn({obj}.?spec.?addons.?{role}.?values.orValue(dyn({{}})))]" for role in ROLES] + [
        f"[dyn('gitops'), dyn({obj}.?spec.?addons.?gitops.?repository.orValue(dyn({{}})))]"
    ]
    return f"({workers} + {pools}).filter(e, e[1] != {empty}) + [{', '.join(values)}].filter(e, e[1] != dyn({{}}))"


def _tenant_addons() -> Json:
    def chart(obj: str) -> str:
        part = ", ".join(f"dyn({obj}.spec.?{each}.orValue(dyn({{}})))" for each in ("addon", "helm", "values"))
        return f"[dyn({obj}.spec.clusterRef.name), {part}]"

    plain = "!has(object.spec.helm) && object.spec.?values.orValue(dyn({})) == dyn({})"
    return _policy(
        "tenantaddons",
        ["tenantaddons"],
        ["CREATE", "UPDATE"],
        f"({plain}) || (oldObject != null && {chart('object')} == {chart('oldObject')}) || "
        f"{_OF_CLUSTER}.name(object.spec.clusterRef.name).check('{ADMINISTER}').allowed()",
        "spec.helm and spec.values give all rights in the cluster: only somebody with the verb "
        f"{ADMINISTER} on the TenantCluster may set them",
    )


def _secrets(name: str, refs: Sequence[str], field: str) -> Json:
    listed = ", ".join(f"?{each}" for each in refs)
    where = "r.?namespace.orValue('') != '' ? r.namespace : object.metadata.namespace"
    allowed = f"authorizer.group('').resource('secrets').namespace({where}).name(r.name).check('get').allowed()"
    return _policy(
        name,
        [name],
        ["CREATE", "UPDATE"],
        "(oldObject != null && object.spec == oldObject.spec) || "
        f"[{listed}].all(r, r.?name.orValue('') == '' || {allowed})",
        f"{field}: only somebody who may read a Secret may have it sent to a provider",
    )


def _provider_configs() -> Json:
    refs = ["object.spec.?credentialsRef", *(f"object.spec.?{each}.?credentialsRef" for each in PROVIDER_TYPES)]
    return _secrets("providerconfigs", refs, "credentialsRef")


def _machine_requests() -> Json:
    return _secrets("machinerequests", ["object.spec.?userDataSecretRef"], "spec.userDataSecretRef")
