"""prism-go-client, the library of Nutanix' own controllers, works against the simulated Prism Central, unmodified."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from homeport.runtime.clock import SystemClock
from homeport.sim.engine.progress import Progress
from homeport.sim.engine.tls import Authority
from homeport.sim.prism.pace import INSTANT, Pace
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.wire import Wire

BUILD = Path(__file__).resolve().parents[3] / "tools" / "prism" / "build"
PACES = {"at once": INSTANT, "after two reads": Pace(default=Progress(reads=2))}
SCENARIOS = 16

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def program() -> Path:
    asked = subprocess.run([sys.executable, str(BUILD), "--where"], capture_output=True, text=True, check=True)
    found = Path(asked.stdout.strip())
    if not found.exists():
        why = "it was not built: run tools/prism/build" if shutil.which("go") else "Go is not on PATH to build it"
        pytest.skip(f"no Go client of Prism: {why}")
    return found


@pytest.mark.parametrize("pace", PACES)
async def test_the_go_client_works_unmodified(program: Path, pace: str, tmp_path: Path) -> None:
    clock = SystemClock()
    authority = Authority.ensure(tmp_path, clock)
    wire = Wire(Prism(pace=PACES[pace]))
    port = await wire.start(tls=authority.context("server", ["127.0.0.1"], clock))
    environment = {**os.environ, "SSL_CERT_FILE": str(authority.path), "NO_PROXY": "*"}
    try:
        process = await asyncio.create_subprocess_exec(
            str(program), "127.0.0.1", str(port),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=tmp_path, env=environment,
        )  # fmt: skip
        out, err = await process.communicate()
    finally:
        await wire.close()
    results = [json.loads(line) for line in out.decode().splitlines()]
    assert len(results) == SCENARIOS, err.decode()[-4000:]
    problems = [f"{each['scenario']}: {each['problem']}" for each in results if each["problem"]]
    assert not problems, "\n".join(problems)
