"""Cloud-configs and Ignition configs, read back."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from homeport.bootstrap.document import dump_yaml
from homeport.bootstrap.kubeadm.cloudconfig import render_cloud_config
from homeport.bootstrap.kubeadm.containerlinux import BadContainerLinuxConfig, transpile
from homeport.bootstrap.kubeadm.ignition import BadContent, render_ignition, unit_name
from homeport.bootstrap.kubeadm.userdata import File, UserData
from homeport.sim.machine.userdata.cloudconfig import read_cloud_config
from homeport.sim.machine.userdata.part import parse_user_data
from unit.bootstrap.example import user_data

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1, max_size=9), inner, max_size=4),
    max_leaves=12,
)


@given(_VALUES)
def test_what_is_written_as_yaml_is_read_back_the_same(value: object) -> None:
    assert yaml.safe_load(dump_yaml(value)) == value


@pytest.mark.parametrize(
    "text",
    ["{{ ds['a'] }}", '{{ ds["a"] }}', 'a "{{ x }}" \\ b', "\n  {{ x }}\n\n", "{% raw %}\n\t'{{ y }}'\n{% endraw %}"],
)
def test_expressions_stand_in_the_document_as_they_were_written(text: str) -> None:
    written = dump_yaml({"a": [{"b": text}]})
    for line in text.strip().splitlines():
        assert line in written
    assert yaml.safe_load(written) == {"a": [{"b": text}]}


def test_a_cloud_config_says_all_that_was_asked_for() -> None:
    config = yaml.safe_load(render_cloud_config(user_data()))
    found = {each["path"]: each for each in config["write_files"]}
    plain = user_data().files[0]
    assert found["/etc/plain"]["content"] == plain.content + "\n"
    assert (found["/etc/plain"]["owner"], found["/etc/plain"]["permissions"]) == ("root:root", "0644")
    assert found["/etc/hosts"]["append"] is True
    assert found["/etc/packed"]["encoding"] == "gzip+base64"
    assert config["bootcmd"] == ['echo "boot"']
    assert config["runcmd"] == [
        *user_data().pre_commands,
        "kubeadm init --config /run/kubeadm/kubeadm.yaml --v 5 "
        "&& echo success > /run/cluster-api/bootstrap-success.complete",
        "date",
    ]
    assert config["ntp"] == {"enabled": True, "servers": ["0.pool.example.org"]}
    assert config["users"][0]["lock_passwd"] is False
    assert config["users"][0]["inactive"] == "0"
    assert config["disk_setup"] == {
        "/dev/sdb": {"table_type": "gpt", "layout": True, "overwrite": True},
        "/dev/sdc": {"table_type": "mbr", "layout": [[60, 83], 40]},
    }
    assert config["fs_setup"] == [
        {"label": "data", "filesystem": "ext4", "device": "/dev/sdb1", "overwrite": True, "extra_opts": ["-F"]}
    ]
    assert config["mounts"] == [["LABEL=data", "/var/lib/data"]]


def test_a_machine_reads_the_cloud_config_with_its_expressions_filled_in() -> None:
    read = parse_user_data(
        render_cloud_config(user_data()).encode(),
        {"ds": {"meta_data": {"hostname": "one", "local_hostname": "one.local"}}},
    )
    assert read.warnings == []
    config = read_cloud_config(read.config)
    assert config.failures == []
    assert config.runcmd[0] == 'hostnamectl set-hostname "one"'
    found = {each.path: each.content for each in config.files}
    assert found["/etc/encoded"] == b"hello"
    assert found["/etc/packed"] == b"hello"
    assert b"one.local" in found["/run/kubeadm/kubeadm.yaml"]


def _ignition(text: str) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(text)
    return config


def _content(entry: dict[str, Any]) -> str:
    return unquote_to_bytes(entry["contents"]["source"].removeprefix("data:,")).decode()


def test_an_ignition_config_says_all_that_was_asked_for() -> None:
    config = _ignition(render_ignition(user_data(ignition=True)))
    assert config["ignition"] == {"version": "2.3.0"}
    found = {each["path"]: each for each in config["storage"]["files"]}
    assert all(each["filesystem"] == "root" for each in found.values())
    assert found["/etc/plain"]["mode"] == 0o644
    assert (found["/etc/plain"]["user"], found["/etc/plain"]["group"]) == ({"name": "root"}, {"name": "root"})
    assert _content(found["/etc/plain"]) == user_data().files[0].content + "\n"
    assert _content(found["/etc/encoded"]) == "hello"
    assert found["/etc/hosts"]["append"] is True
    assert _content(found["/etc/sudoers.d/joe"]) == "joe ALL=(ALL) NOPASSWD:ALL\n"
    assert "Match User joe" in _content(found["/etc/ssh/sshd_config"])
    assert "server 0.pool.example.org\n" in _content(found["/etc/ntp.conf"])
    script = _content(found["/etc/kubeadm.sh"]).splitlines()
    assert script[:2] == ["#!/bin/bash", "set -e"]
    assert "kubeadm init --config /etc/kubeadm.yml --v 5" in script
    assert script[-1] == "date"
    assert config["passwd"]["users"][0]["groups"] == ["wheel", "docker"]
    units = {each["name"]: each for each in config["systemd"]["units"]}
    assert set(units) == {"kubeadm.service", "ntpd.service", "var-lib-my\\x2ddata.mount"}
    mount = units["var-lib-my\\x2ddata.mount"]["contents"]
    assert "What=/dev/sdb1\nWhere=/var/lib/my-data\nOptions=defaults,nofail\n" in mount
    assert config["storage"]["disks"] == [{"device": "/dev/sdb", "wipeTable": True, "partitions": [{}]}]
    assert config["storage"]["filesystems"][0]["mount"]["options"] == ["-F"]


def test_the_users_own_config_is_added() -> None:
    own = """
storage:
  files:
    - path: /opt/a
      mode: 0755
      contents: {inline: "hi there"}
    - path: /opt/b
      contents: {remote: {url: "https://example.com/b", verification: {hash: {function: sha512, sum: ab}}}}
  disks:
    - device: /dev/sdz
      wipe_table: true
      partitions: [{label: x, size: 10GiB, start: 1MiB, type_guid: raid_partition}]
systemd:
  units:
    - name: kubeadm.service
      dropins: [{name: 10-x.conf, contents: "[Service]\\nUser=root"}]
networkd:
  units: [{name: a.network, contents: "[Match]"}]
"""
    config = _ignition(render_ignition(UserData("join", ({},)), own, strict=True))
    files = {each["path"]: each for each in config["storage"]["files"]}
    assert (files["/opt/a"]["mode"], _content(files["/opt/a"])) == (0o755, "hi there")
    assert files["/opt/b"]["contents"] == {"source": "https://example.com/b", "verification": {"hash": "sha512-ab"}}
    assert files["/opt/b"]["mode"] == 0o644
    (partition,) = config["storage"]["disks"][0]["partitions"]
    assert partition == {
        "label": "x",
        "sizeMiB": 10_240,
        "startMiB": 1,
        "typeGuid": "a19d880f-05fc-4d3b-a006-743f0f84911e",
    }
    assert [each["name"] for each in config["systemd"]["units"]] == ["kubeadm.service", "kubeadm.service"]
    assert config["networkd"]["units"][0]["name"] == "a.network"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "is not YAML"),
        ("- a", "not a mapping"),
        ("etcd: {version: 3}", "'etcd' is not supported"),
        ("storage: {fils: []}", r"storage\.fils is unknown: expected one of .*files"),
        ("storage: {files: {}}", r"storage\.files is not a list"),
        ("storage: {disks: [{partitions: [{size: big}]}]}", r"partitions\[0\]\.size: 'big' is not a valid size"),
        ("storage: {disks: [{partitions: [{size: 100B}]}]}", "not a whole number of MiB"),
        ("storage: {files: [{contents: {local: a}}]}", "use inline"),
        ("storage: {files: [{contents: {inline: a, remote: {url: b}}}]}", "set only one of"),
    ],
)
def test_a_config_that_cannot_be_used_is_refused_with_the_place(text: str, message: str) -> None:
    with pytest.raises(BadContainerLinuxConfig, match=message):
        transpile(text, strict=True)


def test_without_strict_a_key_that_means_nothing_is_left_out() -> None:
    assert transpile("storage: {fils: [], links: [{path: /a, target: /b}]}", strict=False) == {
        "storage": {"links": [{"filesystem": "root", "path": "/a", "target": "/b"}]}
    }


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (File("/a", "x", encoding="gzip"), "gzip is not supported with Ignition"),
        (File("/a", "x", permissions="rw"), "'rw' are not an octal number"),
        (File("/a", "a", encoding="base64"), "content is not base64"),
    ],
)
def test_what_ignition_cannot_say_is_refused(file: File, message: str) -> None:
    with pytest.raises(BadContent, match=message):
        render_ignition(UserData("join", ({},), files=(file,)))


@pytest.mark.parametrize(
    ("path", "name"),
    [("/", "-"), ("/var/lib", "var-lib"), ("/a-b/.c/", "a\\x2db-\\x2ec"), ("/with space", "with\\x20space")],
)
def test_units_of_mounts_are_named_as_systemd_wants_it(path: str, name: str) -> None:
    assert unit_name(path) == name
