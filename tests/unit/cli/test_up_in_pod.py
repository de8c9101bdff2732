"""`homeport up` in a Pod: which API server it chooses, and what it says about it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from homeport.cli.plane.up import command

NO_EMBEDDED = "applies to the embedded API server only"


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As a kubelet starts a container, with an API server that rejects everything."""
    (tmp_path / "token").write_text("secret")
    (tmp_path / "ca.crt").write_text("not a certificate")
    (tmp_path / "namespace").write_text("homeport-system")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.setenv("HOMEPORT_SERVICE_ACCOUNT", str(tmp_path))
    return tmp_path


def _up(*arguments: str) -> str:
    return CliRunner().invoke(command, [*arguments]).output


def test_controllers_run_on_the_cluster_of_the_pod_and_it_is_said(pod: Path) -> None:
    said = _up()
    assert "in a Pod with a service account: the controllers run on its cluster" in said
    assert "the certificate authority for https://127.0.0.1:1 is not a PEM certificate" in said


def test_the_flag_says_so_already(pod: Path) -> None:
    assert "in a Pod" not in _up("--kubernetes")


def test_an_option_of_the_embedded_server_chooses_that(pod: Path) -> None:
    assert "in a Pod" not in _up("--data", str(pod / "data"), "--listen", "127.0.0.1:99999")
    assert NO_EMBEDDED in _up("--kubernetes", "--data", str(pod / "data"))


def test_without_a_service_account_the_flag_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert "not in a cluster: KUBERNETES_SERVICE_HOST" in _up("--kubernetes")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    monkeypatch.setenv("HOMEPORT_SERVICE_ACCOUNT", str(tmp_path))
    assert "automountServiceAccountToken" in _up("--kubernetes")


def test_a_kubeconfig_and_the_flag_exclude_each_other(tmp_path: Path) -> None:
    assert "remove it, or remove --kubeconfig" in _up("--kubernetes", "--kubeconfig", str(tmp_path / "config"))


def test_an_unknown_deployment_is_a_usage_error(pod: Path) -> None:
    assert "capx-system/capx-controller-manager" in _up("--kubernetes", "--deployment", "capx-system/capx")
