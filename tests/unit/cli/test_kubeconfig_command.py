"""`homeport kubeconfig` of a Cluster: the administrator's, for whoever may read its Secret."""

from __future__ import annotations

import asyncio
import base64
import json
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from homeport.api.meta import Resource
from homeport.app.platform import chosen
from homeport.cli.main import group
from homeport.client.protocol import Key, MergePatch
from homeport.machinery.yaml import load
from homeport.runtime.testing import Plane, plane

CLUSTER = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster"}
REF = {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "NutanixCluster", "name": "harbour"}
ADMIN = b"apiVersion: v1\nkind: Config\n"
RULES = "rbac.authorization.k8s.io/v1"


def secret(name: str, data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


def objects() -> list[dict[str, Any]]:
    """A Cluster, and a user who may read it but not its Secret."""
    read = {"apiGroups": ["cluster.x-k8s.io"], "resources": ["clusters"], "verbs": ["get", "list"]}
    user = {"kind": "User", "name": "visitor", "apiGroup": "rbac.authorization.k8s.io"}
    return [
        {**CLUSTER, "metadata": {"name": "harbour"}, "spec": {"infrastructureRef": REF}},
        secret("harbour-kubeconfig", {"value": base64.b64encode(ADMIN).decode()}),
        {"apiVersion": RULES, "kind": "ClusterRole", "metadata": {"name": "look"}, "rules": [read]},
        {
            "apiVersion": RULES,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "look"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "look"},
            "subjects": [user],
        },
    ]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Plane, Path]]:
    async with plane(crds=chosen().definitions(), serve=True) as p:
        await p.have(*objects())
        path = tmp_path / "kubeconfig"
        path.write_text(p.server.pki.kubeconfig(p.server.url))
        yield p, path


async def run(path: Path, *args: str) -> Result:
    return await asyncio.to_thread(CliRunner().invoke, group, ["kubeconfig", *args, "--kubeconfig", str(path)])


async def test_the_kubeconfig_of_a_cluster_is_printed_or_written_to_a_file_for_the_user_alone(
    served: tuple[Plane, Path], tmp_path: Path
) -> None:
    printed = await run(served[1], "harbour")
    assert (printed.exit_code, printed.output) == (0, ADMIN.decode())
    file = tmp_path / "harbour.kubeconfig"
    written = await run(served[1], "harbour", "-o", str(file))
    assert written.output == f"wrote {file}\n"
    assert file.read_bytes() == ADMIN
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    nowhere = await run(served[1], "harbour", "-o", str(tmp_path / "none/file"))
    assert f"-o {tmp_path}/none/file: can't be written: No such file or directory" in nowhere.output


async def test_who_may_not_read_the_secret_is_told_which_right_is_missing(served: tuple[Plane, Path]) -> None:
    body = load(served[1].read_text())
    body["users"][0]["user"]["as"] = "visitor"
    path = served[1].with_name("visitor")
    path.write_text(json.dumps(body))
    refused = await run(path, "harbour")
    assert refused.exit_code == 1
    assert "Cluster default/harbour: you may not read Secret harbour-kubeconfig in namespace default" in refused.output
    assert "kind: Config" not in refused.output
    acting = await run(served[1], "harbour", "--as", "visitor")
    assert "you may not read Secret harbour-kubeconfig" in acting.output


async def test_a_secret_without_a_kubeconfig_is_named(served: tuple[Plane, Path]) -> None:
    p, path = served
    await p.have(
        {**CLUSTER, "metadata": {"name": "quay"}, "spec": {"infrastructureRef": REF}},
        secret("quay-kubeconfig", {"other": "eA=="}),
    )
    result = await run(path, "quay")
    assert result.exit_code == 1
    assert "Secret quay-kubeconfig: data[value] is missing: it must contain the kubeconfig" in result.output


NEW = """apiVersion: v1
kind: Config
clusters: [{name: harbour, cluster: {server: "https://10.0.0.1:6443"}}]
users: [{name: harbour-admin, user: {token: new}}]
contexts: [{name: harbour-admin@harbour, context: {cluster: harbour, user: harbour-admin}}]
current-context: harbour-admin@harbour
"""
MINE = """apiVersion: v1
kind: Config
preferences: {colors: true}
clusters: [{name: work, cluster: {server: "https://work.example.com"}}]
users: [{name: me, user: {token: mine}}]
contexts: [{name: work, context: {cluster: work, user: me, namespace: team}}]
current-context: work
"""


@pytest.fixture
async def merging(served: tuple[Plane, Path]) -> Path:
    value = {"value": base64.b64encode(NEW.encode()).decode()}
    await served[0].client.patch(
        Resource("", "v1", "Secret", "secrets"), Key("default", "harbour-kubeconfig"), MergePatch({"data": value})
    )
    return served[1]


def linked(folder: Path) -> tuple[Path, Path]:
    real, link = folder / "real", folder / "config"
    real.write_text(MINE)
    link.symlink_to(real)
    return real, link


def names_in(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


async def test_merge_keeps_what_the_file_has_and_its_current_context(merging: Path, tmp_path: Path) -> None:
    real, link = linked(tmp_path)
    for _ in range(2):  # again with the same server: renewed, not repeated
        done = await run(merging, "harbour", "--merge", "-o", str(link))
        assert done.exit_code == 0, done.output
    assert f"next: kubectl --kubeconfig {link} --context harbour-admin@harbour get nodes" in done.output
    merged = load(real.read_text())
    assert [each["name"] for each in merged["contexts"]] == ["work", "harbour-admin@harbour"]
    assert [each["user"]["token"] for each in merged["users"]] == ["mine", "new"]
    assert (merged["current-context"], merged["preferences"]) == ("work", {"colors": True})
    assert (link.is_symlink(), stat.S_IMODE(real.stat().st_mode)) == (True, 0o600)
    assert names_in(tmp_path) == {"real", "config", "kubeconfig"}
    await run(merging, "harbour", "--merge", "--switch", "-o", str(link))
    assert load(real.read_text())["current-context"] == "harbour-admin@harbour"


async def test_merge_into_no_file_makes_it_current(merging: Path, tmp_path: Path) -> None:
    assert (await run(merging, "harbour", "--merge", "-o", str(tmp_path / "new"))).exit_code == 0
    assert load((tmp_path / "new").read_text()) == load(NEW)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (NEW.replace("10.0.0.1", "10.9.9.9"), "already has cluster 'harbour', user 'harbour-admin', context"),
        (MINE.replace("name: me", "name: harbour-admin"), "already has user 'harbour-admin', and the new one is for"),
        ("clusters: [", "is not a kubeconfig"),
        ("apiVersion: v1\nkind: Pod\n", "is not a kubeconfig. It was not changed"),
        ("clusters: [harbour]\n", "is not a kubeconfig. It was not changed"),
    ],
)
async def test_merge_does_not_touch_a_file_that_is_about_other_clusters_or_not_a_kubeconfig(
    merging: Path, tmp_path: Path, text: str, words: str
) -> None:
    file = tmp_path / "config"
    file.write_text(text)
    done = await run(merging, "harbour", "--merge", "-o", str(file))
    assert done.exit_code == 1
    assert words in done.output
    assert file.read_text() == text
    assert not (tmp_path / "config.lock").exists()


async def test_merge_waits_for_no_other_program_that_changes_the_file(merging: Path, tmp_path: Path) -> None:
    (tmp_path / "config.lock").touch()
    done = await run(merging, "harbour", "--merge", "-o", str(tmp_path / "config"))
    assert done.exit_code == 1
    assert "another program changes" in done.output
    assert (tmp_path / "config.lock").exists()
    assert "--switch is for --merge" in (await run(merging, "harbour", "--switch")).output
