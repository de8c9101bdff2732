"""The shell scripts of the containers, run by a shell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from homeport.hosted.k0smotron.pod.entrypoint import render_script
from homeport.hosted.k0smotron.pod.etcd import render_etcd
from unit.hosted.k0smotron.k0smotron_subject import subject

KINE = {"type": "kine", "kine": {"dataSourceSecretName": "db"}}


def run(script: str, *flags: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", *flags, "-c", script]
    return subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=False, timeout=30)


@pytest.mark.parametrize("storage", [{"type": "etcd"}, {"type": "nats"}, KINE], ids=["etcd", "nats", "kine"])
def test_every_script_can_be_read_by_a_shell(storage: dict[str, Any]) -> None:
    pod = render_etcd(subject(), 3)["spec"]["template"]["spec"]
    scripts = [each["command"][-1] for each in (*pod["initContainers"], *pod["containers"])]
    for script in (*scripts, render_script(subject(storage=storage, replicas=3))):
        checked = run(script, "-n")
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("url", ["postgres://me:secret@db/k0s", r"mysql://me:a&b|c\d/e$f@tcp(db:3306)/k0s?x=1"])
def test_the_url_of_a_database_is_filled_in_whatever_its_letters(tmp_path: Path, url: str) -> None:
    (tmp_path / "k0s.yaml").write_text("dataSource: __K0SMOTRON_KINE_DATASOURCE_URL__\n")
    script = render_script(subject(storage=KINE))
    script = script.replace("/etc/k0s/k0s.yaml", f"{tmp_path}/k0s.yaml").replace("/run/k0smotron", f"{tmp_path}/run")
    done = run(
        script.replace("exec k0s controller", "cat").replace("--config=", "").replace("--enable-dynamic-config", ""),
        K0SMOTRON_KINE_DATASOURCE_URL=url,
    )
    assert done.stdout == f"dataSource: {url}\n", done.stderr
    assert (tmp_path / "run/k0s.yaml").stat().st_mode & 0o077 == 0
