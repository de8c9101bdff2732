"""What a probe found, as the status of a ProviderConfig shows it. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from homeport.api.butler.v1alpha1.providerconfig import (
    ProviderCapacity,
    ProviderConfigStatus,
    ProviderImage,
    ResolvedReference,
)
from homeport.capi.platform import ProbeReport, Room
from homeport.infra.error import ProviderError, policy_of
from homeport.platforms.butler.provider.site import NotSupported, SecretMissing
from homeport.runtime.outcome import Wait

AUTHENTICATED = "Authenticated"
REFERENCES = "ReferencesResolved"
CAPACITY = "CapacityKnown"
CONDITIONS = (AUTHENTICATED, REFERENCES, CAPACITY)
_MOST_IMAGES = 200

Put = Callable[[str, Literal["True", "False", "Unknown"], str, str], None]


def reason_of(error: ProviderError) -> str:
    """The reason of a condition: in the words that say what to do, not in those of the vendor."""
    if isinstance(error, NotSupported):
        return "ProviderNotSupported"
    if isinstance(error, SecretMissing):
        return "SecretNotFound"
    if ("certificate" in error.message and "not trusted" in error.message) or error.message.startswith("TLS with "):
        return "CertificateNotTrusted"
    return {"AccessDenied": "CredentialsInvalid"}.get(policy_of(error).reason, policy_of(error).reason)


def put_failure(put: Put, error: ProviderError) -> None:
    """The vendor could not be asked: nothing is known about what the ProviderConfig names."""
    put(AUTHENTICATED, "False", reason_of(error), error.message)
    for kind in (REFERENCES, CAPACITY):
        put(kind, "Unknown", "NotProbed", "the provider could not be asked")


def put_report(put: Put, report: ProbeReport) -> Wait | None:
    """Sets the conditions. A Wait: machines can't be made with what the ProviderConfig names."""
    put(AUTHENTICATED, "True", "Succeeded", f"version {report.version}" if report.version else "")
    if report.room is not None:
        put(CAPACITY, "True", "Succeeded", describe_room(report.room))
    else:
        put(CAPACITY, "False", "NotKnown", report.unknown_room)
    wrong = [each for each in report.problems if not each.advisory]
    notes = "; ".join(each.message for each in report.problems if each.advisory)
    if not wrong:
        put(REFERENCES, "True", "Succeeded", notes)
        return None
    text = "; ".join(each.message for each in wrong)
    put(REFERENCES, "False", wrong[0].reason, text)
    return Wait(wrong[0].reason, text, warning=True)


def put_findings(status: ProviderConfigStatus, report: ProbeReport) -> None:
    status.provider_version = report.version
    status.resolved = [
        ResolvedReference(field=each.field, name=each.name, id=each.id, candidates=list(each.candidates))
        for each in report.resolved
    ]
    usable = [each for each in report.images if each.usable]
    status.images = [ProviderImage(name=each.name, id=each.id, os=each.system) for each in usable[:_MOST_IMAGES]]
    capacity = status.capacity or ProviderCapacity()
    capacity.memory = f"{report.room.memory_bytes >> 30}Gi" if report.room is not None else ""
    free = report.room.cpu if report.room is not None else None
    capacity.cpu = str(int(free)) if free is not None else ""
    status.capacity = capacity


def describe_room(room: Room) -> str:
    cpus = f" and {room.cpu:.0f} CPUs" if room.cpu is not None else ""
    return (
        f"{room.memory_bytes >> 30} GiB of {room.total_memory_bytes >> 30} GiB of memory{cpus} are free on "
        f"{room.hosts} hosts"
    )
