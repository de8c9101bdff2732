"""How an operator gets to a machine: address, user, key; and what the log and the sizes of machines say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from homeport.api.meta import Unstructured
from homeport.app.machine import login
from homeport.app.machine.find import FoundMachine
from homeport.app.machine.record import parse_line
from homeport.app.machine.size import Size, shown, size_of, total
from homeport.cli.main import group

ADDRESSES = [
    {"type": "Hostname", "address": "m"},
    {"type": "InternalIP", "address": "10.0.0.5"},
    {"type": "ExternalIP", "address": "192.0.2.5"},
]
USERS = [{"name": "you", "sshAuthorizedKeys": ["ssh-ed25519 AAAA you@laptop"]}]


def found(addresses: Any = ADDRESSES, users: Any = USERS, infra: Any = None) -> FoundMachine:
    machine = Unstructured({"metadata": {"name": "m", "namespace": "default"}, "status": {"addresses": addresses}})
    return FoundMachine(machine, infra or {}, {"spec": {"users": users}})


def test_address_user_and_key_are_worked_out() -> None:
    assert login.choose_address(found()) == "192.0.2.5"
    assert login.choose_user(found()) == "you"
    keys = {Path("a"): "ssh-ed25519 BBBB x", Path("b"): "ssh-ed25519 AAAA other comment"}
    assert login.choose_key(found(), "you", keys) == Path("b")
    assert login.choose_key(found(), "root", keys) is None
    assert login.choose_user(found(infra={"spec": {"user": "core"}})) == "core"


def test_what_is_missing_is_named() -> None:
    with pytest.raises(login.NoLogin, match="Machine m reports no address yet"):
        login.choose_address(found(addresses=[]))
    with pytest.raises(login.NoLogin, match="creates no user: name one of the image with --user"):
        login.choose_user(found(users=[]))


def test_a_simulated_machine_is_reached_through_the_proxy_and_a_real_one_checks_its_host_key() -> None:
    real = login.command("192.0.2.5", "you", Path("b"), "", ["uptime"])
    assert real == ["ssh", "-l", "you", "-i", "b", "192.0.2.5", "uptime"]
    simulated = login.command("10.0.0.5", "you", None, "http://127.0.0.1:1", [])
    assert any("homeport.client.pipe http://127.0.0.1:1 %h %p" in each for each in simulated)


def test_public_keys_count_only_with_their_private_half(tmp_path: Path) -> None:
    for name in ("id_a", "id_a.pub", "id_b.pub"):
        (tmp_path / name).write_text(name)
    assert login.read_public(tmp_path) == {tmp_path / "id_a": "id_a.pub"}


def test_lines_of_the_log_are_read_in_both_forms() -> None:
    line = parse_line(
        '{"time":"2026-01-01T00:00:00Z","level":"info","event":"waiting","controller":"c","object":"a/b"}'
    )
    assert (line.level, line.controller, line.object, line.text) == ("info", "c", "a/b", "waiting")
    line = parse_line("18:14:08 info     waiting  controller=machine object=default/x reason=WaitingForNode")
    assert (line.time, line.controller, line.object) == ("18:14:08", "machine", "default/x")
    assert parse_line("no such form").object == ""


def test_sizes_of_both_providers() -> None:
    nutanix = {"kind": "NutanixMachine", "spec": {"vcpuSockets": 2, "vcpusPerSocket": 2, "memorySize": "4Gi"}}
    domain = {"cpu": {"cores": 2}, "memory": {"guest": "8Gi"}}
    kubevirt = {
        "kind": "KubevirtMachine",
        "spec": {"virtualMachineTemplate": {"spec": {"template": {"spec": {"domain": domain}}}}},
    }
    assert (size_of(nutanix), size_of(kubevirt)) == (Size(4, 4 << 30, 0), Size(2, 8 << 30, 0))
    assert total([size_of(nutanix), size_of(kubevirt)]) == Size(6, 12 << 30, 0)
    assert (shown(12 << 30), shown(0)) == ("12Gi", "-")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_each_shell(shell: str) -> None:
    done = CliRunner().invoke(group, ["completion", shell])
    assert (done.exit_code, "_HOMEPORT_COMPLETE" in done.output) == (0, True)


def test_commands_and_options_are_completed() -> None:
    environment = {"_HOMEPORT_COMPLETE": "bash_complete", "COMP_WORDS": "homeport doc", "COMP_CWORD": "1"}
    done = CliRunner().invoke(group, prog_name="homeport", env=environment)
    assert done.output == "plain,doctor\n"


@pytest.mark.parametrize("verb", ["doctor", "logs", "console", "ssh", "top", "support-bundle", "completion"])
def test_each_command_has_help_that_begins_with_a_verb(verb: str) -> None:
    done = CliRunner().invoke(group, [verb, "--help"])
    assert done.exit_code == 0
    assert done.output.startswith("Usage: ")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["logs", "harbour"], "expected KIND/NAME, for example cluster/harbour"),
        (["doctor", "machine", "x"], "expected 'cluster NAME'"),
        (["completion", "tcsh"], "'tcsh' is not one of"),
        (["top", "cluster"], "did you mean 'group top clusters'?"),
    ],
)
def test_mistakes_are_answered_with_what_is_expected(arguments: list[str], text: str) -> None:
    done = CliRunner().invoke(group, arguments)
    assert done.exit_code == 2
    assert text in done.output
