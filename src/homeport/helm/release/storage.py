"""The Secrets in which the revisions of releases are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from homeport.api.meta import Resource, Unstructured
from homeport.client.absence import drop_object
from homeport.client.errors import TooLarge
from homeport.client.protocol import Client, Key, Query, Write
from homeport.helm.errors import ReleaseError
from homeport.helm.release.content import chart_record
from homeport.helm.release.record import (
    DEPLOYED,
    HELM,
    SECRET_FAMILY,
    Ledger,
    Release,
    encode,
    from_secret,
    secret_name,
    to_secret,
)
from homeport.runtime.clock import Clock

SECRET = Resource("", "v1", "Secret", "secrets")
# The name under which Helm writes, so that managed fields tell the same story whoever wrote.
WRITE = Write(field_manager="helm")
LARGEST_BYTES = 1 << 20  # of a Secret
ROOM_BYTES = 16 << 10  # that a new record leaves for what is recorded later: runs of hooks, why it failed


class Storage:
    """Releases of one cluster. Updates raise Conflict if the record changed since it was read."""

    def __init__(self, client: Client, clock: Clock, ledger: Ledger = HELM) -> None:
        self._client = client
        self._clock = clock
        self._ledger = ledger

    async def history(self, namespace: str, name: str) -> list[Release]:
        """All revisions, the oldest first. A record that can't be read raises: to ignore it would lose its objects."""
        return await self._list(namespace, f"owner={self._ledger.owner},name={name}")

    async def releases(self, namespace: str = "") -> list[Release]:
        """All revisions of all releases, in one namespace or in all."""
        return await self._list(namespace, f"owner={self._ledger.owner}")

    async def _list(self, namespace: str, labels: str) -> list[Release]:
        page = await self._client.list(SECRET, Query(namespace=namespace, labels=labels))
        return await asyncio.to_thread(_unpacked, page.items, self._ledger)  # megabytes each

    async def create(self, release: Release) -> None:
        """Raises AlreadyExists if someone else created this revision first."""
        secret = await asyncio.to_thread(to_secret, release, self._clock.now(), self._ledger)
        self._check_size(release, secret, LARGEST_BYTES - ROOM_BYTES)
        try:
            made = await self._client.create(secret, WRITE, kind=SECRET)
        except TooLarge:
            raise too_large(release.label) from None
        release.resource_version = made.resource_version

    async def update(self, release: Release) -> None:
        secret = await asyncio.to_thread(to_secret, release, self._clock.now(), self._ledger)
        self._check_size(release, secret, LARGEST_BYTES)
        made = await self._client.replace(secret, WRITE, kind=SECRET)
        release.resource_version = made.resource_version

    async def delete(self, release: Release) -> None:
        key = Key(release.namespace, secret_name(release.name, release.version, self._ledger))
        await drop_object(self._client, SECRET, key)

    async def prune(self, history: list[Release], limit: int) -> None:
        """Keep the newest `limit` revisions and the deployed one. 0: keep all."""
        if limit <= 0:
            return
        kept = max((each.version for each in history if each.status == DEPLOYED), default=0)
        surplus = len(history) - limit
        for release in [each for each in history if each.version != kept][: max(0, surplus)]:
            await self.delete(release)
            history.remove(release)

    async def check_chart(self, files: Mapping[str, bytes], label: str) -> None:
        """Before anything is installed: the chart is the largest part of a record. Raises ReleaseError."""
        packed = await asyncio.to_thread(lambda: encode({"chart": chart_record(files)}))
        if len(packed) > LARGEST_BYTES - ROOM_BYTES:
            raise too_large(label)

    def _check_size(self, release: Release, secret: dict[str, object], largest: int) -> None:
        data = secret["data"]
        assert isinstance(data, dict)
        if len(data["release"]) * 3 // 4 > largest:
            raise too_large(release.label)


def too_large(label: str) -> ReleaseError:
    return ReleaseError(
        f"{label} does not fit into a Secret (1 MiB), which is where Helm keeps releases: remove large files from the "
        "chart, for example with .helmignore"
    )


def _unpacked(secrets: Iterable[Unstructured], ledger: Ledger) -> list[Release]:
    """The oldest revision first. Raises ReleaseError."""
    found = []
    for secret in secrets:
        kind = str(secret.get("type", ""))
        if not kind.startswith((SECRET_FAMILY, ledger.type)):
            continue
        try:
            found.append(from_secret(secret, ledger))
        except ValueError as error:
            raise ReleaseError(
                f"Secret {secret.namespace}/{secret.name}: {error}. Restore the Secret from a backup, or delete it; "
                "then the objects of this revision remain until you delete them"
            ) from None
    return sorted(found, key=lambda release: release.version)
