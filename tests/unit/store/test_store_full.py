"""A disk without space: new objects are refused, deletes go through, and nothing is lost."""

from __future__ import annotations

import sys
from pathlib import Path

from homeport.store.record import Change, Record
from homeport.store.reserve import RESERVE_BYTES, Reserve, wins_space
from smalldisk import run_on_small_disk

FILL = """
import asyncio, os, sys
from pathlib import Path
from homeport.store import Store, StoreUnavailable

async def main(path: Path) -> None:
    store = await Store.open(path)
    others = path.with_name("others")  # what else is on the disk
    others.write_bytes(bytes(20_000_000))
    made = 0
    try:
        while True:
            await store.put("pods", f"p{made}", lambda revision: os.urandom(100_000), expect=0)
            made += 1
    except StoreUnavailable as error:
        print(error)
    # The last bytes, too.
    with others.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    head = store.head("pods", "p0")
    marked = await store.put("pods", "p0", lambda revision: head.value[:-1], expect=head.revision)
    await store.delete("pods", "p0", lambda revision: marked.value, expect=marked.revision)
    for number in range(1, 10):
        await store.delete("pods", f"p{number}", lambda revision: b"gone", expect=None)
    print("deleted")
    await store.close()
    others.unlink()
    again = await Store.open(path)
    print(again.count("pods") == made - 10)
    await again.close()

asyncio.run(main(Path(sys.argv[1])))
"""


def test_deletes_go_through_on_a_full_disk_and_are_kept(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    done = run_on_small_disk(disk, "48m", [sys.executable, "-c", FILL, str(disk / "state.db")])
    assert done.returncode == 0, done.stderr
    full, deleted, kept = done.stdout.splitlines()
    assert full == f"disk full: {disk}/state.db: free some space there, or delete objects, then try again"
    assert (deleted, kept) == ("deleted", "True")


def test_space_is_put_aside_once_and_readable_by_its_owner_alone(tmp_path: Path) -> None:
    reserve = Reserve(tmp_path / "state.db")
    reserve.put_aside()
    reserve.put_aside()
    assert reserve.path.stat().st_size == RESERVE_BYTES
    assert reserve.path.stat().st_mode & 0o777 == 0o600
    assert reserve.take()
    assert not reserve.take()


def test_only_what_stores_nothing_new_wins_space() -> None:
    small, large = Record("pods", "a", bytes(10), 1, 1), Record("pods", "a", bytes(5000), 1, 2)
    assert wins_space([Change(2, "pods", "a", None, small, b"")])
    assert wins_space([Change(2, "pods", "a", small, large)])
    assert not wins_space([Change(2, "pods", "a", large, small)])
    assert not wins_space([Change(2, "pods", "a", small, None)])
    assert not wins_space([Change(2, "pods", "b", small, None), Change(3, "pods", "a", None, small, b"")])
