"""The image that buildah makes of the Containerfile, run: see tools/image/build."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from homeport import __version__
from homeport.app.kubernetes.dashboard.object import DashboardOptions
from homeport.app.kubernetes.dashboard.object import arguments as dashboard_arguments
from homeport.app.kubernetes.layout import COMBINED
from homeport.app.kubernetes.workload import PodOptions, render

BUILD = Path(__file__).resolve().parents[2] / "tools" / "image" / "build"
NAME = "localhost/homeport:test"

pytestmark = [pytest.mark.timeout(300)]


def _buildah() -> list[str]:
    where = subprocess.run([BUILD, "--where"], capture_output=True, text=True, check=True).stdout.strip()
    return ["buildah", "--root", f"{where}/storage", "--runroot", f"{where}/run", "--storage-driver", "vfs"]


def _call(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*_buildah(), *arguments], capture_output=True, text=True, timeout=200, check=False)


@pytest.fixture(scope="module")
def container() -> Iterator[str]:
    if shutil.which("buildah") is None or _call("inspect", "--type", "image", NAME).returncode:
        pytest.skip("no image: run tools/image/build, which needs buildah, debootstrap and root")
    made = _call("from", "--pull-never", NAME)
    assert made.returncode == 0, made.stderr
    yield made.stdout.strip()
    _call("rm", made.stdout.strip())


def run(container: str, *command: str) -> subprocess.CompletedProcess[str]:
    return _call("run", "--isolation", "chroot", container, "--", *command)


def test_it_runs_without_root_and_can_write_only_below_tmp(container: str) -> None:
    assert run(container, "homeport", "version").stdout.startswith(f"homeport {__version__} ")
    assert run(container, "id", "-u").stdout.strip() == "65532"
    assert run(container, "touch", "/opt/homeport/x").returncode == 1
    assert run(container, "touch", "/tmp/x").returncode == 0
    # No compiler, no package manager of Python: what is not there can't be used by an attacker.
    for program in ("pip", "gcc"):
        assert run(container, "sh", "-c", f"command -v {program}").returncode != 0


def test_its_settings_fit_the_deployments(container: str) -> None:
    config = json.loads(_call("inspect", container).stdout)["OCIv1"]["config"]
    pod = render(COMBINED, PodOptions())[0]["spec"]["template"]["spec"]
    assert config["User"] == f"{pod['securityContext']['runAsUser']}:{pod['securityContext']['runAsGroup']}"
    assert config["Entrypoint"] == ["homeport"]
    assert not [each for each in config["Env"] if each.startswith("PIP_")]  # of the machine that built it


def test_every_command_of_the_deployments_is_known_to_it(container: str) -> None:
    """Without a cluster they stop, and say that the cluster is missing, not that an option is wrong."""
    manager = render(COMBINED, PodOptions())[0]["spec"]["template"]["spec"]["containers"][0]["args"]
    for arguments in (manager, dashboard_arguments(DashboardOptions(("clusters.example",)))):
        done = run(container, "homeport", *arguments)
        assert done.returncode == 1, done.stderr
        assert "not in a cluster: KUBERNETES_SERVICE_HOST" in done.stderr


def test_it_renders_its_own_installation(container: str) -> None:
    done = run(container, "homeport", "install", "--dry-run", "-o", "yaml")
    assert done.returncode == 0, done.stderr
    kinds = {each["kind"] for each in yaml.safe_load_all(done.stdout)}
    assert {"Deployment", "CustomResourceDefinition", "ValidatingWebhookConfiguration"} <= kinds
