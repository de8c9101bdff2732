"""What a Kubernetes API answers when it refuses, as exceptions. Every client and the embedded server share this tree.

    ApiError
    ├── BadRequest          400
    ├── Unauthorized        401
    ├── Forbidden           403
    ├── NotFound            404
    ├── MethodNotAllowed    405
    ├── NotAcceptable       406
    ├── AlreadyExists       409  reason AlreadyExists
    ├── Conflict            409  reason Conflict (also: causes of an apply conflict)
    ├── Gone / Expired      410
    ├── TooLarge            413
    ├── UnsupportedMediaType 415
    ├── Invalid             422  with causes
    ├── TooManyRequests     429  with retry_after
    ├── Internal            500
    ├── Unavailable         503, and: no connection could be made (status has code 503)
    └── Timeout             504

`status` is the metav1.Status body as a dict, exactly as it goes over the wire.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Cause:
    """One reason why an object was refused. `reason` is a metav1.CauseType such as FieldValueRequired."""

    reason: str
    message: str
    field: str = ""

    # The three that validation gives most, worded as Kubernetes does.

    @classmethod
    def invalid(cls, field: str, why: object) -> Cause:
        return cls("FieldValueInvalid", f"Invalid value: {why}", field)

    @classmethod
    def forbidden(cls, field: str, why: object) -> Cause:
        return cls("FieldValueForbidden", f"Forbidden: {why}", field)

    @classmethod
    def required(cls, field: str, why: object) -> Cause:
        return cls("FieldValueRequired", f"Required value: {why}", field)

    def as_dict(self) -> dict[str, str]:
        raw = {"reason": self.reason, "message": self.message, "field": self.field}
        return {name: text for name, text in raw.items() if text}


class ApiError(Exception):
    code: ClassVar[int] = 500
    reason: ClassVar[str] = "Unknown"

    def __init__(
        self,
        message: str,
        *,
        group: str = "",
        kind: str = "",
        name: str = "",
        uid: str = "",
        causes: Iterable[Cause] = (),
        retry_after: int = 0,
        code: int = 0,
        reason: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.causes = tuple(causes)
        self.retry_after = retry_after
        self._code = code or self.code
        self._reason = reason or self.reason
        self._received: Mapping[str, Any] | None = None
        self._details: dict[str, Any] = {}
        for field, value in (("name", name), ("group", group), ("kind", kind), ("uid", uid)):
            if value:
                self._details[field] = value
        if self.causes:
            self._details["causes"] = [c.as_dict() for c in self.causes]
        if retry_after:
            self._details["retryAfterSeconds"] = retry_after

    @property
    def http_code(self) -> int:
        return self._code

    @property
    def status(self) -> dict[str, Any]:
        if self._received is not None:
            return dict(self._received)
        raw: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
        }
        if self._reason:
            raw["reason"] = self._reason
        if self._details:
            raw["details"] = self._details
        raw["code"] = self._code
        return raw


class BadRequest(ApiError):
    code = 400
    reason = "BadRequest"


class Unauthorized(ApiError):
    code = 401
    reason = "Unauthorized"


class Forbidden(ApiError):
    code = 403
    reason = "Forbidden"


class NotFound(ApiError):
    code = 404
    reason = "NotFound"


class MethodNotAllowed(ApiError):
    code = 405
    reason = "MethodNotAllowed"


class NotAcceptable(ApiError):
    code = 406
    reason = "NotAcceptable"


class AlreadyExists(ApiError):
    code = 409
    reason = "AlreadyExists"


class Conflict(ApiError):
    code = 409
    reason = "Conflict"


class Gone(ApiError):
    code = 410
    reason = "Gone"


class Expired(Gone):
    reason = "Expired"


class TooLarge(ApiError):
    code = 413
    reason = "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code = 415
    reason = "UnsupportedMediaType"


class Invalid(ApiError):
    code = 422
    reason = "Invalid"


class TooManyRequests(ApiError):
    code = 429
    reason = "TooManyRequests"


class Internal(ApiError):
    code = 500
    reason = "InternalError"


class Unavailable(ApiError):
    code = 503
    reason = "ServiceUnavailable"


class NotConnected(Unavailable):
    """No connection to the server could be made: it is not the server that says so."""


class Timeout(ApiError):
    code = 504
    reason = "Timeout"


_BY_REASON: dict[str, type[ApiError]] = {
    cls.reason: cls
    for cls in (
        BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable, AlreadyExists, Conflict,
        Gone, Expired, TooLarge, UnsupportedMediaType, Invalid, TooManyRequests, Internal, Unavailable, Timeout,
    )
}  # fmt: skip
_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound, 405: MethodNotAllowed, 406: NotAcceptable,
    409: Conflict, 410: Expired, 413: TooLarge, 415: UnsupportedMediaType, 422: Invalid, 429: TooManyRequests,
    500: Internal, 502: Unavailable, 503: Unavailable, 504: Timeout,
}  # fmt: skip


def from_status(status: Mapping[str, Any], *, code: int = 0, retry_after: int = 0) -> ApiError:
    """The exception for a Status body. An unknown reason falls back on the code, an unknown code on ApiError."""
    details = status.get("details") or {}
    code = int(status.get("code") or code or 500)
    reason = status.get("reason") or ""
    cls = _BY_REASON.get(reason) or _BY_CODE.get(code, ApiError)
    error = cls(
        status.get("message") or reason or f"the server answered {code}",
        group=details.get("group", ""),
        kind=details.get("kind", ""),
        name=details.get("name", ""),
        uid=details.get("uid", ""),
        causes=[
            Cause(c.get("reason", ""), c.get("message", ""), c.get("field", "")) for c in details.get("causes") or ()
        ],
        retry_after=int(details.get("retryAfterSeconds") or retry_after or 0),
        code=code,
        reason=reason,
    )
    error._received = status
    return error


def not_found(group: str, plural: str, name: str) -> NotFound:
    """As the API server words it: `machines.cluster.x-k8s.io "a" not found`."""
    return NotFound(f'{_qualified(group, plural)} "{name}" not found', group=group, kind=plural, name=name)


def already_exists(group: str, plural: str, name: str) -> AlreadyExists:
    return AlreadyExists(f'{_qualified(group, plural)} "{name}" already exists', group=group, kind=plural, name=name)


def conflict(group: str, plural: str, name: str, why: str) -> Conflict:
    return Conflict(
        f'Operation cannot be fulfilled on {_qualified(group, plural)} "{name}": {why}',
        group=group,
        kind=plural,
        name=name,
    )


def invalid(group: str, kind: str, name: str, causes: Iterable[Cause]) -> Invalid:
    """As the API server words it: `Machine.cluster.x-k8s.io "a" is invalid: [field: message, field: message]`."""
    causes = tuple(causes)
    texts = [f"{c.field}: {c.message}" if c.field else c.message for c in causes]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return Invalid(
        f'{_qualified(group, kind)} "{name}" is invalid: {text}', group=group, kind=kind, name=name, causes=causes
    )


def _qualified(group: str, plural: str) -> str:
    return f"{plural}.{group}" if group else plural
