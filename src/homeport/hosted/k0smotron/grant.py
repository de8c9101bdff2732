"""Objects that are used from another namespace: only with the consent of whoever owns them. Pure.

The controllers may read every namespace; a user who creates a k0smotron Cluster or a JoinTokenRequest may not.
"""

from __future__ import annotations

from collections.abc import Mapping

ALLOWED_NAMESPACES_ANNOTATION = "k0smotron.homeport.dev/allowed-namespaces"


def is_granted(owner: str, annotations: Mapping[str, str], namespace: str) -> bool:
    """Whether objects of `namespace` may use an object of the namespace `owner` that has these annotations."""
    if owner == namespace:
        return True
    allowed = {each.strip() for each in str(annotations.get(ALLOWED_NAMESPACES_ANNOTATION) or "").split(",")}
    return namespace in allowed or "*" in allowed


def refusal(what: str, namespace: str) -> str:
    return (
        f"{what} is in another namespace and does not allow namespace {namespace} to use it: use an object of "
        f"namespace {namespace}, or set the annotation {ALLOWED_NAMESPACES_ANNOTATION}={namespace} on it"
    )
