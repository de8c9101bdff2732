"""Containers that run as processes of this machine reach nothing but their own volumes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from homeport.builtin.workload.binary import PROGRAMS, BinaryRunner
from homeport.builtin.workload.confine import check_launch
from homeport.runtime.workload.runner import Launch, Mount, RunError

PKI = Mount("/etc/kubernetes/pki", "files", "pki", {"ca.crt": b"x"})
CONF = Mount("/etc/kubernetes/scheduler.conf", "files", "conf")


def launch(
    *command: str, mounts: Sequence[Mount] = (PKI, CONF), env: dict[str, str] | None = None, **more: Any
) -> Launch:
    return Launch(
        pod={"metadata": {"name": "p", "namespace": "n", "uid": "u"}},
        container={"name": "c", **more},
        command=command,
        env=env or {},
        mounts=mounts,
        address="127.9.9.9",
        attempt=0,
        log=lambda _: None,
        changed=lambda: None,
    )


def test_a_control_plane_is_allowed_what_it_needs() -> None:
    check_launch(
        launch(
            "kube-apiserver",
            "--client-ca-file=/etc/kubernetes/pki/ca.crt",
            "--etcd-prefix=/default_demo",
            "--etcd-servers-overrides=/events#https://10.0.0.1:2379",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        ),
        PROGRAMS,
    )
    check_launch(launch("/usr/local/bin/kube-scheduler", "--kubeconfig=/etc/kubernetes/scheduler.conf"), PROGRAMS)


KUBECONFIG = b"users: [{name: a, user: {exec: {command: sh}}}]\n"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (launch("/bin/sh", "-c", "id"), r"'sh' is not one of kube-apiserver"),
        (launch(), r"'' is not one of"),
        (launch("kube-apiserver", "--audit-log-path=/root/.bashrc"), r"'/root/.bashrc' is not in one of its volumes"),
        (launch("etcd", "--data-dir", "/root/.homeport"), r"'/root/.homeport' is not in one"),
        (launch("etcd", "--data-dir=../../../pki"), r"leaves its folder"),
        (launch("etcd", "--cert-file=/etc/kubernetes/pki/../../passwd"), r"is not in one of its volumes"),
        (launch("etcd", "--listen-client-urls=unix:///run/docker.sock"), r"'/run/docker.sock' is not in one"),
        (launch("etcd", env={"ETCD_DATA_DIR": "/root/.homeport"}), r"'/root/.homeport' is not in one"),
        (launch("etcd", workingDir="/root"), r"'/root' is not in one"),
        (launch("etcd", mounts=[Mount("/h", "host", "/root")]), r"volume '/root' is a folder of this machine"),
        (
            launch("kube-scheduler", mounts=[Mount("/k", "files", "v", {"conf": KUBECONFIG})]),
            r"conf of volume 'v' is a kubeconfig with exec",
        ),
    ],
)
def test_what_reaches_beyond_the_pod_is_refused(asked: Launch, why: str) -> None:
    with pytest.raises(RunError, match=why):
        check_launch(asked, PROGRAMS)


async def test_the_runner_starts_no_other_program_also_not_for_a_probe(tmp_path: Path) -> None:
    for name in PROGRAMS:
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    runner = BinaryRunner(tmp_path, tmp_path / "data")
    with pytest.raises(RunError, match="'sh' is not one of"):
        await runner.run(launch("sh", "-c", f"touch {tmp_path}/x"))
    probe = {"exec": {"command": ["sh", "-c", "id"]}}
    with pytest.raises(RunError, match="a probe can't run: 'sh' is not one of"):
        await runner.run(launch("etcd", livenessProbe=probe))
    assert not (tmp_path / "x").exists()
    assert runner.running() == {}


async def test_the_runner_counts_what_runs(tmp_path: Path) -> None:
    for name in PROGRAMS:
        (tmp_path / name).write_text("#!/bin/sh\nexec sleep 600\n")
        (tmp_path / name).chmod(0o755)
    runner = BinaryRunner(tmp_path, tmp_path / "data")
    started = await runner.run(launch("etcd", mounts=()))
    try:
        assert runner.running() == {"etcd": 1}
    finally:
        await started.stop(0.0)
        await started.wait()
    assert runner.running() == {}


def test_programs_of_the_version_of_the_image_are_preferred_and_no_other_folder_is_used(tmp_path: Path) -> None:
    binaries = tmp_path / "binaries"
    for folder in (binaries, binaries / "v1.33.1", tmp_path / "v1.33.1"):
        folder.mkdir(exist_ok=True)
        for name in PROGRAMS:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
    runner = BinaryRunner(binaries, tmp_path / "data")
    for image, expected in (
        ("registry.k8s.io/etcd:v1.33.1", binaries / "v1.33.1"),
        ("registry.k8s.io/etcd:v1.33.2", binaries),
        ("registry.k8s.io/etcd:../v1.33.1", binaries),
        ("registry.k8s.io/etcd", binaries),
    ):
        asked = runner._localized(launch("etcd", mounts=(), image=image))
        assert asked.command[0] == str(expected / "etcd"), image
