from __future__ import annotations

import base64
import gzip
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText

import pytest

from homeport.sim.machine.instance import instance_data, parse_meta_data
from homeport.sim.machine.userdata.cloudconfig import File, read_cloud_config
from homeport.sim.machine.userdata.jinja import TemplateError, render
from homeport.sim.machine.userdata.part import parse_user_data, unpacked

CONFIG = b"#cloud-config\nruncmd:\n- kubeadm init\n"


@pytest.mark.parametrize(
    "raw",
    [
        CONFIG,
        gzip.compress(CONFIG, mtime=0),
        base64.b64encode(CONFIG),
        base64.b64encode(gzip.compress(CONFIG, mtime=0)),
        base64.encodebytes(CONFIG),
    ],
    ids=["plain", "gzip", "base64", "both", "lines"],
)
def test_user_data_is_found_under_gzip_and_base64(raw: bytes) -> None:
    found = parse_user_data(raw)
    assert found.kind == "cloud-init"
    assert found.config == {"runcmd": ["kubeadm init"]}
    assert found.warnings == []


def test_a_damaged_archive_is_an_error() -> None:
    with pytest.raises(ValueError, match="cut short"):
        unpacked(gzip.compress(CONFIG)[:-9])


def test_parts_of_a_mime_message_are_put_together() -> None:
    message = MIMEMultipart()
    for text, kind in (
        ("#cloud-config\nhostname: a\nruncmd: [one]\n", "cloud-config"),
        ("#!/bin/sh\necho hi\n", "x-shellscript"),
        (
            "#cloud-config\nmerge_how: list(append)+dict(recurse_array)+str()\nhostname: b\nruncmd: [two]\n",
            "cloud-config",
        ),
        ("#cloud-boothook\necho early\n", "plain"),
        ("what is this", "plain"),
    ):
        message.attach(MIMEText(text, kind))
    found = parse_user_data(message.as_bytes())
    assert found.config == {"hostname": "a", "runcmd": ["one", "two"]}
    assert found.scripts == ["#!/bin/sh\necho hi\n"]
    assert found.boothooks == ["echo early\n"]
    assert [line for line in found.warnings if "what is this" in line]


def test_a_later_part_replaces_keys_of_an_earlier_one_unless_it_says_otherwise() -> None:
    message = MIMEMultipart()
    for text in ("#cloud-config\nruncmd: [one]\nusers: [a]\n", "#cloud-config\nruncmd: [two]\n"):
        message.attach(MIMEText(text, "cloud-config"))
    assert parse_user_data(message.as_bytes()).config == {"runcmd": ["two"], "users": ["a"]}


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", "none"),
        (b"   \n", "none"),
        (b'{"ignition": {"version": "3.4.0"}}', "ignition"),
        (b"version: v1alpha1\nmachine:\n  type: worker\ncluster: {}\n", "talos"),
        (b"# made by a tool\nversion: v1alpha1\nmachine:\n  type: worker\n", "talos"),
        (b"kubeadm init\n", "unknown"),
        (b"#!/bin/bash\nkubeadm init\n", "cloud-init"),
    ],
)
def test_the_kind_of_user_data_is_recognised(raw: bytes, kind: str) -> None:
    assert parse_user_data(raw).kind == kind


def test_broken_yaml_is_reported_and_leaves_no_configuration() -> None:
    found = parse_user_data(b"#cloud-config\nruncmd: [\n")
    assert found.config == {}
    assert "Failed loading yaml blob" in found.warnings[0]


def test_a_template_is_rendered_with_instance_data() -> None:
    meta = parse_meta_data(b'{"hostname": "md-0-abc", "instance-id": "i-1", "uuid": "u"}')
    names = instance_data(meta, name="vm", instance_id="x", platform="nutanix")
    text = b"## template: jinja\n#cloud-config\nhostname: '{{ ds.meta_data.hostname }}'\nruncmd:\n- echo {{ v1.instance_id }} {{ ds.meta_data.nope }}\n"
    found = parse_user_data(text, names)
    assert found.config == {"hostname": "md-0-abc", "runcmd": ["echo i-1 CI_MISSING_JINJA_VAR/nope"]}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ a.b[0] | upper }}", "X"),
        ("{{ 'x' ~ 1 }}{# no #}", "x1"),
        ("{% if a is defined and not none %}yes{% else %}no{% endif %}", "yes"),
        ("{% if z == 'q' %}\n1\n{% elif a %}\n2\n{% endif %}\n3", "2\n3"),
        ("{% for x in a.b %}[{{ x }}]{% endfor %}", "[x][y]"),
        ("{% raw %}{{ not.me }}{% endraw %}{{ z | default('d') }}", "{{ not.me }}d"),
        ("{% set q = 'w' %}{{ q }}  {{- q }}", "ww"),
        ("{{ '{{' }}", "{{"),
    ],
)
def test_templates(template: str, text: str) -> None:
    assert render(template, {"a": {"b": ["x", "y"]}}) == text


@pytest.mark.parametrize("template", ["{% if a %}", "{{ a | nosuch }}", "{% include 'x' %}", "{{ ( }}", "{% endif %}"])
def test_a_template_that_can_not_be_rendered_is_an_error(template: str) -> None:
    with pytest.raises(TemplateError):
        render(template, {})


def test_files_are_decoded_with_their_permissions() -> None:
    found = read_cloud_config(
        {
            "write_files": [
                {"path": "/a", "content": "x", "permissions": "0600", "owner": "a:b"},
                {"path": "/b", "content": base64.b64encode(b"y").decode(), "encoding": "b64", "permissions": 0o640},
                {"path": "/c", "content": base64.b64encode(gzip.compress(b"z")).decode(), "encoding": "gzip+base64"},
                {"path": "/d", "content": "w", "append": True, "defer": True},
            ]
        }
    )
    assert found.files == [
        File("/a", b"x", 0o600, "a:b"),
        File("/b", b"y", 0o640),
        File("/c", b"z"),
        File("/d", b"w", append=True, defer=True),
    ]
    assert found.failures == []


def test_a_file_that_can_not_be_decoded_ends_the_module_and_not_the_others() -> None:
    found = read_cloud_config(
        {
            "write_files": [
                {"path": "/a", "content": "x"},
                {"path": "/b", "content": "no", "encoding": "gz"},
                {"path": "/c"},
            ],
            "runcmd": ["echo a", ["echo", "b", 1], None],
            "users": [
                "default",
                {"name": "capi", "groups": "a, b", "ssh_authorized_keys": ["ssh-rsa x"], "sudo": "ALL"},
            ],
        }
    )
    assert [file.path for file in found.files] == ["/a"]
    assert [module for module, _ in found.failures] == ["write_files"]
    assert found.runcmd == ["echo a", ("echo", "b", "1")]
    assert [user.name for user in found.users] == ["default", "capi"]
    assert found.users[1].groups == ("a", "b")


def test_a_command_that_is_a_mapping_spoils_the_script() -> None:
    found = read_cloud_config({"runcmd": ["echo a", {"echo": "b"}], "bootcmd": "echo"})
    assert {module for module, _ in found.failures} == {"runcmd", "bootcmd"}
    assert found.runcmd == []
