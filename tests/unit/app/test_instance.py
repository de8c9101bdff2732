"""One process per data directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from homeport.app.plane.instance import AlreadyRunning, Claim, Instance, claimed, stop


def test_a_claim_excludes_a_second_one_and_names_its_holder(tmp_path: Path) -> None:
    assert not claimed(tmp_path)
    claim = Claim(tmp_path)
    assert claimed(tmp_path)
    with pytest.raises(AlreadyRunning, match=f"by process {os.getpid()}"):
        Claim(tmp_path)
    claim.release()
    assert not claimed(tmp_path)
    Claim(tmp_path).release()


def test_stop_returns_when_the_process_has_ended() -> None:
    """Not when it has only let go of its data: what it did last must be over, and its ports free."""
    lingering = (
        "import signal, sys, threading\n"
        "ending = threading.Event()\n"
        "signal.signal(signal.SIGTERM, lambda *_: ending.set())\n"
        "print('ready', flush=True)\n"
        "ending.wait()\n"
        "threading.Event().wait(0.3)\n"
        "print('over', flush=True)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", lingering], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    with process.stdout as out:
        assert out.readline() == "ready\n"
        assert stop(Instance(process.pid, "", "", 0.0), seconds=20.0)
        assert process.wait(0) == 0  # it is over, and nobody had asked yet
        assert out.read() == "over\n"


def test_stop_gives_up_on_a_process_that_stays() -> None:
    stubborn = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(1, flush=True)\nsignal.pause()\n"
    process = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as out:
        assert out.readline()
        assert not stop(Instance(process.pid, "", "", 0.0), seconds=0.1)
        process.kill()
        process.wait(20)
