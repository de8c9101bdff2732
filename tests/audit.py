"""What users called on a real kube-apiserver, from its audit log: for tests of roles."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

# One line for each request at its end; what the server asks itself is of no interest.
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "omitManagedFields": True,
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "None", "nonResourceURLs": ["*"]},
        {"level": "Metadata"},
    ],
}
INSTALLED = "system:serviceaccount:homeport-system:homeport-controller-manager"


class Call(NamedTuple):
    group: str
    resource: str  # with its subresource
    verb: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


def arguments(folder: Path) -> list[str]:
    """Of kube-apiserver, which then writes its log into the folder."""
    policy = folder / "audit-policy.json"
    policy.write_text(json.dumps(POLICY))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={folder / 'audit.log'}"]


def calls(folder: Path, user: str = INSTALLED) -> set[Call]:
    """Of this user, or of who acts as this user. Watches count when they end, so stop the controllers before."""
    path = folder / "audit.log"
    return {call for line in (path.read_text().splitlines() if path.exists() else ()) for call in _of(line, user)}


def _of(line: str, user: str) -> Iterable[Call]:
    try:
        event: Mapping[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return  # the last line of a server that was killed
    who = (event.get("impersonatedUser") or event.get("user") or {}).get("username")
    ref = event.get("objectRef")
    if who == user and ref:
        sub = f"/{ref['subresource']}" if ref.get("subresource") else ""
        yield Call(ref.get("apiGroup", ""), f"{ref['resource']}{sub}", event["verb"])


def granted(roles: Iterable[Mapping[str, Any]]) -> set[Call]:
    """By ClusterRoles and Roles, wherever and for whichever names."""
    return {
        Call(group, resource, verb)
        for role in roles
        for rule in role.get("rules") or ()
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
