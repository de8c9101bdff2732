"""How hypervisors and workload clusters are dialled: what the options take, and what they refuse."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeport.app.settings import SettingsError
from homeport.cli.plane.dial import read_dial, write_dial
from homeport.client.dial import DIRECT
from homeport.runtime.testing import shared_pki


@pytest.mark.parametrize("proxy", ["127.0.0.1:3128", "https://proxy:3128", "socks5://proxy", "http://"])
def test_an_invalid_http_proxy_is_refused(proxy: str) -> None:
    with pytest.raises(SettingsError, match=r"--proxy .*for example http://proxy\.example:3128"):
        read_dial(proxy, None)


def test_a_file_without_certificates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        read_dial("", tmp_path / "none")
    (tmp_path / "text").write_text("hello")
    with pytest.raises(SettingsError, match="contains no valid PEM certificate"):
        read_dial("", tmp_path / "text")


def test_without_options_everything_is_dialled_directly() -> None:
    assert read_dial("", None) == DIRECT
    assert write_dial("", None) == []


def test_options_are_passed_to_another_process(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(shared_pki().ca_pem)
    read = read_dial("http://127.0.0.1:3128", tmp_path / "ca.crt")
    assert (read.proxy, read.ca_pem) == ("http://127.0.0.1:3128", shared_pki().ca_pem)
    told = write_dial("http://127.0.0.1:3128", tmp_path / "ca.crt")
    assert told == ["--proxy=http://127.0.0.1:3128", f"--trust={tmp_path / 'ca.crt'}"]
