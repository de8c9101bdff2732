"""The Containerfile, step by step in a clean root: a folder for each stage stands for its file system."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import yaml

from e2e.test_clusterctl import ROOT
from homeport import __version__
from homeport.app.kubernetes.layout import COMBINED
from homeport.app.kubernetes.workload import PodOptions, arguments, render
from homeport.ccm.manifest import IMAGE

pytestmark = [pytest.mark.timeout(900)]


@dataclass
class Stage:
    """What the instructions after one FROM say, and the folder that stands for `/`."""

    root: Path
    name: str = ""
    folder: str = "/"
    environment: dict[str, str] = field(default_factory=dict)
    user: str = ""
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)

    def path(self, inside: str) -> Path:
        where = inside if inside.startswith("/") else f"{self.folder}/{inside}"
        return self.root / where.lstrip("/")

    def run(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Paths of the image are those below the root; the interpreter of the base is the one that runs this test."""
        # A virtual environment names its own folder, so it is made and used at the same place: below the root.
        known = [re.sub(r"(?<![\w.])/(opt|src)(?=/|$)", lambda m: f"{self.root}/{m[1]}", part) for part in command]
        paths = [str(self.path("/opt/homeport/bin")), str(self.path("/usr/local/bin")), "/usr/bin", "/bin"]
        declared = {name: value for name, value in self.environment.items() if name not in ("PATH", "HOME")}
        environment = {**_registry(), **declared, "PATH": os.pathsep.join(paths), "HOME": str(self.path("/tmp"))}
        return subprocess.run(
            known, cwd=cwd or self.path("."), env=environment, capture_output=True, text=True, timeout=600, check=False
        )


def _registry() -> dict[str, str]:
    """Where packages come from is the machine's business."""
    return {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_", "LANG"))}


def instructions() -> Iterator[tuple[str, str]]:
    text = (ROOT / "Containerfile").read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            word, _, rest = line.partition(" ")
            yield word, rest


def build(folder: Path) -> Stage:
    stages: list[Stage] = []
    for word, rest in instructions():
        match word:
            case "ARG":
                assert rest.startswith("BASE=")
            case "FROM":
                stages.append(_begun(folder / f"stage-{len(stages)}", rest))
            case "WORKDIR":
                stages[-1].folder = rest
                stages[-1].path(".").mkdir(parents=True, exist_ok=True)
            case "COPY":
                _copy(stages, shlex.split(rest))
            case "RUN":
                done = stages[-1].run(*shlex.split(rest))
                assert done.returncode == 0, f"{rest}\n{done.stdout}{done.stderr}"
            case "ENV":
                stages[-1].environment |= dict(each.split("=", 1) for each in shlex.split(rest))
            case "USER":
                stages[-1].user = rest
            case "ENTRYPOINT":
                stages[-1].entrypoint = json.loads(rest)
            case "CMD":
                stages[-1].command = json.loads(rest)
            case _:
                pytest.fail(f"the test does not know {word}")
    return stages[-1]


def _begun(root: Path, rest: str) -> Stage:
    assert rest.startswith("${BASE}")
    stage = Stage(root, name=rest.partition(" AS ")[2])
    for each in ("/tmp", "/usr/local/bin"):
        stage.path(each).mkdir(parents=True)
    stage.path("/usr/local/bin/python").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    return stage


def _copy(stages: list[Stage], words: list[str]) -> None:
    stage = stages[-1]
    if words[0].startswith("--from="):
        source = next(each for each in stages if each.name == words[0].removeprefix("--from="))
        # In an image both stages have it at the same place; here the second must look for it at the first's.
        stage.path(words[2]).parent.mkdir(parents=True, exist_ok=True)
        stage.path(words[2]).symlink_to(source.path(words[1]))
        return
    *names, target = words
    ignored = (ROOT / ".containerignore").read_text().split()
    for name in names:
        assert f"!{name}" in ignored, f"{name} is not sent to the builder"
        place = stage.path(target) / name if target.endswith("/") else stage.path(target)
        place.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, place, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, place)


@pytest.fixture(scope="module")
def image() -> Iterator[Stage]:
    with tempfile.TemporaryDirectory(prefix="homeport-image-") as folder:
        yield build(Path(folder))


def files(image: Stage) -> dict[str, int]:
    root = image.path("/opt/homeport").resolve()
    return {str(path.relative_to(root)): path.lstat().st_mtime_ns for path in root.rglob("*")}


def test_the_image_runs_every_command_and_writes_nothing(image: Stage) -> None:
    before = files(image)
    said = image.run(*image.entrypoint, "version")
    assert (said.returncode, __version__ in said.stdout) == (0, True), said.stderr
    for command in (["up", "--help"], ["ccm", "--help"], image.command):
        done = image.run(*image.entrypoint, *command)
        assert done.returncode == 0, done.stderr
        assert "Usage: homeport" in done.stdout
    rendered = image.run(*image.entrypoint, "install", "--dry-run")
    assert "kind: Deployment" in rendered.stdout
    assert files(image) == before


def test_the_packages_of_the_image_are_the_pinned_ones(image: Stage) -> None:
    listed = image.run(
        "python",
        "-c",
        "import importlib.metadata as m, json; print(json.dumps({d.name.lower().replace('_', '-'): d.version for d in m.distributions()}))",
    )
    found: dict[str, str] = json.loads(listed.stdout)
    pinned = dict(re.findall(r"^([\w.-]+)==([^ ;\\]+)", (ROOT / "requirements" / "run.txt").read_text(), re.M))
    assert found.pop("homeport") == __version__
    assert {name: version for name, version in found.items() if name not in ("setuptools", "wheel")}.items() <= {
        name.lower().replace("_", "-"): version for name, version in pinned.items()
    }.items()
    assert "pip" not in found


def test_the_deployment_fits_the_image(image: Stage) -> None:
    """Its user, its command, and the only folder that can be written."""
    pod = render(COMBINED, PodOptions())[0]["spec"]["template"]["spec"]
    user, _, group = image.user.partition(":")
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["runAsGroup"]) == (int(user), int(group))
    assert int(user) > 0
    container = pod["containers"][0]
    assert "command" not in container, "the image's entry point is used"
    assert image.entrypoint == ["homeport"]
    help_text = image.run(*image.entrypoint, "up", "--help").stdout
    for argument in arguments(COMBINED, PodOptions())[1:]:
        assert argument.partition("=")[0] in help_text
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    assert image.environment["HOME"] in mounts


def test_controllers_and_the_cloud_controller_manager_run_the_same_image() -> None:
    container = render(COMBINED, PodOptions("registry.example/own:1"))[0]["spec"]["template"]["spec"]["containers"][0]
    assert {each["name"]: each["value"] for each in container["env"]}["HOMEPORT_CCM_IMAGE"] == container["image"]
    values = yaml.safe_load((ROOT / "config" / "chart" / "values.yaml").read_text())
    assert values["image"] == PodOptions().image == IMAGE


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_pinned_package_has_a_wheel_for_amd64_and_arm64(machine: str, tmp_path: Path) -> None:
    """The image is built without a compiler."""
    version = re.findall(r"python:(\d+\.\d+)", (ROOT / "Containerfile").read_text())[0]
    platforms = [f"--platform=manylinux_2_{release}_{machine}" for release in (34, 28, 17)]
    chosen = ["--only-binary=:all:", f"--python-version={version}", "--require-hashes", "--no-deps", *platforms]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *chosen]
    pinned = ROOT / "requirements" / "run.txt"
    done = subprocess.run(
        [*command, f"--dest={tmp_path}", "-r", str(pinned)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    wheels = [path.name for path in tmp_path.iterdir()]
    assert len(wheels) == len(re.findall(r"^[\w.-]+==", pinned.read_text(), re.M))
    assert any(name.endswith(f"{machine}.whl") for name in wheels)
