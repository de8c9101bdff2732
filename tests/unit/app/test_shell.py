"""The environment that `homeport env` prints: files, variables, and what the shell had before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from homeport.app.shell import UnknownContext, joined, prepare, trusted, without_proxy
from homeport.cli.main import group
from homeport.sim.state import SimulatorState

PEM = b"-----BEGIN CERTIFICATE-----\n%s\n-----END CERTIFICATE-----\n"


def kubeconfig(name: str, server: str) -> dict[str, Any]:
    return {
        "clusters": [{"name": f"{name}-cluster", "cluster": {"server": server}}],
        "users": [{"name": "admin", "user": {"token": name}}],
        "contexts": [
            {"name": "other", "context": {"cluster": "elsewhere", "user": "nobody"}},
            {"name": "default", "context": {"cluster": f"{name}-cluster", "user": "admin", "namespace": name}},
        ],
        "current-context": "default",
    }


class Place:
    """The files of a plane with two simulators."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self.data.mkdir()
        self.kubeconfig = self._write("kubeconfig", yaml.safe_dump(kubeconfig("plane", "https://10.9.9.9:6443")))
        harvester = self._write("harvester.yaml", yaml.safe_dump(kubeconfig("vms", "https://10.20.0.10:6443")))
        self.bundle = self._write("system.crt", (PEM % b"system").decode())
        self.simulators = [
            self._state("prism", self._write("prism.crt", (PEM % b"prism").decode())),
            self._state("harvester", self._write("harvester.crt", (PEM % b"harvester").decode()), str(harvester)),
        ]

    def _write(self, name: str, text: str) -> Path:
        path = self.data / name
        path.write_text(text)
        return path

    def _state(self, name: str, authority: Path, config: str = "") -> SimulatorState:
        return SimulatorState(
            name, "", 0, str(authority), "", "", "", "", kubeconfig=config, proxy="http://127.0.0.1:4000"
        )

    def prepare(self, environment: dict[str, str], context: str = "homeport") -> dict[str, str]:
        return prepare(self.data, self.kubeconfig, self.simulators, environment, context)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_each_cluster_has_a_context_of_its_own_name_in_one_private_file(place: Place) -> None:
    found = place.prepare({"SSL_CERT_FILE": str(place.bundle)}, context="harvester")
    path = Path(found["KUBECONFIG"])
    assert path.stat().st_mode & 0o777 == 0o600
    made = yaml.safe_load(path.read_text())
    assert made["current-context"] == "harvester"
    assert [each["name"] for each in made["contexts"]] == ["homeport", "harvester"]
    assert made["contexts"][1]["context"] == {"cluster": "harvester", "user": "harvester", "namespace": "vms"}
    assert made["clusters"][0]["cluster"]["server"] == "https://10.9.9.9:6443"
    assert Path(found["SSL_CERT_FILE"]).read_bytes() == PEM % b"system" + PEM % b"prism" + PEM % b"harvester"


def test_shells_with_different_contexts_do_not_disturb_each_other(place: Place) -> None:
    assert place.prepare({})["KUBECONFIG"] != place.prepare({}, context="harvester")["KUBECONFIG"]


def test_a_second_time_in_the_same_shell_changes_nothing(place: Place) -> None:
    before = {"SSL_CERT_FILE": str(place.bundle), "NO_PROXY": "corp.example.com"}
    first = place.prepare(before)
    content = Path(first["SSL_CERT_FILE"]).read_bytes()
    assert place.prepare({**before, **first}) == first
    assert Path(first["SSL_CERT_FILE"]).read_bytes() == content
    assert first["NO_PROXY"] == "corp.example.com,127.0.0.1,::1,localhost,10.9.9.9"


def test_other_spellings_that_the_shell_has_follow(place: Place) -> None:
    """curl prefers them."""
    found = place.prepare({"https_proxy": "http://corp:3128", "CURL_CA_BUNDLE": "/corp.pem"})
    assert found["https_proxy"] == found["HTTPS_PROXY"] == "http://127.0.0.1:4000"
    assert found["CURL_CA_BUNDLE"] == found["SSL_CERT_FILE"]
    assert "no_proxy" not in found


def test_without_simulators_the_kubeconfig_is_all(place: Place) -> None:
    assert prepare(place.data, place.kubeconfig, [], {}) == {"KUBECONFIG": str(place.kubeconfig)}
    with pytest.raises(UnknownContext, match="unknown context 'harvester': expected homeport"):
        prepare(place.data, place.kubeconfig, [], {}, "harvester")


def test_parts() -> None:
    assert joined({"a": kubeconfig("x", "https://y")}, "a")["users"] == [{"name": "a", "user": {"token": "x"}}]
    assert trusted([PEM % b"a" + PEM % b"b", b"# comment\n" + PEM % b"a"]) == PEM % b"a" + PEM % b"b"
    assert without_proxy("localhost, x", "127.0.0.1") == "localhost,x,127.0.0.1,::1"


def test_a_plane_that_does_not_run_is_reported_with_the_command_that_starts_it(tmp_path: Path) -> None:
    result = CliRunner().invoke(group, ["env", "--data", str(tmp_path)])
    assert result.exit_code == 1
    assert f"no plane is running on {tmp_path}: start it with 'homeport up --data {tmp_path}'" in result.output
