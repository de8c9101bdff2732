from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from homeport.builtin.workload.binary import PROGRAMS, BinariesMissing, BinaryRunner, localize, pinned
from homeport.builtin.workload.process import _started, end_leftovers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--listen-client-urls=https://0.0.0.0:2379", "--listen-client-urls=https://127.9.9.9:2379"),
        ("--initial-cluster=default=http://127.0.0.1:2380", "--initial-cluster=default=http://127.9.9.9:2380"),
        ("https://localhost:2379", "https://127.9.9.9:2379"),
        ("--tls-server-name=localhost", "--tls-server-name=localhost"),
        ("--etcd-servers=https://127.0.0.12:2379", "--etcd-servers=https://127.0.0.12:2379"),
        ("--service-cluster-ip-range=10.127.0.0.1", "--service-cluster-ip-range=10.127.0.0.1"),
    ],
)
def test_addresses_of_the_container_are_those_of_its_pod(text: str, expected: str) -> None:
    assert localize(text, "127.9.9.9") == expected


def test_programs_listen_on_the_address_of_their_pod_only() -> None:
    assert pinned("kube-scheduler", ["--bind-address=0.0.0.0", "--v=2"], "127.9.9.9") == [
        "--v=2",
        "--bind-address=127.9.9.9",
        "--cert-dir=run",
    ]
    assert pinned("kube-apiserver", ["--tls-cert-file=/a"], "127.9.9.9")[-1] == "--bind-address=127.9.9.9"
    assert pinned("etcd", ["--name=a"], "127.9.9.9")[-1] == "--initial-cluster=a=http://127.9.9.9:2380"
    assert pinned("proxy-server", ["--health-bind-address=127.9.9.9"], "127.9.9.9") == [
        "--health-bind-address=127.9.9.9",
        "--agent-bind-address=127.9.9.9",
        "--admin-bind-address=127.9.9.9",
    ]
    given = ["--listen-peer-urls=http://127.9.9.9:1"]
    assert pinned("etcd", given, "127.9.9.9") == given


def test_a_folder_without_the_programs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BinariesMissing, match=r"has no kube-apiserver, kube-controller-manager"):
        BinaryRunner(tmp_path, tmp_path / "data")


def test_what_a_killed_plane_left_running_is_ended(tmp_path: Path) -> None:
    for name in PROGRAMS:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    home = tmp_path / "data" / "pods" / "uid" / "c"
    home.mkdir(parents=True)
    left = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        (home / "pid").write_text(f"{left.pid} {_started(left.pid)}")
        BinaryRunner(tmp_path, tmp_path / "data")
        assert left.wait(10) == -signal.SIGKILL
        assert not (home / "pid").exists()
        assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
    finally:
        left.kill()
        left.wait()


def test_a_process_that_only_has_the_number_of_a_lost_one_is_left_alone(tmp_path: Path) -> None:
    home = tmp_path / "pods" / "uid" / "c"
    home.mkdir(parents=True)
    (home / "pid").write_text(f"{os.getpid()} 1")
    end_leftovers(tmp_path)
    assert not (home / "pid").exists()
