"""Copies of what a plane keeps, for backups: the database, and the volumes of Pods that run as processes."""

from __future__ import annotations

import asyncio
import shutil
import uuid
from pathlib import Path

from homeport.apiserver.auth.pki import PKI
from homeport.apiserver.embedded import SEALED
from homeport.app.settings import Settings
from homeport.builtin.workload.process import copy_claims
from homeport.store import AesGcm, Store


async def copy_database(store: Store, settings: Settings, number: str) -> Path:
    copy = settings.data / f"backup-{number}.db"
    await store.backup(copy)
    return copy


async def copy_volumes(settings: Settings, number: str) -> Path | None:
    """Of Pods that run, or ran, as processes. None: there are none."""
    copy = settings.data / f"backup-{number}.volumes"
    try:
        return copy if await asyncio.to_thread(copy_claims, settings.processes, copy) else None
    except OSError:
        shutil.rmtree(copy, ignore_errors=True)
        raise


async def copy_closed(settings: Settings) -> Path:
    """The database of a plane that does not run."""
    pki = PKI.ensure(settings.pki, [settings.host], data_exists=True)
    store = await Store.open(settings.database, cipher=AesGcm(pki.secrets_key), sealed=SEALED)
    try:
        return await copy_database(store, settings, uuid.uuid4().hex)
    finally:
        await store.close()
