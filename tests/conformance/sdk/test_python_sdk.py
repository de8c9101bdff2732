"""The vendor's own Python clients work against the simulated Prism Central, unmodified."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from conformance.sdk.environment import SETS, ensure
from homeport.runtime.clock import SystemClock
from homeport.sim.engine.fault import parse_faults
from homeport.sim.engine.progress import Progress
from homeport.sim.engine.tls import Authority
from homeport.sim.prism.pace import INSTANT, Pace
from homeport.sim.prism.prism import Prism
from homeport.sim.prism.wire import Wire

PROGRAM = Path(__file__).with_name("program.py")
CIRCUMSTANCES: dict[str, tuple[Pace, str]] = {
    "at once": (INSTANT, ""),
    "after two reads": (Pace(default=Progress(reads=2)), ""),
    "with sessions that end": (INSTANT, "- {match: {every: 5}, effect: {kind: session-expiry}}"),
}

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]


@pytest.mark.parametrize("circumstance", CIRCUMSTANCES)
@pytest.mark.parametrize("version", SETS)
async def test_the_clients_of_the_vendor_work_unmodified(version: str, circumstance: str, tmp_path: Path) -> None:
    python = await asyncio.to_thread(ensure, version)
    if isinstance(python, str):
        pytest.skip(python)
    clock = SystemClock()
    authority = Authority.ensure(tmp_path, clock)
    pace, faults = CIRCUMSTANCES[circumstance]
    wire = Wire(Prism(pace=pace, faults=parse_faults(f"faults:\n{faults}") if faults else ()))
    port = await wire.start(tls=authority.context("server", ["127.0.0.1", "localhost"], clock))
    try:
        process = await asyncio.create_subprocess_exec(
            str(python), "-W", "ignore", str(PROGRAM), "127.0.0.1", str(port), str(authority.path),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, cwd=tmp_path,
        )  # fmt: skip
        out, err = await process.communicate()
    finally:
        await wire.close()
    results = [json.loads(line) for line in out.decode().splitlines()]
    assert len(results) >= 13, err.decode()[-4000:]
    problems = [f"{each['scenario']}: {each['problem']}" for each in results if each["problem"]]
    assert not problems, "\n".join(problems)
