"""The commands that messages tell the user to run next, with the options that the user has to repeat."""

from __future__ import annotations

import shlex
from pathlib import Path

from homeport.app.plane.earlier import read_earlier
from homeport.app.settings import DEFAULT_DATA, Settings


def on_data(verb: str, data: Path) -> str:
    """`homeport VERB --data DIR`, without the option for the default directory."""
    named = "" if data == DEFAULT_DATA.expanduser().absolute() else f" --data {shlex.quote(str(data))}"
    return f"homeport {verb}{named}"


def up_command(settings: Settings) -> str:
    """`homeport up` on this data directory. It remembers the simulators, unless the last start had none."""
    forgotten = settings.simulated_before and not read_earlier(settings.data).simulators
    return on_data("up", settings.data) + (" --sim" if forgotten else "")
