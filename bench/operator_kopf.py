"""The same job as workload.py, done with kopf. Run by kopf's own command in a virtual environment of its own.

BENCH_HANDLER chooses: `event` is the least that kopf can do (no bookkeeping on the object, no diff), `change` is what
its documentation begins with (create and resume handlers, which remember on the object what they handled).
"""

from __future__ import annotations

import json
import logging
import os
import time
from typing import Any

import kopf

ROUND = int(os.environ.get("BENCH_ROUND", "1"))
TOTAL = int(os.environ.get("BENCH_TOTAL", "10000"))
REPORT = os.environ.get("BENCH_REPORT", os.devnull)
GROUP = "bench.homeport.dev"
written = 0


def tell(phase: str, **more: Any) -> None:
    now = {"phase": phase, "wall": time.monotonic(), "cpu": time.process_time(), **more}
    with open(REPORT, "a") as file:
        file.write(json.dumps(now) + "\n")


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False  # our side records no events here, either
    settings.posting.level = logging.ERROR
    logging.getLogger("kopf").setLevel(logging.WARNING)
    tell("start")


def stamp(name: str, patch: kopf.Patch) -> None:
    global written
    number = int(name[-5:])
    patch.status["phase"] = "Running" if ROUND % 2 else "Provisioned"
    patch.status["observedGeneration"] = ROUND
    patch.status["addresses"] = [{"type": "InternalIP", "address": f"192.0.2.{number % 250}"}]
    patch.status["conditions"] = [
        {
            "type": kind,
            "status": "True" if ROUND % 2 else "False",
            "reason": "Measured",
            "message": f"round {ROUND} of machine {number}",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        for kind in ("Available", "Ready", "NetworkReady", "StorageReady")
    ]
    if not written:
        tell("go")
    written += 1
    if written % 100 == 0:
        tell("written" if written == TOTAL else "progress", count=written)


if os.environ.get("BENCH_HANDLER") == "change":

    @kopf.on.resume(GROUP, "v1", "machines")
    @kopf.on.create(GROUP, "v1", "machines")
    async def changed(name: str, patch: kopf.Patch, **_: Any) -> None:
        stamp(name, patch)

else:

    @kopf.on.event(GROUP, "v1", "machines")
    async def happened(name: str, status: kopf.Status, patch: kopf.Patch, **_: Any) -> None:
        if status.get("observedGeneration") != ROUND:
            stamp(name, patch)
