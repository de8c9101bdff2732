"""Every command that lists or describes things prints JSON, YAML, names and a wide table."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from homeport.app.platform import chosen
from homeport.cli.main import group
from homeport.machinery.yaml import load, load_all
from homeport.runtime.testing import plane

EXAMPLE = Path(__file__).parents[3] / "examples/02-cluster/cluster.yaml"
ALL = ("json", "yaml", "name", "wide")

# Commands that list or describe things, with arguments that work on the plane of this module. None: they need a
# hypervisor, and the tests of discovery, import and orphans run them.
LISTING: dict[str, tuple[str, ...] | None] = {
    "status": (),
    "plan": ("-f", str(EXAMPLE), "--no-preflight"),
    "preflight": None,
    "describe": ("harbour",),
    "tree": (),
    "discover": None,
    "image list": None,
    "doctor": (),
    "top clusters": (),
    "top machines": (),
    "rollout history": ("md/harbour-workers",),
    "import cluster": None,
    "orphans list": None,
    "orphans machines": (),
    "chart history": None,
    "chart list": (),
    "chart show": None,
    "addons list": (),
    "addons show": ("cilium",),
}
# Commands that do something, or print one text that has a form of its own.
OTHERS = {
    *("up", "down", "dashboard", "env", "backup", "restore", "support-bundle", "kubeconfig", "logs", "console", "ssh"),
    *("create cluster", "image upload", "upgrade cluster", "heal", "import undo", "move", "orphans adopt"),
    *("rollout pause", "rollout restart", "rollout resume", "rollout status", "rollout undo", "orphans remove"),
    *("install", "uninstall", "bootstrap", "init", "ccm", "chart install", "chart pull", "chart render"),
    *("chart rollback", "chart uninstall", "addons pull", "sim harvester", "sim prism", "completion", "version"),
}


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        yield " ".join(path), command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


def test_every_command_is_known_here() -> None:
    assert {name for name, _ in leaves(group)} == {*LISTING, *OTHERS}


@pytest.mark.parametrize(("name", "command"), [each for each in leaves(group) if each[0] in LISTING])
def test_a_listing_command_has_all_formats(name: str, command: click.Command) -> None:
    [option] = [each for each in command.params if "-o" in each.opts]
    assert isinstance(option.type, click.Choice)
    assert tuple(option.type.choices) == ALL


@pytest.fixture(scope="module")
def objects() -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = load_all(EXAMPLE.read_text())
    workers = next(each for each in made if each["kind"] == "MachineDeployment")
    meta = {"name": "one", "labels": {"cluster.x-k8s.io/cluster-name": "harbour"}}
    machine = {**workers, "kind": "Machine", "metadata": meta, "spec": workers["spec"]["template"]["spec"]}
    return [*made, machine]


@pytest.fixture
async def kubeconfig(tmp_path: Path, objects: list[dict[str, Any]]) -> AsyncIterator[Path]:
    async with plane(crds=chosen().definitions(), serve=True) as p:
        await p.have(*objects)
        path = tmp_path / "kubeconfig"
        path.write_text(p.server.pki.kubeconfig(p.server.url))
        yield path


async def run(*words: str) -> Result:
    """In a thread of its own: the server needs the event loop."""
    return await asyncio.to_thread(CliRunner().invoke, group, words)


@pytest.mark.parametrize("name", [name for name, arguments in LISTING.items() if arguments is not None])
async def test_each_format_has_its_form(name: str, kubeconfig: Path) -> None:
    words = [*name.split(), *(LISTING[name] or ())]
    if not name.startswith("addons"):
        words += ["--kubeconfig", str(kubeconfig)]
    found = {form: await run(*words, "-o", form) for form in ALL}
    text = await run(*words)
    for form, result in {**found, "text": text}.items():
        # 1: doctor and preflight found something
        assert result.exit_code in ((0, 1) if name in ("doctor", "preflight") else (0,)), (form, result.output)
        assert result.exception is None or isinstance(result.exception, SystemExit), (form, result.exception)
    assert _without_times(json.loads(found["json"].stdout)) == _without_times(load(found["yaml"].stdout))
    for line in found["name"].stdout.splitlines():
        assert re.fullmatch(r"[a-z]+/[A-Za-z0-9.:_-]+", line), line
    assert found["wide"].stdout.strip()
    assert not found["wide"].stdout.startswith(("{", "["))


def _without_times(found: Any) -> Any:
    """Ages differ between two calls, and so do the names of Machines that a plan invents."""
    if isinstance(found, dict):
        kept = {k: v for k, v in found.items() if k not in ("seconds", "ageSeconds", "minutes", "machine", "underWay")}
        return {key: _without_times(value) for key, value in kept.items()}
    return [_without_times(each) for each in found] if isinstance(found, list) else found


async def test_top_shows_what_machines_have_and_says_why_their_usage_is_unknown(kubeconfig: Path) -> None:
    result = await run("top", "machines", "--kubeconfig", str(kubeconfig), "-o", "wide")
    assert result.stdout.split("\n")[0].split() == [
        *("NAMESPACE", "MACHINE", "CLUSTER", "CPU", "USED", "MEMORY", "USED", "DISK", "NODE")
    ]
    assert "usage of cluster default/harbour is unknown: it has no kubeconfig yet" in result.stderr
