"""How to log in to a machine: user, address and key, from its objects and the keys of the person who asks. Pure."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from homeport.app.machine.find import FoundMachine


class NoLogin(Exception):
    """There is no way to log in; the text says what is missing."""


def users_of(bootstrap: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Users that the bootstrap configuration creates."""
    return list((bootstrap.get("spec") or {}).get("users") or ())


def choose_user(found: FoundMachine) -> str:
    """The user of a RemoteMachine, or the first that the bootstrap configuration creates."""
    remote = (found.infra.get("spec") or {}).get("user")
    names = [str(each["name"]) for each in users_of(found.bootstrap) if each.get("name")]
    if remote or names:
        return str(remote or names[0])
    raise NoLogin(
        f"Machine {found.machine.name}: its bootstrap configuration creates no user: name one of the image with "
        "--user, or add users with sshAuthorizedKeys to the bootstrap configuration"
    )


def choose_key(found: FoundMachine, user: str, public: Mapping[Path, str]) -> Path | None:
    """The private key that the machine accepts; None: ssh decides. `public`: public keys by file of the private one."""
    accepted = {
        _essence(key)
        for each in users_of(found.bootstrap)
        if each.get("name") == user
        for key in each.get("sshAuthorizedKeys") or ()
    }
    return next((file for file, text in public.items() if _essence(text) in accepted), None)


def _essence(key: str) -> tuple[str, ...]:
    """Type and key, without the comment."""
    return tuple(key.split()[:2])


def choose_address(found: FoundMachine) -> str:
    if not found.addresses:
        raise NoLogin(f"Machine {found.machine.name} reports no address yet: see 'homeport describe cluster'")
    return found.addresses[0]


def command(address: str, user: str, key: Path | None, proxy: str, more: Sequence[str]) -> list[str]:
    """For exec. `proxy`: of the simulated network."""
    made = ["ssh", "-l", user]
    if key is not None:
        made += ["-i", str(key)]
    if proxy:
        through = f"{shlex.quote(sys.executable)} -m homeport.client.pipe {shlex.quote(proxy)} %h %p"
        # Addresses of a simulation are used again, with other host keys.
        made += [
            "-o",
            f"ProxyCommand={through}",
            "-o",
            "StrictHostKeyChecking=no",
            "-o",
            "UserKnownHostsFile=/dev/null",
        ]
        made += ["-o", "LogLevel=ERROR"]
    return [*made, address, *more]


def read_public(folder: Path) -> dict[Path, str]:
    """The public keys of a person, by the file of the private key."""
    found = {}
    for file in sorted(folder.glob("*.pub")):
        private = file.with_suffix("")
        if private.exists():
            found[private] = file.read_text(errors="replace")
    return found
