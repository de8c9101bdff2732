"""The programs that charts and releases are held against are what tools/helm pins, and work with each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from realhelm import PASSWORD, USERNAME, Helm, Registry


@pytest.mark.parametrize(("name", "major"), [("helm3", "v3."), ("helm4", "v4.")])
def test_helm_reports_its_release(programs: dict[str, Path], tmp_path: Path, name: str, major: str) -> None:
    assert Helm(programs[name], tmp_path).ok("version", "--short").startswith(major)


def test_helm_pushes_a_chart_to_the_registry_with_tls_and_a_password(
    helm: Helm, registry: Registry, tmp_path: Path
) -> None:
    helm.ok("create", "buoy", cwd=tmp_path)
    helm.ok("package", "buoy", "--version", "1.2.3", cwd=tmp_path)
    login = ("--username", USERNAME, "--password-stdin", "--ca-file", str(registry.ca))
    helm.ok("registry", "login", registry.host, *login, stdin=PASSWORD)
    target = f"oci://{registry.host}/{helm.program.name}"
    helm.ok("push", "buoy-1.2.3.tgz", target, "--ca-file", str(registry.ca), cwd=tmp_path)
    shown = helm.ok("show", "chart", f"{target}/buoy", "--version", "1.2.3", "--ca-file", str(registry.ca))
    assert "name: buoy" in shown


def test_registry_refuses_who_has_no_password(helm: Helm, registry: Registry, tmp_path: Path) -> None:
    helm.ok("create", "buoy", cwd=tmp_path)
    helm.ok("package", "buoy", cwd=tmp_path)
    refused = helm.run(
        "push", "buoy-0.1.0.tgz", f"oci://{registry.host}/x", "--ca-file", str(registry.ca), cwd=tmp_path
    )
    assert refused.returncode != 0
