"""Charts of the corpus, rendered by us and by real helm, in one form that can be compared.

A folder of the corpus is a chart. `NAME.cases.json` beside it lists how it is rendered; without it, once and without
values. The cases of a chart that helm refuses say so in the golden file.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from homeport.machinery.chart import (
    Capabilities,
    ChartError,
    ReleaseInfo,
    Rendered,
    load_chart,
    read_values,
    render,
    unpack,
    without_ignored,
)
from homeport.machinery.yaml import load_first

HERE = Path(__file__).resolve().parent
CORPUS = HERE / "corpus"
GOLDEN = HERE / "golden"
BUILD = HERE.parents[2] / "tools" / "helm" / "build"
VERSIONS = {3: "v3.22.0", 4: "v4.3.1"}
KUBE_VERSION = "v1.31.4"
API_VERSIONS = ("v1", "apps/v1", "batch/v1", "networking.k8s.io/v1/Ingress", "example.com/v1")
_SOURCE = re.compile(r"^---\n# Source: (.+)\n", re.MULTILINE)

Document = list[Any]  # path of the template, text, object


@dataclass(frozen=True)
class Case:
    chart: str
    name: str = "plain"
    values: tuple[str, ...] = ()  # texts of values files
    namespace: str = "shop"
    upgrade: bool = False
    majors: tuple[int, ...] = (3, 4)
    kube_version: str = KUBE_VERSION
    objects_only: bool = False  # the text is another one each time
    folder: Path = field(default=CORPUS)

    @property
    def path(self) -> Path:
        return self.folder / self.chart


def cases() -> list[Case]:
    found: list[Case] = []
    for folder in sorted(each for each in CORPUS.iterdir() if each.is_dir()):
        listed = CORPUS / f"{folder.name}.cases.json"
        entries = json.loads(listed.read_text()) if listed.exists() else {"plain": {}}
        for name, entry in entries.items():
            entry = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
            found.append(Case(folder.name, name, **entry))
    return found


# -- ours --------------------------------------------------------------------------------------------------------------


def read_folder(folder: Path) -> dict[str, bytes]:
    """In the order of helm: by the names of each folder."""

    def walk(at: Path) -> list[Path]:
        found: list[Path] = []
        for each in sorted(at.iterdir(), key=lambda path: path.name):
            found += walk(each) if each.is_dir() else [each]
        return found

    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in walk(folder)}


def load(path: Path) -> Any:
    return load_chart(without_ignored(read_folder(path)) if path.is_dir() else unpack(path.read_bytes()))


def ours(case: Case, major: int, api_versions: tuple[str, ...] = API_VERSIONS) -> list[Document] | str:
    """The documents, or the error."""
    release = ReleaseInfo("web", case.namespace, 1, not case.upgrade, case.upgrade, seed=b"for tests")
    capabilities = Capabilities(case.kube_version, api_versions, VERSIONS[major])
    try:
        values: dict[str, Any] = {}
        for text in case.values:
            values = _overlaid(values, read_values(text))
        return documents(render(load(case.path), values, release, capabilities))
    except ChartError as error:
        return str(error)


def _overlaid(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    made = dict(lower)
    for key, value in upper.items():
        known = made.get(key)
        made[key] = _overlaid(known, value) if isinstance(value, dict) and isinstance(known, dict) else value
    return made


def documents(rendered: Rendered) -> list[Document]:
    """In the order in which `helm template --include-crds` prints them; the objects of a file of crds/ are one text."""
    crds: dict[str, str] = {each.source: each.text for each in rendered.crds}
    found: list[Document] = [[path, text, None] for path, text in crds.items()]
    found += [[each.source, each.text, each.object] for each in rendered.manifests]
    return found + [[each.source, each.text, each.object] for each in rendered.hooks]


# -- helm --------------------------------------------------------------------------------------------------------------


@cache
def helm(major: int) -> Path | str:
    """The program, or why it is not there. HOMEPORT_HELM_BIN names a folder with helm3 and helm4."""
    override = os.environ.get("HOMEPORT_HELM_BIN")
    if override:
        folder = Path(override)
    elif BUILD.exists():
        asked = subprocess.run([sys.executable, str(BUILD), "--where"], capture_output=True, text=True, check=True)
        folder = Path(asked.stdout.strip().splitlines()[-1])
    else:
        return "no real helm: tools/helm/build is missing"
    program = folder / f"helm{major}"
    if os.access(program, os.X_OK):
        return program
    hint = (
        "correct HOMEPORT_HELM_BIN"
        if override
        else "run tools/helm/build"
        if shutil.which("go")
        else "Go is not on PATH"
    )
    return f"no real helm{major} in {folder}: {hint}"


def theirs(case: Case, major: int, program: Path, api_versions: tuple[str, ...] = API_VERSIONS) -> list[Document] | str:
    with tempfile.TemporaryDirectory() as home:
        command = [str(program), "template", "web", str(case.path), "--namespace", case.namespace, "--include-crds"]
        command += ["--kube-version", case.kube_version, *(f"--api-versions={each}" for each in api_versions)]
        for number, text in enumerate(case.values):
            file = Path(home) / f"values{number}.yaml"
            file.write_text(text)
            command += ["--values", str(file)]
        if case.upgrade:
            command.append("--is-upgrade")
        environment = {"HOME": home, "PATH": os.environ["PATH"], "KUBECONFIG": f"{home}/none"}
        ran = subprocess.run(command, capture_output=True, env=environment, check=False, timeout=120)
    return parsed(ran.stdout.decode()) if ran.returncode == 0 else ran.stderr.decode().strip()


def parsed(text: str) -> list[Document]:
    parts = _SOURCE.split(text if text.startswith("---") else f"---\n{text}")
    found: list[Document] = []
    for path, body in zip(parts[1::2], parts[2::2], strict=True):
        if is_crd(path):
            found.append([path, body, None])
        elif (made := load_first(body)) is not None:
            found.append([path, body, made])
    return found


def is_crd(path: str) -> bool:
    """Whether it is a file of the folder crds/ of a chart or subchart."""
    parts = path.split("/")[1:]
    while parts[0] == "charts":
        parts = parts[2:]
    return parts[0] == "crds"


@cache
def default_api_versions(program: Path) -> tuple[str, ...]:
    """Those that `helm template` assumes by itself."""
    with tempfile.TemporaryDirectory() as folder:
        chart = Path(folder) / "probe"
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: probe\nversion: 1.0.0\n")
        (chart / "templates" / "a.yaml").write_text("v: {{ .Capabilities.APIVersions | toJson }}\n")
        ran = subprocess.run([str(program), "template", str(chart)], capture_output=True, text=True, check=True)
    return tuple(load_first(ran.stdout)["v"])


# -- what helm has said ------------------------------------------------------------------------------------------------


def golden_path(chart: str) -> Path:
    return GOLDEN / f"{chart}.json"


def golden(case: Case, major: int) -> list[Document] | str | None:
    path = golden_path(case.chart)
    if not path.exists():
        return None
    found = json.loads(path.read_text()).get(f"{case.name}/helm{major}")
    return [[at, text, load_first(text)] for at, text in found] if isinstance(found, list) else found


def without_chance(found: Any, one: Any, other: Any) -> Any:
    """`found` without the values that helm itself gives differently from one rendering to the next."""
    if isinstance(found, dict) and isinstance(one, dict) and isinstance(other, dict):
        return {key: without_chance(value, one.get(key), other.get(key)) for key, value in found.items()}
    if isinstance(found, list) and isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return [without_chance(*each) for each in zip(found, one, other, strict=False)]
    return found if one == other else "random"


def comparable(found: list[Document], case: Case) -> list[Document]:
    """CRDs as texts, the rest as text and object."""
    made: list[Document] = []
    for path, text, obj in found:
        if is_crd(path):
            made.append([path, text.strip()])
        else:
            made.append([path, obj] if case.objects_only else [path, text.strip(), obj])
    return made
