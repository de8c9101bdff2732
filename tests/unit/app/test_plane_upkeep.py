"""What the plane reports about its certificates and backups."""

from __future__ import annotations

import time
from pathlib import Path

from homeport.apiserver.auth.pki import PKI
from homeport.app.backup.note import last_backup, note_backup
from homeport.app.report.expiry import certificates


def test_the_last_backup_is_known_and_private(tmp_path: Path) -> None:
    assert last_backup(tmp_path) is None
    note_backup(tmp_path, Path("/safe/one.tar"))
    note_backup(tmp_path, Path("/safe/two.tar"))
    found = last_backup(tmp_path)
    assert found is not None
    assert found.file == "/safe/two.tar"
    assert abs(found.written - time.time()) < 60
    assert (tmp_path / "backup.json").stat().st_mode & 0o777 == 0o600


def test_a_note_that_can_not_be_written_or_read_does_no_harm(tmp_path: Path) -> None:
    note_backup(tmp_path / "missing", Path("/safe/one.tar"))
    (tmp_path / "backup.json").write_text("{")
    assert last_backup(tmp_path) is None


def test_each_certificate_of_the_plane_has_its_end(tmp_path: Path) -> None:
    pki = PKI.ensure(tmp_path / "pki", ["127.0.0.1"])
    found = {each.name: each for each in certificates(pki)}
    assert list(found) == ["CA", "API server", "administrator"]
    assert not found["CA"].renewed
    assert found["API server"].renewed
    assert time.time() < found["API server"].until < found["CA"].until
    pki.admin_path.unlink()
    assert [each.name for each in certificates(pki)] == ["CA", "API server"]
