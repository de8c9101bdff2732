"""What of bootstrap data is carried out over SSH, and the scripts that are made of it."""

from __future__ import annotations

import base64
import gzip
import subprocess
from pathlib import Path

import pytest

from homeport.infra.error import Misconfigured
from homeport.providers.remote import script
from homeport.providers.remote.cloudconfig import Bootstrap, File, parse_bootstrap
from homeport.providers.remote.script import Plan, Progress, plan_cleanup, plan_provision


def parsed(text: str, format_: str = "cloud-config") -> Bootstrap:
    return parse_bootstrap(text.encode(), format_, "one", "192.0.2.21:22")


def test_files_and_commands_are_read() -> None:
    packed = base64.b64encode(gzip.compress(b"token")).decode()
    found = parsed(
        f"""## template: jinja
#cloud-config
write_files:
- path: /etc/plain
  content: text
- path: /etc/k0s.token
  encoding: gzip+base64
  permissions: '0600'
  owner: root:root
  content: {packed}
bootcmd: [echo early]
runcmd:
- [k0s, install, a b]
- hostnamectl set-hostname {{{{ ds.meta_data.hostname }}}}
"""
    )
    assert found.files == (File("/etc/plain", b"text"), File("/etc/k0s.token", b"token", "0600", "root:root"))
    assert found.commands == ("echo early", "k0s install 'a b'", "hostnamectl set-hostname one")
    assert "token" not in repr(found.files[0]) + repr(found)


@pytest.mark.parametrize(
    ("text", "format_", "said"),
    [
        ("{}", "ignition", "needs cloud-config"),
        ("#!/bin/sh\necho", "", "not a cloud-config"),
        ("MIME-Version: 1.0\n", "", "customUserDataRef"),
        ("#cloud-config\nusers: []\nntp: {}\n", "", "uses ntp, users"),
        ("#cloud-config\nruncmd: [{a: b}]\n", "", r"runcmd\[0\] is not a command"),
        ("#cloud-config\nwrite_files: [{path: relative}]\n", "", r"write_files\[0\] has no absolute path"),
        ("#cloud-config\nwrite_files: [{path: /a, permissions: rw}]\n", "", "octal mode"),
        ("#cloud-config\nwrite_files: [{path: /a, encoding: b64, content: '!'}]\n", "", "not encoded as b64"),
        ("#cloud-config\nwrite_files: [{path: /a, encoding: rot13, content: a}]\n", "", "encoding 'rot13'"),
        ("#cloud-config\na: [secret\n", "", "not valid YAML$"),
    ],
)
def test_data_that_asks_for_more_is_refused_with_its_place(text: str, format_: str, said: str) -> None:
    with pytest.raises(Misconfigured, match=said):
        parsed(text, format_)


def test_cleanup_follows_from_what_was_installed() -> None:
    commands = ("curl get | sh", "/opt/bin/k0s install controller --kubelet-root-dir=/data/kubelet")
    plan = plan_provision(Bootstrap(commands=commands), as_script=False, working_dir="/w")
    assert plan.k0s == "controller /opt/bin/k0s --kubelet-root-dir=/data/kubelet"
    cleanup = plan_cleanup((), plan.k0s.split(), "/w").commands
    assert [each.partition("exit 0; ")[2] for each in cleanup] == [
        "/opt/bin/k0s etcd leave || true",
        "/opt/bin/k0s stop || true",
        "/opt/bin/k0s reset --kubelet-root-dir=/data/kubelet",
    ]
    assert plan_cleanup(("wipe",), plan.k0s.split(), "/w").commands == ("wipe",)
    assert plan_cleanup((), (), "/w").size == 0


def test_what_a_machine_reports_is_read() -> None:
    text = "user 0\nowner abc\nk0s worker k0s\nprovision state done\ncleanup script\ncleanup state failed 2 1 3\ncleanup at 2\n"
    look = script.parse_look(text + "cleanup running 5\n")
    assert (look.root, look.owner, look.k0s) == (True, "abc", ("worker", "k0s"))
    assert look.provision == Progress(done=True)
    assert look.cleanup == Progress(given=True, failed=(2, 1, 3), at=2, running_seconds=5)
    assert script.parse_look("user 1000\n") == script.Look(root=False)


def test_a_second_claim_of_a_machine_fails(tmp_path: Path) -> None:
    folder = tmp_path / "state"

    def run(owner: str) -> int:
        text = script.render_begin("provision", Plan(working_dir=str(tmp_path)), owner, claim=True)
        return subprocess.run(["sh", "-s"], input=text.replace(script.FOLDER, str(folder)), text=True).returncode

    assert run("first") == 0
    assert run("second") == script.NOT_OURS
    assert (folder / "owner").read_text() == "first\n"
    assert run("first") == 0


def test_a_template_asks_for_the_name_and_the_id_of_the_machine_and_for_nothing_else() -> None:
    found = parsed(
        "## template: jinja\n#cloud-config\nruncmd:\n"
        "- echo {{ ds.meta_data.hostname }} {{ ds.meta_data.instance_id }} {{ v1.instance_id }}\n"
    )
    assert found.commands == ("echo one 192.0.2.21:22 192.0.2.21:22",)
    with pytest.raises(Misconfigured, match=r"asks for more than ds\.meta_data\.hostname"):
        parsed("## template: jinja\n#cloud-config\nruncmd: ['echo {{ ds.meta_data.region }}']\n")
