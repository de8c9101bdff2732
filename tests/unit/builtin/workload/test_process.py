from __future__ import annotations

import asyncio
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from homeport.builtin.workload.process import ProcessRunner, copy_claims
from homeport.runtime.workload.runner import Launch, Mount, RunError


class Lines(list[str]):
    def __init__(self) -> None:
        self.grew = asyncio.Event()

    def write(self, text: str) -> None:
        self.append(text)
        self.grew.set()

    async def until(self, text: str) -> None:
        async with asyncio.timeout(20):
            while text not in self:
                self.grew.clear()
                await self.grew.wait()


def _launch(lines: Lines, *command: str, uid: str = "u", **more: Any) -> Launch:
    given: dict[str, Any] = {"env": {}, "mounts": (), "address": "127.64.0.1", "attempt": 0, **more}
    pod = {"metadata": {"name": "p", "namespace": "ns", "uid": uid}}
    return Launch(
        pod=pod, container={"name": "c", "image": "i"}, command=command, log=lines.write, changed=lambda: None, **given
    )


async def test_a_command_runs_with_its_environment_and_files(tmp_path: Path) -> None:
    lines = Lines()
    mounts = [Mount("/etc/conf", "files", "conf", {"a/b.txt": b"content"}), Mount("/data", "claim", "disk")]
    script = 'cat /etc/conf/a/b.txt; echo; echo "$WORD"; echo kept > /data/file; echo "$HOSTNAME"; exit 7'
    launch = _launch(lines, "sh", "-c", script, env={"WORD": "see /data/x"}, mounts=mounts)
    running = await ProcessRunner(tmp_path).run(launch)
    assert await running.wait() == 7
    disk = tmp_path / "claims" / "ns" / "disk"
    assert lines == ["content", f"see {disk}/x", "p"]
    assert (disk / "file").read_text() == "kept\n"
    secret = tmp_path / "pods" / "u" / "c" / "files" / "etc" / "conf" / "a" / "b.txt"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


async def test_volumes_within_each_other_and_files_of_one_folder_are_all_there(tmp_path: Path) -> None:
    lines = Lines()
    mounts = [
        Mount("/etc/k/pki", "files", "pki", {"ca.crt": b"ca"}),
        Mount("/etc/k", "files", "conf", {"a.conf": b"a"}),
        Mount("/etc/k", "files", "conf", {"b.conf": b"b"}),
    ]
    launch = _launch(lines, "sh", "-c", "cat /etc/k/pki/ca.crt /etc/k/a.conf /etc/k/b.conf", mounts=mounts)
    running = await ProcessRunner(tmp_path).run(launch)
    assert await running.wait() == 0
    assert lines == ["caab"]


async def test_nothing_of_our_own_environment_leaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOMEPORT_SECRET", "x")
    lines = Lines()
    running = await ProcessRunner(tmp_path).run(_launch(lines, "env"))
    assert await running.wait() == 0
    assert not [line for line in lines if line.startswith("HOMEPORT_SECRET")]


async def test_stopping_asks_first_and_insists_later(tmp_path: Path) -> None:
    polite, stubborn = Lines(), Lines()
    runner = ProcessRunner(tmp_path)
    one = await runner.run(
        _launch(polite, "sh", "-c", 'trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.05; done', uid="a")
    )
    two = await runner.run(
        _launch(stubborn, "sh", "-c", 'trap "" TERM; echo up; while :; do sleep 0.05; done', uid="b")
    )
    await polite.until("up")
    await stubborn.until("up")
    assert one.ready
    await one.stop(20)
    assert await one.wait() == 0
    assert "bye" in polite
    await two.stop(0.2)
    assert await two.wait() == 137
    assert not two.ready


async def test_what_can_not_be_run_says_why(tmp_path: Path) -> None:
    runner = ProcessRunner(tmp_path)
    with pytest.raises(RunError, match="can't run '/no/such/program'"):
        await runner.run(_launch(Lines(), "/no/such/program"))
    with pytest.raises(RunError, match="has no command"):
        await runner.run(_launch(Lines()))
    with pytest.raises(RunError, match="leaves the volume"):
        await runner.run(_launch(Lines(), "true", mounts=[Mount("/m", "files", "m", {"../../x": b""})]))


async def test_a_process_that_outlived_us_is_ended_before_the_next_start(tmp_path: Path) -> None:
    runner, lines = ProcessRunner(tmp_path), Lines()
    first = await runner.run(_launch(lines, "sh", "-c", "echo up; exec sleep 600"))
    await lines.until("up")
    second = await ProcessRunner(tmp_path).run(_launch(Lines(), "true"))
    assert await first.wait() == 137
    assert await second.wait() == 0


async def test_probes_run_beside_it_and_files_go_with_the_pod(tmp_path: Path) -> None:
    runner = ProcessRunner(tmp_path)
    running = await runner.run(_launch(Lines(), "sleep", "600", mounts=[Mount("/m", "files", "m", {"f": b"1"})]))
    assert await running.probe(["test", "-e", "/m/f"])
    assert not await running.probe(["test", "-e", "/m/g"])
    assert not await running.probe(["/no/such/program"])
    await running.stop(0)
    await running.wait()
    runner.forget("u")
    assert os.listdir(tmp_path / "pods") == []


async def test_volumes_are_copied_as_they_are_at_one_moment_and_the_process_goes_on(tmp_path: Path) -> None:
    lines = Lines()
    script = """
    count=0
    while :; do count=$((count+1)); echo $count >> /data/first; echo $count >> /data/second
    [ $count = 200 ] && echo begun; [ -e /data/stop ] && echo stopped && exit 0; done
    """
    launch = _launch(lines, "sh", "-c", script, mounts=[Mount("/data", "claim", "disk")])
    running = await ProcessRunner(tmp_path).run(launch)
    try:
        await lines.until("begun")
        assert await asyncio.to_thread(copy_claims, tmp_path, tmp_path / "copy")
        copied = [(tmp_path / "copy" / "ns" / "disk" / name).read_text().split() for name in ("first", "second")]
        assert len(copied[0]) - len(copied[1]) in (0, 1)
        (tmp_path / "claims" / "ns" / "disk" / "stop").touch()
        await lines.until("stopped")
    finally:
        await running.stop(0)


def test_without_volumes_nothing_is_copied(tmp_path: Path) -> None:
    assert not copy_claims(tmp_path, tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


UID = "0b9d0c4e-7c1f-4b0e-9a55-0f2f3b1c7a55"


async def _socket(runner: ProcessRunner) -> Path:
    """As a container's configuration names it."""
    lines, config = Lines(), b"udsName: /run/konnectivity/konnectivity-server.socket\n"
    mounts = [
        Mount("/run/konnectivity", "empty", "konnectivity-socket"),
        Mount("/etc/egress", "files", "egress", {"config.yaml": config}),
    ]
    running = await runner.run(_launch(lines, "sh", "-c", "cat /etc/egress/config.yaml", uid=UID, mounts=mounts))
    assert await running.wait() == 0
    [socket] = [Path(line.removeprefix("udsName: ")) for line in lines]
    return socket


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a short path, which has the system's temporary folder in it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        temporary = Path(made, "tmp")
        temporary.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(temporary))
        yield Path(made)


@pytest.mark.parametrize("depth", [0, 8], ids=["short", "long"])
async def test_containers_share_a_folder_whose_path_is_short_enough_for_a_socket(depth: int, short: Path) -> None:
    folder = short.joinpath(*["a-long-name-of-a-folder"] * depth, "workload")
    runner = ProcessRunner(folder)
    for _ in range(2):  # the second time the link is there
        socket = await _socket(runner)
        assert len(os.fsencode(socket)) <= 107
        assert socket.is_relative_to(short / "tmp" if depth else folder)
        assert socket.parent.resolve() == folder / "pods" / UID / "empty" / "konnectivity-socket"
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
    runner.forget(UID)
    assert not socket.parent.is_symlink()
    assert os.listdir(short / "tmp") == []


async def test_a_folder_for_sockets_that_others_can_enter_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    runner = ProcessRunner(tmp_path / ("long" * 30))
    socket = await _socket(runner)
    socket.parent.parent.chmod(0o755)
    with pytest.raises(RunError, match="is not a private folder of this user: remove it"):
        await _socket(runner)
