"""The status of a definition: which names it was given, whether it is served, whether it is on its way out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from homeport.apiserver.resource import Json
from homeport.machinery.crd import structural_violations

APPROVAL: Final = "api-approved.kubernetes.io"


def condition(crd: Json, type_: str) -> Json | None:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each.get("type") == type_), None)


def is_true(crd: Json, type_: str) -> bool:
    return (condition(crd, type_) or {}).get("status") == "True"


def set_condition(crd: Json, type_: str, status: str, reason: str, message: str, now: str) -> None:
    """Replaces or adds; the time moves only when the status does."""
    conditions = crd["status"].get("conditions") or []
    crd["status"]["conditions"] = conditions
    known = next((each for each in conditions if each.get("type") == type_), None)
    if known is None:
        known = {"type": type_, "status": "", "lastTransitionTime": now}
        conditions.append(known)
    if known["status"] != status:
        known["lastTransitionTime"] = now
    known.update(status=status, reason=reason, message=message)


def accept_names(crd: Json, taken_resources: set[str], taken_kinds: set[str]) -> tuple[Json, str, str]:
    """The names that the definition may use, and the reason and message of its NamesAccepted condition.

    `taken_*` are in use by other definitions of the group. A name that it already has stays its own.
    """
    wanted: Mapping[str, Any] = crd["spec"]["names"]
    had: Mapping[str, Any] = (crd.get("status") or {}).get("acceptedNames") or {}
    accepted: Json = {key: value for key, value in had.items() if value}
    reason, message = "NoConflicts", "no conflicts found"
    for key, taken in (
        ("plural", taken_resources),
        ("singular", taken_resources),
        ("shortNames", taken_resources),
        ("kind", taken_kinds),
        ("listKind", taken_kinds),
    ):
        value = wanted.get(key)
        conflicts = _conflicts(value, had.get(key), taken)
        if conflicts:
            reason, message = f"{key[0].upper()}{key[1:]}Conflict", _aggregate(conflicts)
        elif value:
            accepted[key] = value
        else:
            accepted.pop(key, None)
    if wanted.get("categories"):
        accepted["categories"] = wanted["categories"]
    else:
        accepted.pop("categories", None)
    return {"plural": "", "kind": "", **accepted}, reason, message


def _conflicts(wanted: Any, had: Any, taken: set[str]) -> list[str]:
    values: Iterable[str] = wanted if isinstance(wanted, list) else [wanted] if wanted else []
    own = had if isinstance(had, list) else [had]
    return [f'"{value}" is already in use' for value in values if value not in own and value in taken]


def _aggregate(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def is_settled(crd: Json, names: Json, reason: str, message: str) -> bool:
    """Whether the status already says so: nothing to write for most definitions when a server starts."""
    named = condition(crd, "NamesAccepted") or {}
    if (named.get("reason"), named.get("message")) != (reason, message):
        return False
    if (crd["status"].get("acceptedNames") or {}) != names or crd["spec"].get("preserveUnknownFields"):
        return False
    return condition(crd, "Established") is not None and (reason != "NoConflicts" or is_true(crd, "Established"))


def settle_status(crd: Json, names: Json, reason: str, message: str, now: str) -> None:
    """Writes names and conditions into the definition, in place."""
    status = crd.setdefault("status", {})
    status["acceptedNames"] = names
    accepted = reason == "NoConflicts"
    set_condition(crd, "NamesAccepted", "True" if accepted else "False", reason, message, now)
    if accepted and not is_true(crd, "Established"):
        text = "the initial names have been accepted"
        set_condition(crd, "Established", "True", "InitialNamesAccepted", text, now)
    elif condition(crd, "Established") is None:
        set_condition(crd, "Established", "False", "NotAccepted", "not all names are accepted", now)
    _settle_schema(crd, now)
    _settle_approval(crd, now)


def _settle_schema(crd: Json, now: str) -> None:
    """Only definitions that preserve unknown fields altogether may be anything but structural."""
    found = []
    if crd["spec"].get("preserveUnknownFields"):
        for index, version in enumerate(crd["spec"]["versions"]):
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema is not None:
                found += structural_violations(schema, f"spec.versions[{index}].schema.openAPIV3Schema")
    if found:
        text = _aggregate([f"{each.field}: {each.message}" for each in found])
        set_condition(crd, "NonStructuralSchema", "True", "Violations", text, now)
    elif condition(crd, "NonStructuralSchema") is not None:
        kept = [each for each in crd["status"]["conditions"] if each["type"] != "NonStructuralSchema"]
        crd["status"]["conditions"] = kept


def _settle_approval(crd: Json, now: str) -> None:
    group = crd["spec"]["group"]
    said = (crd["metadata"].get("annotations") or {}).get(APPROVAL)
    if not said or not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return
    type_ = "KubernetesAPIApprovalPolicyConformant"
    if said.startswith("unapproved"):
        set_condition(crd, type_, "False", "UnapprovedAnnotation", f'not approved: "{said}"', now)
    else:
        set_condition(crd, type_, "True", "ApprovedAnnotation", f"approved in {said}", now)
