"""`homeport orphans`: what has to be named, and what a VM is listed as."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from homeport.app.orphan import request as orphan
from homeport.cli.cluster.orphans import _row
from homeport.cli.main import group
from homeport.client.protocol import Key
from homeport.infra.orphan.record import Found
from homeport.infra.orphan.witness import Role
from homeport.infra.protocol import Owned


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["remove", "harbour"], "Missing argument 'VM...'"),
        (["adopt", "harbour"], "name the VMs to adopt, or use --all"),
        (["adopt", "harbour", "a", "--all"], "name the VMs to adopt, or use --all"),
        (["list"], "Missing argument 'CLUSTER'"),
        (["machines", "--remove"], "name the requests, and use either --adopt or --remove"),
        (["machines", "butler-system/one"], "name the requests, and use either --adopt or --remove"),
        (["machines", "butler-system/one", "--adopt", "--remove"], "use either --adopt or --remove"),
    ],
)
def test_nothing_is_adopted_or_removed_that_was_not_named(words: list[str], said: str) -> None:
    result = CliRunner().invoke(group, ["orphans", *words])
    assert result.exit_code == 2
    assert said in result.output


def test_a_plane_that_does_not_run_is_said_in_one_sentence(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    result = CliRunner().invoke(group, ["orphans", "list", "harbour", "--data", str(tmp_path)])
    assert result.exit_code == 1
    assert "start a plane with 'homeport up " in result.output


def test_a_vm_is_shown_with_what_it_is_in_the_workload_cluster() -> None:
    plane = Found(Owned("id-1", "a", "u", power="on"), Role("a", True, True, "v1.30.0", "nutanix://id-1"))
    assert _row(plane) == ("a", "id-1", "on", "a", "control plane", "v1.30.0")
    assert _row(Found(Owned("id-2", "b", "u", power="off"))) == ("b", "id-2", "off", "-", "-", "-")


def test_a_vm_that_is_not_an_orphan_or_has_a_name_twice_is_refused() -> None:
    found = [Found(Owned("id-1", "a", "u")), Found(Owned("id-2", "a", "v"))]
    assert orphan.choose(found, ["id-2"], Key("default", "harbour")) == [found[1]]
    with pytest.raises(orphan.Refused, match="several orphans have this name"):
        orphan.choose(found, ["a"], Key("default", "harbour"))
    with pytest.raises(orphan.Refused, match="VM b is not an orphan of cluster harbour"):
        orphan.choose(found, ["b"], Key("default", "harbour"))
