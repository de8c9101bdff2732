"""A directory as a side of a move."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from homeport.client.errors import AlreadyExists, Conflict, NotFound
from homeport.client.protocol import Key, MergePatch, Query
from homeport.move import MoveRefused
from homeport.move.directory import Directory
from homeport.move.side import DEFINITION, SECRET, identity
from homeport.runtime.testing import plane

KEY = Key("a", "s")
BODY = {"metadata": {"name": "s", "namespace": "a"}, "data": {"k": "dg=="}}


def files(folder: Path) -> dict[str, int]:
    return {each.name: stat.S_IMODE(each.stat().st_mode) for each in folder.iterdir()}


async def test_objects_are_created_read_changed_and_deleted_in_files_that_only_the_owner_reads(tmp_path: Path) -> None:
    folder = Directory(tmp_path)
    made = await folder.create(BODY, kind=SECRET)
    assert files(tmp_path) == {"Secret_a_s.json": 0o600}
    with pytest.raises(AlreadyExists):
        await folder.create(BODY, kind=SECRET)
    changed = await folder.patch(
        SECRET, KEY, MergePatch({"metadata": {"uid": made.uid}, "data": {"k": None, "l": "bA=="}})
    )
    assert changed["data"] == {"l": "bA=="}
    with pytest.raises(Conflict):
        await folder.replace(made, kind=SECRET)
    with pytest.raises(Conflict):
        await folder.patch(SECRET, KEY, MergePatch({"metadata": {"uid": "another"}}))
    assert [each.name for each in (await folder.list(SECRET, Query(namespace="a"))).items] == ["s"]
    assert (await folder.list(SECRET, Query(namespace="b"))).items == []
    with pytest.raises(Conflict):
        await folder.delete(SECRET, KEY, uid="another")
    await folder.delete(SECRET, KEY, uid=made.uid)
    with pytest.raises(NotFound):
        await folder.get(SECRET, KEY)


async def test_a_directory_keeps_its_identity_and_is_cleared_when_its_last_object_leaves(tmp_path: Path) -> None:
    async with plane() as p:
        folder = Directory(tmp_path)
        with pytest.raises(MoveRefused, match="contains no objects of a move"):
            folder.check_source()
        await folder.prepare(p.client)
        first = await identity(folder)
        await folder.prepare(p.client)
        assert await identity(folder) == first
        assert (await folder.list(DEFINITION)).items == []
        await folder.create(BODY, kind=SECRET)
        folder.clear()
        folder.check_source()
        await folder.delete(SECRET, KEY)
        folder.clear()
        assert files(tmp_path) == {}


async def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    async with plane() as p:
        with pytest.raises(MoveRefused, match="is not empty"):
            await Directory(tmp_path).prepare(p.client)
    assert set(files(tmp_path)) == {"notes.txt"}
