"""Write permissions of a tenant: an admission policy in its cluster refuses what is blocked.

The policy is evaluated by the API server itself, so nothing has to be reachable from it. The control plane's own
programs, nodes and super administrators are exempt: a cluster that nobody may write to must still run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from homeport.api.meta import Resource
from homeport.hosted.content.inputs import ContentInputs, Item, item

ADDON = "write-permissions"
NAME = "homeport-write-permissions"
FIRST_MINOR = 30  # of Kubernetes, that has admission policies switched on
_GROUP = "admissionregistration.k8s.io"
POLICY = Resource(_GROUP, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", namespaced=False)
BINDING = Resource(
    _GROUP, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", namespaced=False
)


def _every(groups: list[str], resources: str) -> dict[str, Any]:
    return {"apiGroups": groups, "apiVersions": ["*"], "operations": ["*"], "resources": [resources]}


def render_permissions(inputs: ContentInputs, blocked: Sequence[str]) -> Iterator[Item]:
    """`blocked`: CREATE, UPDATE, DELETE. Nothing for a version that has no such policies."""
    if not blocked or inputs.minor < FIRST_MINOR:
        return
    what = " and ".join(each.lower() for each in blocked)
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "operations": list(blocked), "resources": ["*"]}
            ],
            "excludeResourceRules": [
                _every(["coordination.k8s.io"], "leases"),
                _every(["", "events.k8s.io"], "events"),
            ],
        },
        "matchConditions": [
            {
                "name": "users-alone",
                "expression": "!request.userInfo.username.startsWith('system:') "
                "&& !('system:masters' in request.userInfo.groups)",
            }
        ],
        "validations": [
            {
                "expression": "false",
                "message": f"this cluster is write-limited: its platform blocks {what} requests "
                "(spec.writePermissions of its TenantControlPlane)",
                "reason": "Forbidden",
            }
        ],
    }
    yield item(POLICY, NAME, addon=ADDON, spec=spec)
    yield item(BINDING, NAME, addon=ADDON, spec={"policyName": NAME, "validationActions": ["Deny"]})
