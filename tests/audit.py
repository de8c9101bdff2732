"""What users called on a real kube-apiserver, from its audit log: for tests of roles."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

# One line for each request at its end, and one for a watch when it starts: a server that is busy notices its end late.
# What the server asks itself is of no interest.
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "omitManagedFields": True,
    "rules": [
        {"level": "None", "users": ["system:apiserver"]},
        {"level": "None", "nonResourceURLs": ["*"]},
        {"level": "Metadata"},
    ],
}
WRITES = ("create", "update", "patch", "delete", "deletecollection")
ACCOUNTS = "system:serviceaccount:"


class Writing(NamedTuple):
    """A write that the server accepted."""

    time: str
    user: str
    what: str  # resource and name

    def __str__(self) -> str:
        return f"{self.time} {self.user} {self.what}"


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
    """Of all ServiceAccounts."""
    return {call for found in calls_by(folder).values() for call in found}


def calls_by(folder: Path) -> dict[str, set[Call]]:
    """The same by NAMESPACE:NAME of the ServiceAccount."""
    found: dict[str, set[Call]] = {}
    for line in (folder / "audit.log").read_text().splitlines():
        for account, call in _of(line):
            found.setdefault(account, set()).add(call)
    return found


def writes_of(folder: Path, users: Collection[str]) -> list[Writing]:
    """What these users wrote, in the order in which the server got it. Questions about one's rights do not count."""
    found = []
    for line in (folder / "audit.log").read_text().splitlines():
        event = json.loads(line)
        who, ref = event["user"]["username"], event.get("objectRef") or {}
        wrote = event["verb"] in WRITES and ref.get("apiGroup") != "authorization.k8s.io"
        if wrote and who in users and event.get("responseStatus", {}).get("code", 500) < 300:
            found.append(Writing(event["requestReceivedTimestamp"], who, f"{ref['resource']} {ref.get('name', '')}"))
    return sorted(found)


def _of(line: str) -> Iterable[tuple[str, Call]]:
    try:
        event: Mapping[str, Any] = json.loads(line)
    except json.JSONDecodeError:
        return  # the last line of a server that was killed
    who = (event.get("impersonatedUser") or event.get("user") or {}).get("username")
    ref = event.get("objectRef")
    if str(who).startswith(ACCOUNTS) and ref:
        sub = f"/{ref['subresource']}" if ref.get("subresource") else ""
        yield str(who).removeprefix(ACCOUNTS), Call(ref.get("apiGroup", ""), f"{ref['resource']}{sub}", event["verb"])


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
