"""Port 22 of simulated machines."""

from __future__ import annotations

from typing import Any

import asyncssh
import pytest

from homeport.runtime.testing import virtual
from homeport.sim.network.book import OUTSIDE
from unit.sim.machine.sim_kit import Sim, simulation

ADDRESS = "10.0.0.77"


def _user_data(key: Any, options: str = "") -> bytes:
    public = key.export_public_key().decode().strip()
    return (
        "#cloud-config\n"
        "users:\n- default\n- name: visitor\n  ssh_authorized_keys:\n"
        f"  - '{options}{public}'\n"
        f"ssh_authorized_keys:\n- {public}\n"
        "write_files:\n- {path: /etc/motd, content: hello}\n"
        "runcmd:\n- echo success > /run/done\n"
    ).encode()


async def _run(s: Sim, key: Any, user: str, command: str) -> Any:
    sock = await s.network.connect(OUTSIDE, ADDRESS, 22)
    async with asyncssh.connect(
        ADDRESS, 22, sock=sock, username=user, client_keys=[key], known_hosts=None, config=None, agent_path=None
    ) as connection:
        return await connection.run(command, check=False)


@virtual
async def test_users_of_the_user_data_log_in_with_their_keys_and_run_commands() -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    async with simulation() as s:
        s.power_on("one", _user_data(key), address=ADDRESS)
        await s.fleet.settled()
        for user in ("visitor", "ubuntu"):
            ran = await _run(s, key, user, "cat /etc/motd")
            assert (ran.exit_status, ran.stdout) == (0, "hello")
        failed = await _run(s, key, "visitor", "cat /etc/absent")
        assert (failed.exit_status, failed.stderr) == (1, "cat: /etc/absent: No such file or directory\n")
        for user, other in (("nobody", key), ("visitor", asyncssh.generate_private_key("ssh-ed25519"))):
            with pytest.raises(asyncssh.PermissionDenied):
                await _run(s, other, user, "cat /etc/motd")


@virtual
async def test_a_key_with_a_command_runs_nothing_else_and_run_is_empty_after_a_restart() -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")
    async with simulation() as s:
        s.power_on("one", _user_data(key, 'restrict,command="cat /run/done" '), address=ADDRESS)
        await s.fleet.settled()
        ran = await _run(s, key, "visitor", "rm /etc/motd")
        assert (ran.exit_status, ran.stdout) == (0, "success\n")
        assert (await _run(s, key, "ubuntu", "cat /etc/motd")).stdout == "hello"
        s.power_off("one")
        with pytest.raises(OSError, match="no route to host"):
            await _run(s, key, "visitor", "")
        s.power_on("one", again=True, address=ADDRESS)
        await s.fleet.settled()
        assert (await _run(s, key, "visitor", "")).exit_status == 1
