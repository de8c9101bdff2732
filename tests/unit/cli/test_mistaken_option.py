"""What is mistyped on the command line is reported in one line, with what was meant, before anything is written."""

from __future__ import annotations

import re
import socket
import sys
import types
from pathlib import Path

import pytest
from click.testing import CliRunner

from homeport.app.settings import SettingsError, parse_by_name, parse_listen
from homeport.cli.main import group


def error_of(*args: str) -> str:
    done = CliRunner().invoke(group, list(args), prog_name="homeport")
    assert done.exit_code == 2
    return str(done.stderr).strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (("upp",), "homeport up"),
        (("Staus",), "homeport status"),
        (("rollout", "statuss"), "homeport rollout status"),
        (("sim", "prsm"), "homeport sim prism"),
        (("orphans", "lst"), "homeport orphans list"),
    ],
)
def test_a_mistyped_verb_suggests_the_nearest_one(args: tuple[str, ...], meant: str) -> None:
    assert error_of(*args) == f"Error: No such command {args[-1]!r}: did you mean '{meant}'?"


def test_a_verb_that_resembles_none_lists_them() -> None:
    assert error_of("xyzzy").startswith("Error: No such command 'xyzzy': expected one of up, down, ")


def test_a_name_to_listen_on_that_no_resolver_knows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    data = tmp_path / "data"
    text = error_of("up", "--data", str(data), "--listen", "nonsense")
    assert text == (
        "Error: --listen 'nonsense': 'nonsense' is neither an address nor a known name (Name or service not known): "
        "expected for example 127.0.0.1:6443"
    )
    assert not data.exists()


@pytest.mark.parametrize("text", ["[::1", "::1]:6443", "[::1:6443"])
def test_an_address_with_one_bracket_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"--listen '.*bracket"):
        parse_listen(text)


def test_an_unknown_simulator_is_named() -> None:
    expected = (
        "--sim-listen prsm=127.0.0.1:1: unknown simulator 'prsm': expected prism=127.0.0.1:1 or harvester=127.0.0.1:1"
    )
    with pytest.raises(SettingsError, match=f"^{re.escape(expected)}$"):
        parse_by_name("--sim-listen", ["prsm=127.0.0.1:1"], ["prism", "harvester"])


def test_a_plugin_that_can_not_be_called_is_refused_with_its_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def many(first: str, second: str, third: str) -> None: ...

    async def later(manager: object) -> None: ...

    def none() -> None: ...

    module = types.ModuleType("mistaken_plugin")
    for function in (many, later, none):
        setattr(module, function.__name__, function)
    monkeypatch.setitem(sys.modules, "mistaken_plugin", module)
    data = tmp_path / "data"
    for name, shown in (("many", "many(first: "), ("later", "async later(manager: "), ("none", "none() -> ")):
        text = error_of("up", "--data", str(data), "--listen", "127.0.0.1:0", "--plugin", f"mistaken_plugin:{name}")
        assert text.startswith(f"Error: --plugin 'mistaken_plugin:{name}': {shown}")
        assert text.endswith("with the parameters manager, or manager and environment")
    assert not data.exists()
