"""`homeport import`: what has to be named, and what is printed of an import."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from homeport.cli.cluster.import_ import _public
from homeport.cli.main import group

GIVEN = ["import", "cluster", "quay", "--pki", ".", "--provider", "nutanix"]


def run(folder: Path, *words: str) -> tuple[int, str]:
    config = folder / "cluster.yaml"
    config.write_text("apiVersion: v1\nkind: Config\n")
    result = CliRunner().invoke(group, [*GIVEN, "--cluster-kubeconfig", str(config), *words])
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "use one of --secret, --provider-config and --credential"),
        (["--secret", "a", "--credential", "b"], "use one of --secret, --provider-config and --credential"),
        (["--secret", "a", "--apply", "--dry-run"], "use either --dry-run or --apply"),
        (["--secret", "a", "--address", "prism:https"], "--address prism:https: expected HOST or HOST:PORT"),
    ],
)
def test_an_import_that_is_not_clear_is_refused(words: list[str], said: str, tmp_path: Path) -> None:
    code, output = run(tmp_path, *words)
    assert code == 2
    assert said in output


def test_a_plane_that_does_not_run_is_said_in_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    code, output = run(tmp_path, "--secret", "a", "--data", str(tmp_path))
    assert code == 1
    assert "start a plane with 'homeport up " in output


def test_private_keys_are_not_printed() -> None:
    secret = {"kind": "Secret", "metadata": {"name": "quay-ca"}, "data": {"tls.key": "c2VjcmV0"}}
    assert _public(secret) == {**secret, "data": {"tls.key": "<hidden>"}}
    assert _public({"kind": "Cluster", "spec": {}}) == {"kind": "Cluster", "spec": {}}


def test_the_help_says_that_nothing_is_changed_without_apply() -> None:
    assert "Without --apply it changes nothing" in CliRunner().invoke(group, ["import", "cluster", "--help"]).output
    assert "no VM is deleted" in CliRunner().invoke(group, ["import", "undo", "--help"]).output
