"""Which version of Homeport has worked on a cluster. An older one does not go on there: its definitions may lack fields
that objects have, and what it writes would lose them. The controllers note their version on their Lease, which no
manifest contains: it is still there after Helm or kubectl has put an older version in place."""

from __future__ import annotations

from homeport import __version__
from homeport.api.meta import Unstructured
from homeport.capi.version import is_valid, parse
from homeport.client.absence import find_object
from homeport.client.protocol import Client, Key, Write
from homeport.runtime.lease import LEASE

ANNOTATION = "homeport.dev/version"
_WRITE = Write(field_manager="homeport")


def is_newer(version: str) -> bool:
    """Than this one."""
    return is_valid(version) and parse(version) > parse(__version__)


async def refusal(client: Client, lease: Key) -> str:
    """Why this version must not work here; '' if it may."""
    found = await find_object(client, LEASE, lease)
    version = _noted(found) if found is not None else ""
    if not is_newer(version):
        return ""
    return (
        f"Homeport {version} has worked on this cluster, as Lease {lease} says, and this is the older version "
        f"{__version__}: its definitions may lack fields that objects have, and these would be lost. Install version "
        f"{version} or newer again, with its definitions. To go back in spite of that, run 'kubectl delete lease "
        f"-n {lease.namespace} {lease.name}'"
    )


async def note_version(client: Client, lease: Key) -> None:
    """For the holder of the Lease. Raises ApiError: Conflict if the Lease was renewed meanwhile."""
    found = await client.get(LEASE, lease)
    known = _noted(found)
    if is_valid(known) and parse(known) >= parse(__version__):
        return
    found.metadata.setdefault("annotations", {})[ANNOTATION] = __version__
    await client.replace(found, _WRITE, kind=LEASE)


def _noted(lease: Unstructured) -> str:
    return str((lease.metadata.get("annotations") or {}).get(ANNOTATION, ""))
