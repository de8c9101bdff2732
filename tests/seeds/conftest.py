"""A plane with simulated infrastructure for each module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from capikit.clusterctl import find as find_clusterctl
from e2e.conftest import binaries, kubectl
from realhelm import find_programs as find_helm
from seeds.shell import Shell, opened

__all__ = ["binaries", "kubectl"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(300))
            item.add_marker(pytest.mark.xdist_group(f"seeds-{item.path.stem}"))


@pytest.fixture(scope="module")
def shell(kubectl: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    with opened(tmp_path_factory.mktemp("guide"), kubectl, "--sim") as made:
        yield made


@pytest.fixture(scope="module")
def equipped(shell: Shell) -> Shell:
    """With helm and clusterctl besides kubectl."""
    helm, clusterctl = find_helm(), find_clusterctl()
    if isinstance(helm, str) or isinstance(clusterctl, str):
        pytest.skip(helm if isinstance(helm, str) else str(clusterctl))
    (shell.folder / "bin" / "helm").symlink_to(helm["helm3"])
    (shell.folder / "bin" / "clusterctl").symlink_to(clusterctl)
    # clusterctl would ask the network for a newer release.
    return Shell(shell.folder, shell.kubectl, f"{shell.setup}\nexport CLUSTERCTL_DISABLE_VERSIONCHECK=true")
