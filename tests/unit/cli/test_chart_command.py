"""homeport chart: what a chart is and gives, and releases on a plane."""

from __future__ import annotations

import asyncio
import io
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from homeport.cli.charts.chartoption import read_values
from homeport.cli.main import group
from homeport.client.protocol import Key
from homeport.runtime.testing import Plane, plane
from scenario.helm.small import CONFIG_MAP, chart, config_map

FILES = {**chart({"one": config_map("one", "{{ .Values.size }}")}), "values.yaml": b"size: 1\n"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for path, content in FILES.items():
        (tmp_path / "buoy" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "buoy" / path).write_bytes(content)
    return tmp_path / "buoy"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    target = tmp_path / "buoy-1.0.0.tgz"
    with tarfile.open(target, "w:gz") as tar:
        for path, content in FILES.items():
            member = tarfile.TarInfo(f"buoy/{path}")
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return target


def run(*args: str) -> Result:
    return CliRunner().invoke(group, ["chart", *args])


def test_render_prints_the_objects_with_the_values_given(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "v.yaml").write_text("size: 5\n")
    result = run("render", "web", str(folder), "-f", str(tmp_path / "v.yaml"))
    assert result.exit_code == 0, result.output
    assert result.output.startswith("---\n# Source: buoy/templates/one.yaml\n")
    assert 'value: "5"' in result.output
    assert 'value: "7"' in run("render", "web", str(folder), "-f", str(tmp_path / "v.yaml"), "--set", "size=7").output


def test_show_tells_what_a_chart_is(folder: Path, archive: Path) -> None:
    assert run("show", str(folder)).output == "name:         buoy\nversion:      1.0.0\n"
    assert "digest:       sha256:" in run("show", str(archive)).output
    assert run("show", str(folder), "--values").output == "size: 1\n"


def test_pull_writes_the_archive(folder: Path, archive: Path, tmp_path: Path) -> None:
    result = run("pull", "oci://charts.example.com/buoy:1.0.0", "--mirror", f"oci://charts.example.com={tmp_path}",
                 "-d", str(tmp_path / "out"))  # fmt: skip
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "buoy-1.0.0.tgz").read_bytes() == archive.read_bytes()
    assert "is a folder" in run("pull", str(folder)).output


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (("show", "/nowhere"), "does not exist"),
        (("show", "oci://h/x", "--username", "me"), "--username needs --password-file"),
        (("show", "x", "--mirror", "y"), "expected PREFIX=TARGET"),
        (("render", "web", "/nowhere", "--set", "x"), "expected PATH=VALUE"),
    ],
)
def test_what_is_wrong_is_reported(args: tuple[str, ...], text: str) -> None:
    result = run(*args)
    assert result.exit_code != 0
    assert text in result.output


def test_values_are_merged_in_their_order(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: {b: 1, c: 2}\nl: [1]\n")
    (tmp_path / "b.yaml").write_text("a: {b: 3}\nl: [2]\n")
    found = read_values((tmp_path / "a.yaml", tmp_path / "b.yaml"), ("a.d=true", r"x\.y.z=text", "n=null"))
    assert found == {"a": {"b": 3, "c": 2, "d": True}, "l": [2], "x.y": {"z": "text"}, "n": None}


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Plane, Path]]:
    async with plane(serve=True) as p:
        path = tmp_path / "kubeconfig"
        path.write_text(p.server.pki.kubeconfig(p.server.url))
        yield p, path


async def test_a_release_from_its_install_to_its_end(served: tuple[Plane, Path], folder: Path) -> None:
    p, kubeconfig = served

    async def ok(*args: str) -> str:
        """In a thread of its own: the server needs the event loop."""
        result = await asyncio.to_thread(run, *args, "--kubeconfig", str(kubeconfig))
        assert result.exit_code == 0, result.output
        return result.output

    async def value() -> str:
        return str((await p.client.get(CONFIG_MAP, Key("default", "one")))["data"]["value"])

    assert "release web revision 1 is deployed: Install complete" in await ok("install", "web", str(folder))
    assert "release web revision 1 is deployed" in await ok("install", "web", str(folder))
    assert "revision 2 is deployed: Upgrade complete" in await ok("install", "web", str(folder), "--set", "size=9")
    assert await value() == "9"
    listed = (await ok("list")).splitlines()
    assert listed[1].split()[:5] == ["default", "web", "2", "deployed", "buoy-1.0.0"]
    assert "Rollback to 1" in await ok("rollback", "web")
    assert await value() == "1"
    history = [line.split()[:2] for line in (await ok("history", "web")).splitlines()[1:]]
    assert history == [["1", "superseded"], ["2", "superseded"], ["3", "deployed"]]
    assert "release web is uninstalled" in await ok("uninstall", "web")
    again = await asyncio.to_thread(run, "uninstall", "web", "--kubeconfig", str(kubeconfig))
    assert "release web does not exist" in again.output


async def test_a_release_that_fails_ends_with_its_reason(served: tuple[Plane, Path], folder: Path) -> None:
    _, kubeconfig = served
    bad = "apiVersion: v1\nkind: Service\nmetadata:\n  name: x\nspec:\n  ports:\n  - port: 99999999\n"
    (folder / "templates" / "bad.yaml").write_text(bad)
    result = await asyncio.to_thread(run, "install", "web", str(folder), "--kubeconfig", str(kubeconfig))
    assert result.exit_code == 1
    assert 'Install "web" failed: Service default/x' in result.output


def helper(folder: Path, script: str) -> None:
    program = folder / "docker-credential-box"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_a_program_that_keeps_passwords_is_asked_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.json"
    config.write_text('{"auths": {"127.0.0.1:1": {}}, "credsStore": "box"}')
    pull = ("show", "oci://127.0.0.1:1/charts/buoy:1.0.0", "--plain-http", "--registry-config", str(config))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    missing = run(*pull)
    assert "kept by docker-credential-box, which is not installed here" in missing.output
    helper(tmp_path, "echo unknown; exit 1")
    assert "docker-credential-box has no credentials for 127.0.0.1:1: log in first" in run(*pull).output
    helper(tmp_path, """read host; echo "{\\"Username\\": \\"$host\\", \\"Secret\\": \\"hidden\\"}" """)
    reached = run(*pull)
    assert "connection refused" in reached.output.lower()
    assert "hidden" not in reached.output
    config.write_text('{"credHelpers": {"127.0.0.1:1": "../evil"}}')
    assert "is not a valid name of a credential helper" in run(*pull).output
