"""Machines that exist already become Nodes over SSH, and are given back as they were."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from conformance.provider.provider_plane import key
from homeport.api.remote.v1beta2 import RemoteMachine
from homeport.client.protocol import MergePatch
from homeport.providers.remote.target import HOST_KEY, OWNER
from scenario.remote.openssh_machine import OpenSshMachine, find_sshd
from scenario.remote.remote_plane import access, remote_plane
from scenario.remote.ssh_machine import SshMachine, ssh_machines

TOKEN = "H4sIAAAAAAAAA-secret-token"


@pytest.fixture(params=[SshMachine, OpenSshMachine], ids=["asyncssh", "openssh"])
def server(request: pytest.FixtureRequest) -> type[SshMachine]:
    if request.param is OpenSshMachine and not find_sshd():
        pytest.skip("needs root and OpenSSH's sshd: apt-get install openssh-server")
    found: type[SshMachine] = request.param
    return found


async def test_a_machine_is_provisioned_and_cleaned_up(tmp_path: Path, server: type[SshMachine]) -> None:
    async with ssh_machines(tmp_path, server=server) as [host], remote_plane(host) as plane:
        token = host.root / "etc" / "k0s.token"
        await plane.machine(
            "one",
            access(host),
            files=[{"path": str(token), "permissions": "0600", "content": TOKEN}],
            commands=["k0s install worker --token-file=/etc/k0s.token", "pwd > where"],
        )
        [machine] = await plane.provisioned("one")
        assert machine.spec.provider_id == f"remote-machine://127.0.0.1:{host.port}"
        assert [(each.type, each.address) for each in machine.status.addresses] == [("InternalIP", "127.0.0.1")]
        assert (token.read_text(), stat.S_IMODE(token.stat().st_mode)) == (TOKEN, 0o600)
        assert host.read("work/where").strip() == str(host.root / "work")
        assert host.calls == ["k0s install worker --token-file=/etc/k0s.token"]
        assert (host.folder / "owner").read_text().strip() == machine.metadata.uid
        assert not (host.folder / "provision.sh").exists()  # it held the token
        assert machine.metadata.annotations[HOST_KEY] == host.host_key
        assert TOKEN not in str(machine)

        await plane.deleted("one")
        assert host.calls[1:] == ["k0s stop", "k0s reset"]
        assert not host.folder.exists()


async def test_a_failed_step_is_reported_and_repeated_alone(tmp_path: Path, server: type[SshMachine]) -> None:
    async with ssh_machines(tmp_path, server=server) as [host], remote_plane(host) as plane:
        host.write("fail-install")
        await plane.machine("one", access(host), commands=["k0s first", "echo hunter2 >&2; k0s install worker"])
        said = await plane.says("one", "BootstrapFailed", "step 2", "exit code 1", "provision.log")
        assert "hunter2" not in said
        assert "hunter2" in (host.folder / "provision.log").read_text()
        (host.root / "fail-install").unlink()
        await plane.touch("one")
        await plane.provisioned("one")
        assert host.calls.count("k0s first") == 1
        assert host.calls.count("k0s install worker") >= 2


async def test_provisioning_goes_on_after_restarts_of_the_controller_and_of_the_machine(
    tmp_path: Path, server: type[SshMachine]
) -> None:
    async with ssh_machines(tmp_path, server=server) as [host], remote_plane(host) as plane:
        waiting = f"k0s waiting; while [ ! -e {host.root}/go ]; do sleep 0.05; done"
        await plane.machine("one", access(host), commands=["k0s first", waiting, "k0s last"])
        await plane.says("one", "provision is at step 2")
        await plane.inner.stop()
        host.reboot()
        host.write("go")
        await plane.inner.start()
        await plane.provisioned("one")
        assert host.calls == ["k0s first", "k0s waiting", "k0s waiting", "k0s last"]


async def test_a_machine_of_another_owner_is_never_touched(tmp_path: Path) -> None:
    async with ssh_machines(tmp_path) as [host], remote_plane(host) as plane:
        await plane.machine("one", access(host), commands=["k0s install worker"])
        await plane.provisioned("one")
        await plane.machine("two", access(host, cleanUpCommands=["k0s destroy"]), commands=["k0s install worker"])
        said = await plane.says("two", "InUse", "mark of another owner")
        assert "delete that folder" in said
        # A copy of the object claims the same identity.
        owner = (host.folder / "owner").read_text().strip()
        await plane.touch("two", **{OWNER: owner})
        await plane.deleted("two")
        assert host.calls == ["k0s install worker"]
        assert (host.folder / "owner").read_text().strip() == owner


async def test_a_machine_with_another_host_key_gets_no_secrets(tmp_path: Path, server: type[SshMachine]) -> None:
    async with ssh_machines(tmp_path, server=server) as [host], remote_plane(host) as plane:
        await plane.machine("one", access(host), commands=["k0s install worker"])
        await plane.provisioned("one")
        await host.stop()
        host.reinstall()
        await host.start()
        sessions = host.sessions
        await plane.inner.delete("one")
        await plane.says("one", "AccessDenied", "host key", "is not the recorded one", HOST_KEY)
        assert host.sessions == sessions
        await plane.touch("one", **{HOST_KEY: host.host_key, "example.com/look": "again"})
        await plane.inner.deleted("one", timeout=20)
        assert "k0s reset" in host.calls


async def test_only_known_hosts_of_the_secret_are_trusted(tmp_path: Path, server: type[SshMachine]) -> None:
    async with ssh_machines(tmp_path, 2) as [host, other]:
        known = f"[127.0.0.1]:{other.port} {other.host_key}\n[127.0.0.1]:{host.port} {other.host_key}\n"
        async with remote_plane(host, known_hosts=known) as plane:
            await plane.machine("good", access(other), commands=["k0s install worker"])
            await plane.machine("bad", access(host), commands=["k0s install worker"])
            await plane.provisioned("good")
            await plane.says("bad", "AccessDenied", "known_hosts")
            assert (host.sessions, host.calls) == (0, [])
            machine = await plane.client.get(RemoteMachine, key("bad"))
            assert HOST_KEY not in machine.metadata.annotations


async def test_commands_run_with_sudo_or_say_what_is_missing(tmp_path: Path, server: type[SshMachine]) -> None:
    async with ssh_machines(tmp_path, server=server) as [host], remote_plane(host) as plane:
        host.write("uid", "1000")
        await plane.machine("one", access(host), commands=["k0s install controller"])
        await plane.says("one", "InvalidConfiguration", "user root is not root", "useSudo")
        await plane.deleted("one")
        await plane.machine(
            "two", access(host, useSudo=True, commandsAsScript=True), commands=["k0s install controller"]
        )
        await plane.says("two", "AccessDenied", "sudo without a password", "/etc/sudoers.d")
        host.write("sudo")
        await plane.touch("two")
        await plane.provisioned("two")
        assert host.read("work/k0s_install.sh").endswith("k0s install controller\n")
        await plane.deleted("two")
        assert host.calls == ["k0s install controller", "k0s etcd leave", "k0s stop", "k0s reset"]


async def test_a_failed_cleanup_keeps_the_machine_until_other_commands_clean_it_up(tmp_path: Path) -> None:
    async with ssh_machines(tmp_path) as [host], remote_plane(host) as plane:
        await plane.machine("one", access(host), commands=["k0s install worker"])
        await plane.provisioned("one")
        host.write("fail-reset")
        await plane.inner.delete("one")
        await plane.says("one", "CleanupFailed", "step 2", "cleanUpCommands")
        assert (host.folder / "owner").exists()

        patch = MergePatch({"spec": {"cleanUpCommands": ["k0s wiped"]}})
        await plane.client.patch(RemoteMachine, key("one"), patch)
        await plane.inner.deleted("one", timeout=20)
        assert host.calls[-1] == "k0s wiped"


async def test_a_machine_that_other_controllers_provisioned_is_taken_over_and_never_cleaned_up(tmp_path: Path) -> None:
    async with ssh_machines(tmp_path) as [host], remote_plane(host) as plane:
        await plane.inner.stop()
        id_ = f"remote-machine://127.0.0.1:{host.port}"
        await plane.machine("one", access(host, providerID=id_), commands=["k0s install worker"])
        status = MergePatch({"status": {"initialization": {"provisioned": True}}})
        await plane.client.patch(RemoteMachine, key("one"), status, subresource="status")
        await plane.inner.start()
        found = await plane.inner.plane.until(RemoteMachine, key("one"), lambda each: bool(each.status.addresses), 20)
        assert found.status.ready
        assert found.metadata.annotations[HOST_KEY] == host.host_key
        await plane.deleted("one")
        assert (host.calls, host.folder.exists()) == ([], False)
