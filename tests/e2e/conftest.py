"""A plane started by `homeport up`, a real kube-apiserver where one can be had, and a namespace on both per test."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from e2e.cluster import Cluster, Pair
from homeport.client import kubeconfig
from homeport.client.http import HttpClient
from realkube import RealKube, find_binaries

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from e2e.browsing import Site, Visit
    from e2e.test_homeport_on_cluster import Replica

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.xdist_group(f"e2e-{item.path.stem}"))


@pytest.fixture(scope="session")
def binaries() -> dict[str, Path] | str:
    return find_binaries()


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    """A kube-apiserver of this test alone."""
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with RealKube(binaries) as made:
        yield made


@pytest.fixture
async def client(kube: RealKube) -> AsyncIterator[HttpClient]:
    """Of an administrator of `kube`."""
    async with HttpClient(kubeconfig.load(kube.kubeconfig)) as made:
        yield made


@pytest.fixture(scope="session")
def kubectl(binaries: dict[str, Path] | str) -> str:
    found = shutil.which("kubectl") or (isinstance(binaries, dict) and str(binaries["kubectl"]))
    if not found:
        pytest.skip("no kubectl on PATH, and none was built (tools/kube/build)")
    return found


def homeport(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "homeport", *args], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The data directory of a running plane."""
    data = tmp_path_factory.mktemp("plane") / "data"
    started = homeport("up", "--data", str(data), "--listen", "127.0.0.1:0", "--detach", "--no-workloads")
    assert started.returncode == 0, started.stdout + started.stderr
    yield data
    stopped = homeport("down", "--data", str(data))
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr


@pytest.fixture(scope="session")
def ours(plane: Path, kubectl: str, tmp_path_factory: pytest.TempPathFactory) -> Cluster:
    return Cluster("ours", kubectl, plane / "kubeconfig", tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="session")
def real(
    binaries: dict[str, Path] | str, kubectl: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster | None]:
    if isinstance(binaries, str):
        yield None
        return
    with RealKube(binaries) as kube:
        yield Cluster("real", kubectl, kube.kubeconfig, tmp_path_factory.mktemp("realhome"))


@pytest.fixture
def both(ours: Cluster, real: Cluster | None) -> Pair:
    ns = f"e-{uuid.uuid4().hex[:8]}"
    ours.ok("create", "namespace", ns)
    for made in ("serviceaccount/default", "configmap/kube-root-ca.crt"):
        ours.ok("wait", "--for=create", made, "-n", ns, "--timeout=20s")
    if real is not None:
        # By hand what controllers make, which the bare real server does not have.
        real.ok("create", "namespace", ns)
        real.ok("create", "serviceaccount", "default", "-n", ns)
        real.ok("create", "configmap", "kube-root-ca.crt", "--from-literal=ca.crt=x", "-n", ns)
    return Pair(ours, real, ns)


@pytest.fixture
def replicas() -> Iterator[list[Replica]]:
    """For a test to add those that it starts."""
    made: list[Replica] = []
    yield made
    for each in made:
        each.end()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from e2e.browsing import chromium

    with chromium() as made:
        yield made


@pytest.fixture
def visit(site: Site, browser: Browser) -> Iterator[Visit]:
    """The dashboard of the module's `site`, logged in."""
    from e2e.browsing import log_in

    made = log_in(browser, site.link())
    yield made
    made.page.context.close()
