"""Brings an image to a provider: creates an ImageSync and follows it."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from homeport.api.butler.v1alpha1 import ImageSync
from homeport.client.protocol import Client, Key, Query, Write

_WRITE = Write(field_manager="homeport-image", field_validation="Strict")


class UploadFailed(Exception):
    """The image did not get there; says why and what to do."""


async def hold_image(client: Client, key: Key, provider_config: Key, source: Mapping[str, str], title: str) -> None:
    """The ImageSync. Safe to repeat."""
    body: dict[str, Any] = {
        **ImageSync.__resource__.type_meta,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "providerConfigRef": {"name": provider_config.name, "namespace": provider_config.namespace},
            "source": dict(source),
            "displayName": title,
        },
    }
    await client.apply(body, _WRITE, kind=ImageSync.__resource__)


async def follow_image(client: Client, key: Key) -> AsyncIterator[ImageSync]:
    """Each state that it reports, until it is Ready. Raises UploadFailed."""
    query = Query(namespace=key.namespace, fields=f"metadata.name={key.name}")
    async with client.watch(ImageSync, query, initial_events=True) as events:
        async for event in events:
            if event.type == "DELETED":
                raise UploadFailed(f"ImageSync {key} was deleted")
            if event.type == "BOOKMARK":
                continue
            status = event.object.status
            if status.phase == "Failed":
                raise UploadFailed(f"ImageSync {key}: {status.failure_message or status.failure_reason}")
            yield event.object
            if status.phase == "Ready":
                return


def stage_file(file: Path, folder: Path) -> str:
    """Copies the file to where the plane may upload from; returns its name there."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / file.name
    if not (target.exists() and target.samefile(file)):
        part = folder / f".{file.name}.part"
        shutil.copyfile(file, part)
        part.replace(target)
    return file.name
