"""Backup while running, and restore."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from homeport.store import AesGcm, Compacted, Store, StoreBusy, StoreDamaged, StoreUnavailable, WrongKey, restore
from homeport.store.layout import restoring_of


def stamped(revision: int) -> bytes:
    return b"at %d" % revision


async def contents(path: Path, **options: object) -> dict[str, bytes]:
    store = await Store.open(path, **options)  # type: ignore[arg-type]
    found = {record.name: record.value for bucket in store.buckets() for record in store.range(bucket)}
    await store.close()
    return found


def files(directory: Path) -> set[str]:
    return {file.name for file in directory.iterdir()}


async def backed_up(path: Path, backup: Path) -> None:
    """A database with three objects, of which the backup has the first two."""
    store = await Store.open(path)
    await store.put("pods", "a", stamped, expect=0)
    await store.put("pods", "b", stamped, expect=0)
    await store.backup(backup)
    await store.put("pods", "c", stamped, expect=0)
    await store.close()


async def test_a_backup_is_one_private_file_that_opens_by_itself(store: Store, tmp_path: Path) -> None:
    await store.put("pods", "a", stamped, expect=0)
    await store.backup(tmp_path / "backup")
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600
    assert files(tmp_path) - {"data"} == {"backup"}
    assert await contents(tmp_path / "backup") == {"a": b"at 1"}


async def test_a_backup_includes_writes_accepted_before_it_and_replaces_an_older_one(
    store: Store, tmp_path: Path
) -> None:
    await store.backup(tmp_path / "backup")
    writing = asyncio.create_task(store.put("pods", "a", stamped, expect=0))
    await asyncio.sleep(0)
    await store.backup(tmp_path / "backup")
    await writing
    assert await contents(tmp_path / "backup") == {"a": b"at 1"}


async def test_a_backup_taken_under_load_is_a_state_that_existed(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    big = bytes(20_000)
    await asyncio.gather(*(store.put("pods", f"big{n}", lambda r: big, expect=0) for n in range(1500)))
    done = False

    async def count_up() -> int:
        n = 0
        while not done:
            n += 1
            await store.put("counters", "left", lambda revision, n=n: b"%d" % n, expect=None)  # type: ignore[misc]
            await store.put("counters", "right", lambda revision, n=n: b"%d" % n, expect=None)  # type: ignore[misc]
        return n

    counting = asyncio.create_task(count_up())
    await asyncio.gather(store.backup(tmp_path / "one"), store.backup(tmp_path / "two"))
    done = True
    total = await counting
    await store.close()
    for name in ("one", "two"):
        found = await contents(tmp_path / name)
        left, right = int(found["left"]), int(found["right"])
        assert 0 <= left - right <= 1
        assert left <= total
        assert sum(len(value) == 20_000 for value in found.values()) == 1500
    assert total > 2, "writes went on meanwhile"


async def test_a_backup_cannot_be_written_over_the_database_itself(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    with pytest.raises(ValueError, match="is the database itself"):
        await store.backup(tmp_path / "." / "homeport.db")
    with pytest.raises(FileNotFoundError):
        await store.backup(tmp_path / "nowhere" / "backup")
    assert (await store.put("pods", "a", stamped, expect=0)).revision == 1
    await store.close()


async def test_a_cancelled_backup_leaves_nothing_behind_and_writes_go_on(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    big = bytes(50_000)
    await asyncio.gather(*(store.put("pods", f"big{n}", lambda r: big, expect=0) for n in range(1500)))
    copying = asyncio.create_task(store.backup(tmp_path / "backup"))
    while "backup.partial" not in files(tmp_path):
        await store.flush()
    copying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await copying
    await store.put("pods", "a", stamped, expect=0)
    assert files(tmp_path) == {"homeport.db", "homeport.db-wal", "homeport.db.lock", "homeport.db.reserve"}
    await store.backup(tmp_path / "backup")
    await store.close()
    assert len(await contents(tmp_path / "backup")) == 1501


async def test_closing_during_a_backup_ends_it_with_an_error(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    big = bytes(50_000)
    await asyncio.gather(*(store.put("pods", f"big{n}", lambda r: big, expect=0) for n in range(1500)))
    copying = asyncio.create_task(store.backup(tmp_path / "backup"))
    while "backup.partial" not in files(tmp_path):
        await store.flush()
    await store.close()
    with pytest.raises(StoreUnavailable, match="closed"):
        await copying
    assert files(tmp_path) == {"homeport.db", "homeport.db.lock"}
    assert len(await contents(tmp_path / "homeport.db")) == 1500


async def test_sealed_values_stay_sealed_in_a_backup(tmp_path: Path) -> None:
    sealing = {"cipher": AesGcm(b"k" * 32), "sealed": frozenset({"secrets"})}
    for path in (None, tmp_path / "homeport.db"):
        store = await Store.open(path, **sealing)  # type: ignore[arg-type]
        await store.put("secrets", "a", lambda revision: b"hush", expect=0)
        await store.backup(tmp_path / "backup")
        await store.close()
        assert b"hush" not in (tmp_path / "backup").read_bytes()
        assert await contents(tmp_path / "backup", **sealing) == {"a": b"hush"}
        with pytest.raises(WrongKey):
            await Store.open(tmp_path / "backup", cipher=AesGcm(b"o" * 32))


async def test_a_restore_brings_the_objects_back_and_keeps_the_replaced_file(tmp_path: Path) -> None:
    path, backup = tmp_path / "homeport.db", tmp_path / "backup"
    await backed_up(path, backup)
    done = restore(backup, path, clock=lambda: 1_700_000_000.0)
    assert done.objects == 2
    assert done.replaced == tmp_path / "homeport.db.replaced-20231114T221320Z"
    assert await contents(path) == {"a": b"at 1", "b": b"at 2"}
    assert await contents(done.replaced) == {"a": b"at 1", "b": b"at 2", "c": b"at 3"}
    assert path.stat().st_mode & 0o777 == 0o600
    again = restore(backup, path, clock=lambda: 1_700_000_000.0)
    assert again.replaced == tmp_path / "homeport.db.replaced-20231114T221320Z-2"


async def test_no_revision_of_the_lost_time_is_given_out_again(tmp_path: Path) -> None:
    path, backup = tmp_path / "homeport.db", tmp_path / "backup"
    await backed_up(path, backup)
    given_out = 3
    for now in (1_700_000_000.0, 1_700_000_001.0):
        restore(backup, path, clock=lambda now=now: now)  # type: ignore[misc]
        store = await Store.open(path)
        assert store.compacted == store.revision > given_out
        for old in (0, 2, 3, given_out):
            with pytest.raises(Compacted):
                store.watch("pods", after=old)
            with pytest.raises(Compacted):
                store.range("pods", revision=old)
        record = await store.put("pods", "d", stamped, expect=0)
        given_out = record.revision
        await store.put("pods", "a", stamped, expect=1)
        await store.close()


async def test_a_restore_moves_forward_even_if_the_clock_is_wrong(tmp_path: Path) -> None:
    path, backup = tmp_path / "homeport.db", tmp_path / "backup"
    await backed_up(path, backup)
    assert restore(backup, path, clock=lambda: 5.0).revision >= 1_000_002


async def test_a_restore_where_nothing_was(tmp_path: Path) -> None:
    await backed_up(tmp_path / "homeport.db", tmp_path / "backup")
    done = restore(tmp_path / "backup", tmp_path / "new" / "homeport.db")
    assert done.replaced is None
    assert await contents(tmp_path / "new" / "homeport.db") == {"a": b"at 1", "b": b"at 2"}


async def test_a_database_in_use_is_not_replaced(tmp_path: Path) -> None:
    await backed_up(tmp_path / "homeport.db", tmp_path / "backup")
    store = await Store.open(tmp_path / "homeport.db")
    with pytest.raises(StoreBusy):
        restore(tmp_path / "backup", tmp_path / "homeport.db")
    await store.close()
    assert len(await contents(tmp_path / "homeport.db")) == 3


@pytest.mark.parametrize("damage", ["missing", "empty", "text", "short", "value"])
async def test_a_bad_backup_changes_nothing(tmp_path: Path, damage: str) -> None:
    path, backup = tmp_path / "homeport.db", tmp_path / "backup"
    await backed_up(path, backup)
    if damage == "missing":
        backup.unlink()
    elif damage == "empty":
        os.truncate(backup, 0)
    elif damage == "text":
        backup.write_text("not a database" * 50)
    elif damage == "short":
        os.truncate(backup, backup.stat().st_size // 2)
    else:
        backup.write_bytes(backup.read_bytes().replace(b"at 2", b"at 7"))
    with pytest.raises(StoreDamaged, match=str(backup)):
        restore(backup, path)
    assert files(tmp_path) - {"backup"} == {"homeport.db", "homeport.db.lock"}
    assert len(await contents(path)) == 3


async def test_a_damaged_database_can_be_replaced(tmp_path: Path) -> None:
    path, backup = tmp_path / "homeport.db", tmp_path / "backup"
    await backed_up(path, backup)
    os.truncate(path, 5000)
    done = restore(backup, path)
    assert done.replaced is not None
    assert done.replaced.stat().st_size == 5000
    assert await contents(path) == {"a": b"at 1", "b": b"at 2"}


async def test_an_old_write_ahead_log_is_not_replayed_into_the_restored_file(tmp_path: Path) -> None:
    path, backup = tmp_path / "homeport.db", tmp_path / "backup"
    await backed_up(path, backup)
    store = await Store.open(path)
    await store.put("pods", "lost", stamped, expect=0)
    wal = path.with_name("homeport.db-wal")
    left_by_a_kill = wal.read_bytes()
    await store.close()
    wal.write_bytes(left_by_a_kill)
    done = restore(backup, path)
    assert done.replaced is not None
    assert done.replaced.with_name(done.replaced.name + "-wal").read_bytes() == left_by_a_kill
    assert await contents(path) == {"a": b"at 1", "b": b"at 2"}


async def test_an_interrupted_restore_is_not_taken_for_a_new_installation(tmp_path: Path) -> None:
    path, backup = tmp_path / "homeport.db", tmp_path / "backup"
    await backed_up(path, backup)
    # Killed after the old file was set aside, before the new one got its name.
    path.rename(tmp_path / "homeport.db.replaced-20231114T221320Z")
    restoring_of(path).write_bytes(backup.read_bytes())
    with pytest.raises(StoreDamaged, match="a restore was interrupted; run it again"):
        await Store.open(path)
    restore(backup, path)
    assert await contents(path) == {"a": b"at 1", "b": b"at 2"}


async def test_the_files_of_a_killed_server_can_be_restored_with_their_log(tmp_path: Path) -> None:
    path, copy = tmp_path / "homeport.db", tmp_path / "copy"
    store = await Store.open(path)
    await store.put("pods", "a", stamped, expect=0)
    copy.write_bytes(path.read_bytes())
    copy.with_name("copy-wal").write_bytes(path.with_name("homeport.db-wal").read_bytes())
    await store.close()
    assert restore(copy, tmp_path / "new.db").objects == 1
    assert copy.with_name("copy-wal").stat().st_size > 0
