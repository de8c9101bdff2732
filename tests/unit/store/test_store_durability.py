"""What survives a restart, a kill and a damaged file, and who may open the database."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from homeport.store import AesGcm, Store, StoreBusy, StoreDamaged, StoreTooNew, StoreUnavailable, WrongKey

WRITER = """
import asyncio, os, sys
from pathlib import Path
from homeport.store import History, Store

async def write(store, worker):
    for n in range(10**9):
        name = f"w{worker}/{n % 50}"
        if n % 7 == 6 and store.head("pods", name):
            change = await store.delete("pods", name, lambda revision: b"%d" % revision, expect=None)
            line = f"{name} {change.revision} deleted"
        else:
            record = await store.put("pods", name, lambda revision: b"%d" % revision * 400, expect=None)
            line = f"{name} {record.revision} there"
        os.write(1, (line + "\\n").encode())

async def main():
    store = await Store.open(Path(sys.argv[1]), history=History(revisions=300))
    await asyncio.gather(*(write(store, worker) for worker in range(4)))

asyncio.run(main())
"""


def stamped(revision: int) -> bytes:
    return b"at %d" % revision


async def written(path: Path, names: int = 3) -> None:
    store = await Store.open(path)
    for n in range(names):
        await store.put("pods", f"p{n}", stamped, expect=0)
    await store.close()


def run_until_killed(path: Path, lines: int) -> list[tuple[str, int, str]]:
    """What a writing process acknowledged up to its death, some moment after that many lines."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
    assert writer.stdout is not None
    head = [writer.stdout.readline() for _ in range(lines)]
    os.kill(writer.pid, signal.SIGKILL)
    rest = writer.stdout.read().split(b"\n")[:-1]
    writer.stdout.close()
    assert writer.wait() == -signal.SIGKILL
    acknowledged = []
    for line in [*head, *rest]:
        name, revision, state = line.decode().split()
        acknowledged.append((name, int(revision), state))
    return acknowledged


async def test_kill_9_loses_no_acknowledged_write(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    last: dict[str, tuple[int, str]] = {}
    for lines in (1, 40, 333, 1500):
        for name, revision, state in await asyncio.to_thread(run_until_killed, path, lines):
            last[name] = (revision, state)
        store = await Store.open(path)
        assert store.revision >= max(revision for revision, _ in last.values())
        for name, (revision, state) in last.items():
            record = store.get("pods", name)
            found = 0 if record is None else record.revision
            assert record is None or record.value == b"%d" % record.revision * 400
            # What was not acknowledged may have happened as well: then the object has moved on.
            if found <= revision and not deleted_after(store, name, revision):
                assert found == (revision if state == "there" else 0), (name, revision, state, record)
        await store.close()


def deleted_after(store: Store, name: str, revision: int) -> bool:
    after = max(revision, store.compacted)
    return any(change.record is None for change in store._journal.since("pods", after, name) if change.name == name)


async def test_objects_are_back_after_a_restart_and_deleted_ones_stay_away(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    await written(path)
    store = await Store.open(path)
    await store.put("pods", "p0", stamped, expect=1)
    await store.delete("pods", "p1", stamped, expect=2)
    await store.close()
    store = await Store.open(path)
    found = [(record.name, record.value, record.created, record.revision) for record in store.range("pods")]
    assert found == [("p0", b"at 4", 1, 4), ("p2", b"at 3", 3, 3)]
    assert store.revision == 5
    await store.close()


async def test_a_clean_close_leaves_one_private_file_in_a_private_directory(tmp_path: Path) -> None:
    path = tmp_path / "data" / "homeport.db"
    store = await Store.open(path)
    await store.put("pods", "a", stamped, expect=0)
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in path.parent.iterdir()} == {
        "homeport.db": "0o600",
        "homeport.db-wal": "0o600",
        "homeport.db.lock": "0o600",
        "homeport.db.reserve": "0o600",
    }
    assert path.parent.stat().st_mode & 0o777 == 0o700
    await store.close()
    assert {file.name for file in path.parent.iterdir()} == {"homeport.db", "homeport.db.lock"}


async def test_a_file_that_others_could_read_is_made_private(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    await written(path)
    path.chmod(0o644)
    await written_again(path)
    assert path.stat().st_mode & 0o777 == 0o600


async def written_again(path: Path) -> None:
    store = await Store.open(path)
    await store.put("pods", "again", stamped, expect=None)
    await store.close()


async def test_a_second_process_gets_the_holder_of_the_database(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    with pytest.raises(StoreBusy, match=f"in use by process {os.getpid()}") as caught:
        await Store.open(tmp_path / "homeport.db")
    assert caught.value.pid == os.getpid()
    await store.close()
    await written_again(tmp_path / "homeport.db")


async def test_another_program_cannot_change_rows_under_an_open_store(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    other = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('DELETE FROM object')"
    command = [sys.executable, "-c", other, str(tmp_path / "homeport.db")]
    ended = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert "database is locked" in ended.stderr
    await store.close()


async def test_ten_thousand_objects_are_back_quickly(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "homeport.db")
    value = bytes(2600)
    await asyncio.gather(*(store.put("pods", f"ns/p{n}", lambda r: value, expect=0) for n in range(10_000)))
    await store.close()
    begun = time.process_time()
    store = await Store.open(tmp_path / "homeport.db")
    assert store.count("pods") == 10_000
    # Nothing that grows faster than the objects do: far from what it takes, on any machine. bench/ has the figures.
    assert time.process_time() - begun < 10
    await store.close()


def bytes_of(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


async def refused(path: Path, message: str) -> StoreDamaged:
    before = bytes_of(path)
    with pytest.raises(StoreDamaged, match=message) as caught:
        await Store.open(path)
    assert str(path) in str(caught.value)
    assert bytes_of(path) == before, "a damaged file must be left untouched"
    return caught.value


async def test_an_empty_file_is_not_taken_for_a_new_database(tmp_path: Path) -> None:
    (tmp_path / "homeport.db").touch()
    error = await refused(tmp_path / "homeport.db", "the file is empty")
    assert f"homeport restore FILE --data {tmp_path}" in str(error)


async def test_something_else_than_a_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "homeport.db").write_bytes(b"apiVersion: v1\n" * 100)
    await refused(tmp_path / "homeport.db", "not a database")


async def test_a_database_of_another_program_is_refused(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "homeport.db")
    other.execute("CREATE TABLE kine (id)")
    other.commit()
    other.close()
    await refused(tmp_path / "homeport.db", "another program")


@pytest.mark.parametrize("share", [0.001, 0.3, 0.6, 0.95])
async def test_a_truncated_file_is_refused(tmp_path: Path, share: float) -> None:
    path = tmp_path / "homeport.db"
    await written(path, names=2000)
    os.truncate(path, int(path.stat().st_size * share))
    await refused(path, "cut short|damaged|integrity")


async def test_a_flipped_bit_in_an_object_is_noticed_and_the_object_named(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    await written(path)
    data = path.read_bytes()
    path.write_bytes(data.replace(b"at 2", b"at 6"))
    await refused(path, "the bytes of pods 'p1' are damaged")


async def test_a_flipped_bit_in_the_history_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    await written(path)
    store = await Store.open(path)
    await store.put("pods", "p1", lambda revision: b"new", expect=2)
    await store.close()
    path.write_bytes(path.read_bytes().replace(b"at 2", b"at 6"))
    await refused(path, "the history of pods 'p1' is damaged")


async def test_a_row_that_vanished_is_noticed_by_its_history(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    await written(path)
    alter(path, "DELETE FROM object WHERE name = 'p1'")
    await refused(path, "the history of pods 'p1' does not fit")


async def test_an_object_that_is_there_twice_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    await written(path)
    alter(
        path,
        "INSERT INTO object SELECT 99, revision, bucket, name, sealed, checksum, value FROM object WHERE created = 1",
    )
    await refused(path, "pods 'p0' is in it twice")


async def test_a_missing_table_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    await written(path)
    alter(path, "DROP TABLE log")
    await refused(path, "no such table: log")


async def test_a_newer_layout_is_refused_with_both_versions(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    await written(path)
    alter(path, "PRAGMA user_version = 7")
    with pytest.raises(StoreTooNew, match="layout version 7, this Homeport knows up to 1"):
        await Store.open(path)


def alter(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


async def test_a_lost_write_ahead_log_is_not_taken_for_a_healthy_database(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    await asyncio.to_thread(run_until_killed, path, 5)
    wal = path.with_name("homeport.db-wal")
    wal.rename(tmp_path / "elsewhere")
    error = await refused(path, "its write-ahead log homeport.db-wal is missing")
    assert "put the log back" in str(error)
    (tmp_path / "elsewhere").rename(wal)
    await written_again(path)


async def test_a_lost_database_file_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    await asyncio.to_thread(run_until_killed, path, 5)
    path.rename(tmp_path / "elsewhere")
    await refused(path, "the database file is missing")
    assert not path.exists()


async def test_a_damaged_page_is_found_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    await written(path, names=2000)
    await asyncio.to_thread(run_until_killed, path, 5)
    with path.open("r+b") as file:
        file.seek(8192 * 3)
        file.write(b"\xff" * 8192)
    path.with_name("homeport.db-wal").write_bytes(b"")
    await refused(path, "integrity check|damaged")


async def test_a_damaged_free_page_is_found_after_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    store = await Store.open(path)
    await asyncio.gather(*(store.put("pods", f"p{n}", lambda r: bytes(5000), expect=0) for n in range(50)))
    await asyncio.gather(*(store.delete("pods", f"p{n}", stamped, expect=None) for n in range(50)))
    await store.compact(100)
    await store.close()
    alter(path, "UPDATE setting SET value = 0 WHERE name = 'clean'")
    path.with_name("homeport.db-wal").touch()
    with path.open("r+b") as file:
        file.seek(32)
        first_free_page = int.from_bytes(file.read(4))
        file.seek((first_free_page - 1) * 8192)
        file.write(b"\xff" * 8192)
    await refused(path, "the integrity check found: ")


async def test_a_refused_open_keeps_the_newest_writes_in_the_log(tmp_path: Path) -> None:
    path, killed = tmp_path / "homeport.db", tmp_path / "killed.db"
    store = await Store.open(path, cipher=AesGcm(b"k" * 32))
    await store.put("pods", "a", stamped, expect=0)
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{killed}{suffix}")
    await store.close()
    log = bytes_of(tmp_path / "killed.db-wal")
    with pytest.raises(WrongKey):
        await Store.open(killed, cipher=AesGcm(b"o" * 32))
    assert bytes_of(tmp_path / "killed.db-wal") == log
    store = await Store.open(killed, cipher=AesGcm(b"k" * 32))
    assert store.count("pods") == 1
    await store.close()


async def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=r"cannot open .*homeport\.db"):
        await Store.open(tmp_path / "file" / "homeport.db")
    assert (tmp_path / "file").read_bytes() == b""


async def test_a_refused_open_leaves_the_database_free(tmp_path: Path) -> None:
    path = tmp_path / "homeport.db"
    path.touch()
    await refused(path, "empty")
    path.unlink()
    await written_again(path)
