"""The path of a new user, from `make run` to the Nodes of a first cluster, works and is timed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs.commands.page import kubectl_folder

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(660)]


def test_make_run_leads_to_a_cluster_whose_kubeconfig_works() -> None:
    kubectl_folder()
    tool = [sys.executable, str(ROOT / "bench/newuser.py"), "--no-setup"]
    done = subprocess.run(tool, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    steps = re.findall(r"^ *([\d.]+) s  (.*)$", done.stdout, re.M)
    assert [re.sub(r"\d+ ", "N ", text) for _, text in steps] == [
        "Homeport is ready at https://127.0.0.1:6443",
        "N objects applied",
        "the cluster is Available",
        "N Nodes are Ready",
    ]
    # The aim of 20 s is for a quiet machine: the bench prints how it was met. Here it only has to be measured.
    (after,) = re.findall(r"^after the set-up: ([\d.]+) s", done.stdout, re.M)
    assert float(after) >= float(steps[-1][0]) - 0.1
