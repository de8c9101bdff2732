"""Archives of a plane: what is damaged is refused by the name that the user gave, before anything is touched."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from homeport.app.backup.archive import ArchiveError, restore_archive, write_archive
from homeport.app.plane.earlier import read_earlier
from homeport.cli.plane.restore import command
from homeport.store import Store

KEYS = ("ca.crt", "ca.key", "sa.key", "secrets.key")


@pytest.fixture
async def archive(tmp_path: Path) -> Path:
    store = await Store.open(tmp_path / "state.db")
    for number in range(200):
        await store.put("pods", f"p{number}", lambda revision: b"x" * 1000, expect=0)
    copy = tmp_path / "copy.db"
    await store.backup(copy)
    await store.close()
    pki = tmp_path / "pki"
    pki.mkdir()
    for name in KEYS:
        (pki / name).write_bytes(name.encode() * 20)
    made = tmp_path / "plane.backup"
    write_archive(copy, pki, made, version="1")
    return made


def members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def rewritten(archive: Path, contents: dict[str, bytes]) -> None:
    with tarfile.open(archive, "w") as tar:
        for name, content in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))


def truncated(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:100_000])


def flipped(archive: Path) -> None:
    """One byte in the middle of the database, where SQLite itself does not look."""
    content = bytearray(archive.read_bytes())
    content[content.index(b"x" * 500) + 250] ^= 1
    archive.write_bytes(content)


def foreign_database(archive: Path) -> None:
    """As an archive without digests could hold it."""
    rewritten(
        archive, {**members(archive), "homeport.json": b'{"format":1,"version":"0","created":0}', "state.db": b"no"}
    )


def without_keys(archive: Path) -> None:
    rewritten(archive, {name: content for name, content in members(archive).items() if name != "pki/secrets.key"})


def changed_key(archive: Path) -> None:
    rewritten(archive, {**members(archive), "pki/ca.key": b"another"})


def bad_manifest(archive: Path) -> None:
    rewritten(archive, {**members(archive), "homeport.json": b'{"format":'})


def not_a_tar(archive: Path) -> None:
    archive.write_bytes(b"\x1f\x8b" + b"\0" * 5000)


DAMAGES = (truncated, flipped, foreign_database, without_keys, changed_key, bad_manifest, not_a_tar)


@pytest.fixture(params=DAMAGES, ids=lambda damage: damage.__name__)
def damaged(request: pytest.FixtureRequest, archive: Path) -> Path:
    damage: Callable[[Path], None] = request.param
    damage(archive)
    return archive


async def test_a_damaged_backup_is_refused_by_its_own_name_and_leaves_nothing_behind(
    damaged: Path, tmp_path: Path
) -> None:
    target = tmp_path / "new" / "data"
    refused = CliRunner().invoke(command, [str(damaged), "--data", str(target)])
    assert refused.exit_code == 1
    assert str(damaged) in refused.output
    assert "use another backup" in refused.output
    assert "homeport-restore-" not in refused.output
    assert not target.parent.exists()


async def test_a_damaged_backup_leaves_what_is_there_as_it_is(damaged: Path, tmp_path: Path) -> None:
    target = tmp_path / "data"
    target.mkdir()
    (target / "state.db").write_bytes(b"precious")
    with pytest.raises(ArchiveError, match="use another backup"):
        restore_archive(damaged, target / "state.db", target / "pki")
    assert {path.name: path.read_bytes() for path in target.iterdir()} == {"state.db": b"precious"}


async def test_a_whole_backup_is_restored_with_its_keys(archive: Path, tmp_path: Path) -> None:
    target = tmp_path / "data"
    assert restore_archive(archive, target / "state.db", target / "pki").objects == 200
    assert target.stat().st_mode & 0o077 == 0  # secrets are in it
    assert sorted(path.name for path in (target / "pki").iterdir()) == sorted(KEYS)


async def test_a_restored_site_is_simulated_again_at_the_next_start(archive: Path, tmp_path: Path) -> None:
    rewritten(archive, {**members(archive), "sim/prism/world.json": b"{}"})
    target = tmp_path / "copy"
    done = CliRunner().invoke(command, [str(archive), "--data", str(target)])
    assert done.exit_code == 0, done.output
    assert done.output.endswith(f"next: homeport up --data {target}\n")
    assert read_earlier(target).simulators == ("prism",)


async def test_a_backup_without_digests_is_still_restored(archive: Path, tmp_path: Path) -> None:
    rewritten(archive, {**members(archive), "homeport.json": b'{"format":1,"version":"0","created":0}'})
    assert restore_archive(archive, tmp_path / "data" / "state.db", tmp_path / "data" / "pki").objects == 200


async def test_volumes_are_restored_where_there_are_none_and_kept_where_there_are(
    archive: Path, tmp_path: Path
) -> None:
    source, volumes = tmp_path / "source", tmp_path / "data" / "workload" / "claims"
    member = source / "homeport-system" / "data-datastore-0" / "member"
    member.mkdir(parents=True)
    (member / "db").write_bytes(b"old")
    (member / "0.tmp").write_bytes(b"prepared for later")
    database, keys = tmp_path / "state.db", tmp_path / "keys"
    keys.mkdir()
    database.write_bytes(members(archive)["state.db"])
    for name in KEYS:
        (keys / name).write_bytes(members(archive)[f"pki/{name}"])
    target = tmp_path / "with-volumes.backup"
    write_archive(database, keys, target, version="1", volumes=source)
    place = volumes / member.relative_to(source)
    for content in (b"old", b"younger"):
        restore_archive(target, tmp_path / "data" / "state.db", tmp_path / "data" / "pki", volumes=volumes)
        assert {each.name: each.read_bytes() for each in place.iterdir()} == {"db": content}
        assert place.stat().st_mode & 0o077 == 0
        (place / "db").write_bytes(b"younger")
