from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuzz.fuzz_bound import Deadline, Target

TARGET = Path(__file__).with_name("fuzz_target.py")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    directory = tmp_path_factory.mktemp("fuzz")
    log = directory / "log"
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, str(TARGET), str(directory / "pki")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    while line and not line.startswith("{"):
        line = process.stdout.readline()
    assert line, f"the server did not start: {log.read_text()}"
    ready = json.loads(line)
    tls = ssl.create_default_context()
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    yield Target(ready["url"], ready["token"], process, tls, log)
    assert process.stdin is not None
    process.stdin.close()
    process.stdout.close()
    process.wait(20)


@pytest.fixture
def deadline() -> Deadline:
    return Deadline()
