"""What the simulator refuses, and with which code. Codes are the vendor's own where they are publicly known."""

from __future__ import annotations

from dataclasses import dataclass, field

from homeport.sim.prism.entity import Failure


@dataclass(slots=True)
class Refusal(Exception):
    """A request, or a task, that can't be done. The views spell it as v3 or v4 do."""

    status: int
    message: str
    code: str = ""
    group: str = ""
    reason: str = ""  # of v3
    arguments: dict[str, str] = field(default_factory=dict)
    schema: tuple[tuple[str, str], ...] = ()  # (attribute path, what is wrong with it)

    def __str__(self) -> str:
        return self.message

    @property
    def failure(self) -> Failure:
        return Failure(self.code, self.message, self.group)


_MISSING = {
    "vm": ("VMM-30100", "VM_NOT_FOUND"),
    "image": ("VMM-20005", "ENTITY_NOT_FOUND"),
}


def missing(kind: str, ext_id: str) -> Refusal:
    code, group = _MISSING.get(kind, ("", "ENTITY_NOT_FOUND"))
    message = f"Failed to perform the operation as the {kind} {ext_id} could not be found."
    return Refusal(404, message, code, group, "ENTITY_NOT_FOUND", {f"{kind}_uuid": ext_id})


def invalid(attribute: str, what: str) -> Refusal:
    """A body or query that is not of the documented form."""
    return Refusal(400, f"{attribute}: {what}", schema=((attribute, what),), reason="INVALID_REQUEST")


def rejected(code: str, message: str, group: str = "INVALID_INPUT") -> Refusal:
    return Refusal(400, message, code, group, "INVALID_REQUEST")


def exhausted(message: str, code: str = "", group: str = "INSUFFICIENT_RESOURCES") -> Refusal:
    """A full cluster, pool or project: the task fails."""
    return Refusal(400, message, code, group, "INTERNAL_ERROR")


def conflict(message: str, code: str = "", group: str = "ENTITY_ALREADY_EXISTS") -> Refusal:
    return Refusal(409, message, code, group, "CONFLICT")


def precondition_missing() -> Refusal:
    return Refusal(412, "The If-Match header with the eTag of the entity is required.", "PLAT-10004", "ETAG_MISSING")


def precondition_invalid() -> Refusal:
    return Refusal(412, "Invalid eTag header", "PLAT-10005", "ETAG_INVALID")


def precondition_failed(vm: str) -> Refusal:
    message = f"If-Match header value passed does not match the current version of the VM {vm}."
    return Refusal(412, message, "VMM-30303", "VM_ETAG_MISMATCH", arguments={"vm_uuid": vm})


def unauthenticated() -> Refusal:
    return Refusal(401, "Authentication required.", "", "UNAUTHENTICATED", "AUTHENTICATION_REQUIRED")


def forbidden(user: str) -> Refusal:
    message = f"The user {user} is not authorized to perform this operation."
    return Refusal(403, message, "PLAT-10007", "RBAC_AUTHORIZATION_ERROR", "ACCESS_DENIED")


def unserved(what: str) -> Refusal:
    return Refusal(501, f"{what} is not part of this simulator.", "", "NOT_IMPLEMENTED", "NOT_IMPLEMENTED")
