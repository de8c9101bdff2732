"""The version, in the two ways in which people ask for it."""

from __future__ import annotations

from click.testing import CliRunner

from homeport import __version__
from homeport.cli.main import group


def test_the_option_prints_what_the_command_prints() -> None:
    option, command = (CliRunner().invoke(group, [asked]) for asked in ("--version", "version"))
    assert (option.exit_code, command.exit_code) == (0, 0)
    assert option.output == command.output
    assert __version__ in option.output
