from __future__ import annotations

import pytest

from homeport.runtime.clock import SystemClock
from homeport.sim.machine.console import Console
from homeport.sim.machine.disk import Disk
from homeport.sim.machine.image import describe_image
from homeport.sim.machine.shell.inventory import inventory
from homeport.sim.machine.shell.program import TOOLS
from homeport.sim.machine.shell.shell import Shell


def shell() -> Shell:
    return Shell(Disk(), Console(SystemClock()), TOOLS, known={"systemd-tmpfiles", "lsblk"})


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
            "echo 'path: /etc/kubernetes/admin.conf' > /a; sed -i 's#path: /etc/kubernetes/admin.conf#path: "
            "/etc/kubernetes/super-admin.conf#' /a",
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
        ("case ubuntu in ub*) echo 1 > /a;; *) echo 2 > /a;; esac", {"/a": "1\n"}),
        (
            "X=c\ncase $X in\n  (a|b) echo 1 > /a ;;\n  c)\n    echo 2 > /a\n    echo 3 > /b\nesac\necho x > /x",
            {"/a": "2\n", "/b": "3\n", "/x": "x\n"},
        ),
        ('case "$NONE" in a) echo 1 > /a;; esac > /b', {"/b": ""}),
        ("echo V=4 > /b; . /b; echo $V > /a", {"/a": "4\n", "/b": "V=4\n"}),
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


async def test_a_program_that_changes_nothing_here_is_taken_to_succeed_and_the_console_says_so() -> None:
    made = shell()
    assert await made.script("systemd-tmpfiles --create && echo ok > /a") == 0
    assert made.disk.text("/a") == "ok\n"
    assert "systemd-tmpfiles --create: assumed to succeed" in made.console.text()


async def test_scripts_on_the_disk_are_run_if_they_may_be() -> None:
    made = shell()
    made.disk.write("/usr/local/bin/prepare", b"#!/bin/bash -e\necho $1 > /a\n", mode=0o755)
    made.disk.write("/opt/plain", b"echo no > /b\n", mode=0o644)
    made.disk.write("/opt/snake", b"#!/usr/bin/env python3\nprint(1)\n", mode=0o755)
    assert await made.script("prepare it && ! /opt/plain && /opt/snake") == 0
    assert made.disk.text("/a") == "it\n"
    assert made.disk.text("/b") is None
    assert "/opt/plain: Permission denied" in made.console.text()
    assert "/opt/snake: assumed to succeed" in made.console.text()


async def test_what_was_fetched_is_there_and_can_be_run() -> None:
    made = shell()
    assert (
        await made.script("curl -fsSLo /usr/local/bin/yq https://example.com/yq && chmod +x /usr/local/bin/yq && yq .")
        == 0
    )
    assert await made.script("wget -O /tmp/x https://example.com/x; chmod a+x /tmp/x; /tmp/x") == 0
    assert await made.script("jq .") == 127


@pytest.mark.parametrize(("family", "program", "code"), [("ubuntu", "netplan", 0), ("rocky", "netplan", 127),
                                                         ("rocky", "restorecon", 0), ("ubuntu", "jq", 127),
                                                         ("linux", "restorecon", 0), ("ubuntu", "kubelet", 127)])  # fmt: skip
async def test_an_image_has_what_its_family_brings(family: str, program: str, code: int) -> None:
    made = Shell(Disk(), Console(SystemClock()), TOOLS, known=inventory(describe_image(f"{family}-22.04")))
    assert await made.script(program) == code


@pytest.mark.parametrize(
    "script",
    [
        "if true; then echo",
        "echo 'open",
        "for x in a",
        "cat <<EOF\nno end",
        "fi",
        "case x in a) true",
        "case x",
        "esac",
    ],
)
async def test_an_invalid_script_does_nothing(script: str) -> None:
    made = shell()
    assert await made.script(f"echo first > /a\n{script}") == 2
    assert made.disk.text("/a") is None
    assert "sh: " in made.console.text()
