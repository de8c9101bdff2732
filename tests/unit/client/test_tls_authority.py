"""The authority of an API server in a file that somebody else renews."""

from __future__ import annotations

from pathlib import Path

import trustme

from homeport.client.config import Config
from homeport.client.credential import REREAD_SECONDS
from homeport.client.wire.tls import Authority


def test_a_renewed_file_is_read_after_a_while_and_a_broken_one_is_ignored(tmp_path: Path) -> None:
    old, new = (trustme.CA().cert_pem.bytes() for _ in range(2))
    file, now = tmp_path / "ca.crt", [100.0]
    file.write_bytes(old)
    authority = Authority(Config("https://localhost", ca=old, ca_file=file), monotonic=lambda: now[0])
    first = authority.read()
    file.write_bytes(old + new)
    assert authority.read() is first
    now[0] += REREAD_SECONDS
    renewed = authority.read()
    assert renewed == old + new
    now[0] += REREAD_SECONDS
    assert authority.read() is renewed
    file.write_text("half of a fi")
    now[0] += REREAD_SECONDS
    assert authority.read() is renewed
    file.unlink()
    now[0] += REREAD_SECONDS
    assert authority.read() is renewed


def test_an_authority_without_a_file_stays(tmp_path: Path) -> None:
    ca = trustme.CA().cert_pem.bytes()
    assert Authority(Config("https://localhost", ca=ca)).read() is ca
