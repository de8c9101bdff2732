"""Refusals as an API server passes them on from Harvester's webhooks."""

from __future__ import annotations

from homeport.client.errors import ApiError, Cause, Conflict, Internal, Invalid

_DENIED = 'admission webhook "validator.harvesterhci.io" denied the request: '
_UNCHANGED = 'admission webhook "mutator.harvesterhci.io" denied the request: '


def invalid(message: str, field: str) -> ApiError:
    causes = (Cause("FieldValueInvalid", message, field),)
    return Invalid(_DENIED + message, causes=causes)


def conflicting(message: str) -> ApiError:
    return Conflict(_DENIED + message)


def failed(message: str) -> ApiError:
    """The webhook could not decide."""
    return Internal(_DENIED + message)


def unchangeable(message: str) -> ApiError:
    """The mutating webhook found something that it can't work with."""
    return Internal(_UNCHANGED + message)
