"""The path of a new user, timed: clean clone, `make run`, a first simulated cluster, its kubeconfig used.

    bench/newuser.py            with the set-up: clones this repository and installs everything from the package index
    bench/newuser.py --no-setup what comes after it, with the installation of this clone

Prints one line for each step, and fails if a step fails. Needs git, make and kubectl.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from docs.commands.page import kubectl_folder  # noqa: E402
from docs.reader import ALONE, Reader, own_network  # noqa: E402

WITH_SETUP, AFTER_SETUP = 180.0, 20.0  # seconds that we aim at
# A new user in a second terminal, as soon as the first one shows that the plane is ready. `-o`: installed already.
_SCRIPT = """
mkfifo said
make -o .venv/.run run > said 2> log &
exec 3< said
read -r ready <&3
echo "step: $ready"
export KUBECONFIG=~/.homeport/kubeconfig
kubectl apply -f examples/02-cluster/cluster.yaml > applied
echo "step: $(wc -l < applied) objects applied"
kubectl wait --for=condition=Available cluster/harbour --timeout=240s > /dev/null
echo "step: the cluster is Available"
kubectl get secret harbour-kubeconfig -o jsonpath='{.data.value}' | base64 -d > harbour.kubeconfig
kubectl --kubeconfig harbour.kubeconfig wait --for=condition=Ready nodes --all --timeout=120s > /dev/null
echo "step: $(kubectl --kubeconfig harbour.kubeconfig get nodes -o name | wc -l) Nodes are Ready"
echo "end"
kubectl delete cluster harbour --timeout=240s > /dev/null
.venv/bin/homeport down > /dev/null
wait
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-setup", action="store_true")
    setup = not parser.parse_args().no_setup
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader.make(Path(folder) / "reader", [Path(kubectl_folder()) / "kubectl"])
        begin = time.monotonic()
        if setup:
            reader = clone(reader, Path(folder))
            say(begin, "cloned and installed (make setup)")
        installed = time.monotonic()
        with running(reader) as output:
            for line in output:
                if line.startswith("step: "):
                    say(installed, line.removeprefix("step: ").strip())
                if line == "end\n":
                    break
            after = time.monotonic() - installed
        total = time.monotonic() - begin
    print(f"after the set-up: {after:.1f} s (aim: {AFTER_SETUP:.0f} s)")
    if setup:
        print(f"all of it, with the end of the plane: {total:.1f} s (aim: {WITH_SETUP:.0f} s)")
    return 0


def say(since: float, text: str) -> None:
    print(f"{time.monotonic() - since:6.1f} s  {text}", flush=True)


def clone(reader: Reader, folder: Path) -> Reader:
    """What is committed, installed as `make run` does it first. Only this step needs a network."""
    place = folder / "clean"
    subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(place)], check=True)
    # The way to the package index is a setting of this machine.
    settings = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
    subprocess.run(
        ["make", "--silent", "setup"],
        cwd=place,
        env={**settings, "HOME": str(reader.home), "PATH": os.environ["PATH"]},
        check=True,
    )
    return Reader(reader.home, place)


@contextmanager
def running(reader: Reader) -> Iterator[Iterator[str]]:
    """The lines of the script. On the way out it must have ended well, and nothing may be left of it."""
    with own_network() as prefix:
        loopback = ["--loopback"] if prefix else []
        command = [*prefix, sys.executable, str(ALONE), *loopback, "bash", "--login", "-euo", "pipefail", "-c", _SCRIPT]
        process = subprocess.Popen(command, cwd=reader.clone, env=reader.environment, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        with process:
            yield iter(process.stdout)
            rest = process.stdout.read()
        if process.returncode:
            raise SystemExit(f"the path of a new user ends with code {process.returncode}\n{rest}")


if __name__ == "__main__":
    sys.exit(main())
