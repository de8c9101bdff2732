"""Writes docs/picture/first-cluster.svg: a real session from `homeport up --sim` to the Nodes of a first cluster.

With --check nothing is written; the exit code says whether a new recording shows the same, apart from random names
and times. Needs kubectl, on the PATH or built by tools/kube/build.
"""

from __future__ import annotations

import argparse
import difflib
import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from html import escape, unescape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from docs.commands.page import kubectl_folder  # noqa: E402
from docs.reader import Reader  # noqa: E402

PICTURE = ROOT / "docs/picture/first-cluster.svg"
COMMANDS = (
    "homeport up --sim --detach",
    "export KUBECONFIG=~/.homeport/kubeconfig",
    "kubectl apply -f examples/02-cluster/cluster.yaml",
    "kubectl wait --for=condition=Available cluster/harbour --timeout=120s",
    "kubectl wait --for=jsonpath='{.status.availableReplicas}'=3 kubeadmcontrolplane/harbour --timeout=120s",
    "homeport kubeconfig harbour -o harbour.kubeconfig",
    "kubectl --kubeconfig harbour.kubeconfig get nodes",
)
_PROMPT = "$ "
_COLUMNS = 118
_CHARACTER, _LINE, _MARGIN, _FONT = 8.4, 20, 16, 14
_STYLE = """\
svg{background:#10151c;font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
text{fill:#d5dbe3;white-space:pre;animation:appear 1ms both}
.command{fill:#7fd1ae}
@keyframes appear{from{opacity:0}to{opacity:1}}
@media (prefers-reduced-motion:reduce){text{animation:none}}"""


@dataclass(frozen=True)
class Line:
    seconds: float
    text: str


def record() -> list[Line]:
    """What a new user sees, with the time of each line."""
    with tempfile.TemporaryDirectory() as folder:
        reader = Reader.make(Path(folder), [Path(kubectl_folder()) / "kubectl"])
        with reader.shell(_script()) as command:
            lines = _follow(command, reader)
    return [Line(each.seconds, each.text.replace(str(reader.home), "/home/you")) for each in lines]


def _script() -> str:
    """The commands, each shown before it runs; the end of the session is not part of the picture."""
    shown = [f"printf '%s\\n' {_quoted(_PROMPT + each)}\n{each}" for each in COMMANDS]
    end = "exec > /dev/null 2>&1\nkubectl delete cluster harbour --timeout=120s\nhomeport down"
    return "\n".join(["source .venv/bin/activate", *shown, end, ""])


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _follow(command: list[str], reader: Reader) -> list[Line]:
    """The output of a command on a terminal of its own."""
    ours, theirs = pty.openpty()
    environment = {**reader.environment, "TERM": "xterm", "COLUMNS": str(_COLUMNS)}
    process = subprocess.Popen(command, cwd=reader.clone, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    begin, found, rest = time.monotonic(), list[Line](), b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # all who could write have ended
            break
        *whole, rest = (rest + piece).split(b"\n")
        now = time.monotonic() - begin
        found += [Line(now, _plain(line.decode())) for line in whole]
    os.close(ours)
    if process.wait() != 0:
        raise SystemExit("the session failed:\n" + "\n".join(each.text for each in found))
    return found


def _plain(line: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line).rstrip("\r")


def render(lines: list[Line]) -> str:
    width = round(_COLUMNS * _CHARACTER + 2 * _MARGIN)
    height = len(lines) * _LINE + 2 * _MARGIN
    rows = "\n".join(_row(number, line) for number, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-size="{_FONT}" role="img">\n'
        f"<title>A first cluster in a terminal, recorded by tools/record_session.py</title>\n"
        f"<style>\n{_STYLE}\n</style>\n"
        f'<rect width="{width}" height="{height}" rx="8" fill="#10151c"/>\n{rows}\n</svg>\n'
    )


def _row(number: int, line: Line) -> str:
    kind = ' class="command"' if line.text.startswith(_PROMPT) else ""
    place = f'x="{_MARGIN}" y="{_MARGIN + (number + 1) * _LINE - 6}"'
    return f'<text {place}{kind} style="animation-delay:{line.seconds:.2f}s">{escape(line.text)}</text>'


def shown(picture: str) -> list[str]:
    return [unescape(text) for text in re.findall(r"<text [^>]*>(.*)</text>", picture)]


def normal(lines: list[str]) -> list[str]:
    """Without what differs from run to run: ports, processes, ages, random names and so the order of Nodes."""
    text = "\n".join(lines)
    text = re.sub(r"127\.0\.0\.1:(?!6443|9440)\d+", "127.0.0.1:PORT", text)
    text = re.sub(r"process \d+", "process N", text)
    text = re.sub(r"\b\d+s\b", "AGE", re.sub(r" +", " ", text))
    text = re.sub(
        r"\bharbour-(workers-)?(?!control|prism|workers)[a-z0-9]{5}(-[a-z0-9]{5})?\b(?= Ready)", r"harbour-\1X", text
    )
    return sorted(text.splitlines())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    wanted = render(record())
    if not check:
        PICTURE.write_text(wanted)
        return 0
    before, now = normal(shown(PICTURE.read_text())), normal(shown(wanted))
    if before == now:
        return 0
    print("\n".join(difflib.unified_diff(before, now, str(PICTURE), "a new recording", lineterm="")), file=sys.stderr)
    print("run tools/record_session.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
