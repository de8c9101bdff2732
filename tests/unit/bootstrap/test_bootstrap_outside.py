"""What we write, judged by those who read it: cloud-init and kubeadm themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import realkube
from homeport.bootstrap.document import dump_yaml
from homeport.bootstrap.kubeadm.cloudconfig import render_cloud_config
from unit.bootstrap.example import CONTROL_PLANE_JOIN, JOIN, init_documents, join_documents, user_data

INSTALL = Path(__file__).resolve().parents[3] / "tools" / "cloudinit" / "install"


@pytest.fixture
def cloud_init() -> str:
    asked = subprocess.run([sys.executable, str(INSTALL), "--where"], capture_output=True, text=True, check=True)
    found = shutil.which("cloud-init") or asked.stdout.strip()
    if not os.access(found, os.X_OK):
        pytest.skip("no cloud-init: install Debian's package, or run tools/cloudinit/install")
    return found


@pytest.fixture
def kubeadm() -> str:
    found = realkube.find_binaries()
    if isinstance(found, str) or "kubeadm" not in found:
        pytest.skip(found if isinstance(found, str) else "no kubeadm beside the other programs: run tools/kube/build")
    return str(found["kubeadm"])


@pytest.fixture
def old_kubeadm() -> str:
    found = os.environ.get("HOMEPORT_KUBEADM_V1BETA3", "")
    if not found:
        pytest.skip("kubeadm 1.37 reads v1beta4 alone: name one of 1.22 to 1.36 in HOMEPORT_KUBEADM_V1BETA3")
    return found


def _schema(program: str, text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    head, _, config = text.partition("\n")
    assert head == "## template: jinja"  # the schema command of this version wants what the template becomes
    path = folder / "user-data"
    path.write_text(config)
    return subprocess.run([program, "schema", "--config-file", str(path)], capture_output=True, text=True, check=False)


def test_cloud_init_finds_our_cloud_config_valid(cloud_init: str, tmp_path: Path) -> None:
    done = _schema(cloud_init, render_cloud_config(user_data()), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Valid cloud-config" in done.stdout
    assert "deprecat" not in (done.stdout + done.stderr).lower()


def test_cloud_init_rejects_a_wrong_value(cloud_init: str, tmp_path: Path) -> None:
    text = render_cloud_config(user_data()).replace("lock_passwd: false", 'lock_passwd: "perhaps"')
    assert _schema(cloud_init, text, tmp_path).returncode != 0


def _validate(program: str, documents: Iterable[Mapping[str, Any]], folder: Path) -> subprocess.CompletedProcess[str]:
    path = folder / "kubeadm.yaml"
    text = "".join(f"---\n{dump_yaml(document)}" for document in documents)
    path.write_text(text.replace("{{ ds.meta_data['local_hostname'] }}", "node-1"))
    return subprocess.run(
        [program, "config", "validate", "--config", str(path)], capture_output=True, text=True, check=False
    )


def _version(program: str) -> str:
    asked = subprocess.run([program, "version", "-o", "short"], capture_output=True, text=True, check=True)
    return asked.stdout.strip()


@pytest.mark.parametrize("what", ["init", "join", "control plane join"])
def test_kubeadm_finds_our_configuration_valid(kubeadm: str, tmp_path: Path, what: str) -> None:
    _hold_to(kubeadm, what, _version(kubeadm), tmp_path)


@pytest.mark.parametrize("what", ["init", "join", "control plane join"])
def test_an_older_kubeadm_finds_our_v1beta3_valid(old_kubeadm: str, tmp_path: Path, what: str) -> None:
    _hold_to(old_kubeadm, what, "v1.30.0", tmp_path)


def _hold_to(program: str, what: str, version: str, folder: Path) -> None:
    documents = {
        "init": init_documents(version),
        "join": join_documents(version, JOIN),
        "control plane join": join_documents(version, CONTROL_PLANE_JOIN),
    }[what]
    done = _validate(program, documents, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "unknown field" not in done.stdout + done.stderr


def test_kubeadm_rejects_an_unknown_field(kubeadm: str, tmp_path: Path) -> None:
    (join,) = join_documents(_version(kubeadm), JOIN)
    done = _validate(kubeadm, ({**join, "discoverey": {}},), tmp_path)
    assert done.returncode != 0 or "unknown field" in done.stdout + done.stderr
