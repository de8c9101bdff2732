"""What a user may not do, in plain words: which right is missing, on what, and whom to ask."""

from __future__ import annotations

import re

from homeport.client.errors import Forbidden

# As every Kubernetes API server words a refusal of its authorizers. Other refusals (of admission, for example) differ.
_REFUSAL = re.compile(
    r'User "(?P<user>.*?)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)" '
    r'(?:in the namespace "(?P<namespace>[^"]*)"|at the cluster scope)'
)


def explain_denial(error: Forbidden) -> str:
    """The message as it is, where it is not about a right."""
    found = _REFUSAL.search(error.message)
    if found is None:
        return str(error)
    user, verb, resource, group, namespace = found.group("user", "verb", "resource", "group", "namespace")
    name = str((error.status.get("details") or {}).get("name") or "")
    kind = f"{resource}.{group}" if group else resource
    where = f"in namespace {namespace}" if namespace else "in the whole cluster"
    role = "Role" if namespace else "ClusterRole"
    return (
        f"you (user {user!r}) may not {verb} {kind}{f' {name}' if name else ''} {where}: ask an administrator of the "
        f"cluster for a {role} with verb {verb!r} on resource {resource!r} of API group {group!r}"
    )
