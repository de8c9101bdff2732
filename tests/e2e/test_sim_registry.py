"""Real Helm pulls the charts that the simulated internet serves, from a repository and from a registry."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from homeport.sim.network import Proxy
from realhelm import Helm, find_programs
from unit.sim.registry.test_sim_registry import site

PROGRAMS = find_programs()

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.skipif(isinstance(PROGRAMS, str), reason=PROGRAMS if isinstance(PROGRAMS, str) else ""),
]


def archives(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.glob("*.tgz"))


@pytest.mark.parametrize("name", ["helm3", "helm4"])
async def test_helm_pulls_from_the_addresses_of_the_guide(tmp_path: Path, name: str) -> None:
    assert not isinstance(PROGRAMS, str)
    helm = Helm(PROGRAMS[name], tmp_path)
    async with site(tmp_path / "ca") as s:
        proxy = Proxy(s.network)
        url = await proxy.start()
        environment = {
            **helm.environment,
            "HTTPS_PROXY": url,
            "SSL_CERT_FILE": str(tmp_path / "ca" / "ca.crt"),
            "NO_PROXY": "",
        }

        async def run(*arguments: str) -> tuple[int, str]:
            process = await asyncio.create_subprocess_exec(
                str(helm.program),
                *arguments,
                env=environment,
                cwd=tmp_path,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            out, _ = await process.communicate()
            return process.returncode or 0, out.decode()

        try:
            code, text = await run("pull", "oci://ghcr.io/k0rdent/kcm/charts/kcm", "--version", "1.2.0")
            assert code == 0, text
            code, text = await run("repo", "add", "nutanix", "https://nutanix.github.io/helm/")
            assert code == 0, text
            code, text = await run("pull", "nutanix/nutanix-csi-storage", "--version", "3.0.0")
            assert code == 0, text
            assert archives(tmp_path) == ["kcm-1.2.0.tgz", "nutanix-csi-storage-3.0.0.tgz"]
            code, text = await run("pull", "oci://ghcr.io/k0rdent/kcm/charts/kcm", "--version", "9.9.9")
            assert code != 0
            assert "not found" in text
        finally:
            await proxy.close()
