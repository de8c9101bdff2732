from __future__ import annotations

import pytest

from homeport.runtime.clock import SystemClock
from homeport.sim.machine.console import Console
from homeport.sim.machine.disk import Disk
from homeport.sim.machine.program import TOOLS
from homeport.sim.machine.shell import Shell


def shell() -> Shell:
    return Shell(Disk(), Console(SystemClock()), TOOLS, missing=frozenset({"kubeadm"}))


@pytest.mark.parametrize(
    ("script", "files"),
    [
        ("echo success > /run/a", {"/run/a": "success\n"}),
        ("false && echo no > /a; true && echo yes > /b", {"/b": "yes\n"}),
        ("false || echo yes >> /a; echo more >>/a", {"/a": "yes\nmore\n"}),
        ("X=1; Y=\"$X two\"; echo ${Y} ${Z:-three} '$X' > /a", {"/a": "1 two three $X\n"}),
        ("if [ -f /no ]; then echo 1 >/a; elif test -n x; then echo 2 >/a; else echo 3 >/a; fi", {"/a": "2\n"}),
        ("for i in a b; do echo $i >> /a; done", {"/a": "a\nb\n"}),
        ("cat <<EOF > /a\nhost $HOME\n  x\nEOF\necho done > /b", {"/a": "host /root\n  x\n", "/b": "done\n"}),
        ("cat >/a <<'EOF'\n$HOME\nEOF", {"/a": "$HOME\n"}),
        (
            "echo 'path: /etc/kubernetes/admin.conf' > /a; sed -i 's#path: /etc/kubernetes/admin.conf#path: /etc/kubernetes/super-admin.conf#' /a",
            {"/a": "path: /etc/kubernetes/super-admin.conf\n"},
        ),
        ("echo a-b | tee /a | sed 's/-/+/' > /b", {"/a": "a-b\n", "/b": "a+b\n"}),
        ("echo $(echo in)-$(cat /no) > /a", {"/a": "in-\n"}),
        ("bash -c 'echo \"$0\" x > /a'", {"/a": " x\n"}),
        ("sudo env A=b sh -c 'echo $A' ; A=c sh -c 'echo $A > /a'", {"/a": "c\n"}),
        ("f() { echo $1 > /a; }\nf hello", {"/a": "hello\n"}),
        ("( echo a; echo b ) > /a 2>&1", {"/a": "a\nb\n"}),
        ("n=0; until [ -f /x ]; do touch /x; echo once >> /a; done", {"/a": "once\n", "/x": ""}),
        ("set -e\nfalse\necho no > /a", {}),
        ("echo one # not this > /b\necho \\\n two > /a", {"/a": "two\n"}),
    ],
)
async def test_scripts_leave_the_files_that_a_shell_would(script: str, files: dict[str, str]) -> None:
    made = shell()
    made.env["HOME"] = "/root"
    await made.script(script)
    assert {
        path: made.disk.text(path) for path in ("/a", "/b", "/x", "/run/a") if made.disk.text(path) is not None
    } == files


async def test_a_program_that_is_not_there_fails_with_127_and_the_script_goes_on() -> None:
    made = shell()
    await made.script("kubeadm init && echo success > /a\necho $? > /b")
    assert made.disk.text("/a") is None
    assert made.disk.text("/b") == "127\n"
    assert "kubeadm: not found" in made.console.text()


async def test_an_unknown_program_is_taken_to_succeed_and_the_console_says_so() -> None:
    made = shell()
    assert await made.script("systemd-tmpfiles --create && echo ok > /a") == 0
    assert made.disk.text("/a") == "ok\n"
    assert "systemd-tmpfiles --create: taken to succeed" in made.console.text()


@pytest.mark.parametrize("script", ["if true; then echo", "echo 'open", "for x in a", "cat <<EOF\nno end", "fi"])
async def test_a_script_that_is_none_does_nothing(script: str) -> None:
    made = shell()
    assert await made.script(f"echo first > /a\n{script}") == 2
    assert made.disk.text("/a") is None
    assert "sh: " in made.console.text()
