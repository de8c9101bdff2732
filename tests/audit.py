"""What users called on a real kube-apiserver, from its audit log: for tests of roles."""

from __future__ import annotations

import json
import re
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
ACCOUNTS = "system:serviceaccount:"


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


def calls(folder: Path) -> set[Call]:
    """Of all ServiceAccounts. A watch counts when it ends, so stop the controllers before."""
    return {call for line in (folder / "audit.log").read_text().splitlines() for call in _of(line)}


def _of(line: str) -> Iterable[Call]:
    try:
        event: Mapping[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return  # the last line of a server that was killed
    who = (event.get("impersonatedUser") or event.get("user") or {}).get("username")
    ref = event.get("objectRef")
    if str(who).startswith(ACCOUNTS) and ref:
        sub = f"/{ref['subresource']}" if ref.get("subresource") else ""
        yield Call(ref.get("apiGroup", ""), f"{ref['resource']}{sub}", event["verb"])


def reason_of(call: Call, reasons: Mapping[str, str]) -> str:
    """Why a right is granted that was not used: the first pattern that fits the whole call; '' if none does."""
    return next((why for pattern, why in reasons.items() if re.fullmatch(pattern, str(call))), "")


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
