"""The user of the bootstrap check in the user data of VMs."""

from __future__ import annotations

import pytest
import yaml

from homeport.providers.harvester.machine.sshkey import with_user
from present import present

PUBLIC = "ecdsa-sha2-nistp384 AAAAE2Vj"


def _users(data: str) -> list[object]:
    made = yaml.safe_load(present(with_user(data.encode(), PUBLIC)))
    return [each if isinstance(each, str) else each["name"] for each in made["users"]]


@pytest.mark.parametrize(
    ("data", "users"),
    [
        ("#cloud-config\n", ["default", "capk"]),
        ("#cloud-config\nruncmd: [echo]", ["default", "capk"]),
        ("#cloud-config\nusers:\n- name: a\n- default\n", ["capk", "a", "default"]),
        ("#cloud-config\nusers: # of people\n    - name: a\n      sudo: x\nruncmd: []\n", ["capk", "a"]),
        ("#cloud-config\nwrite_files:\n- content: |\n    users:\n    - x\n  path: /a\n", ["default", "capk"]),
    ],
)
def test_a_user_is_added_to_those_that_are_there(data: str, users: list[str]) -> None:
    assert _users(data) == users


def test_a_template_keeps_its_expressions() -> None:
    data = b"## template: jinja\n#cloud-config\nusers:\n- name: {{ ds.meta_data.user }}\n"
    made = present(with_user(data, PUBLIC)).decode()
    assert made.startswith("## template: jinja\n#cloud-config\nusers:\n- name: capk\n")
    assert made.endswith("- name: {{ ds.meta_data.user }}\n")


@pytest.mark.parametrize(
    "data",
    [
        b"#cloud-config\nusers: [default]\n",
        b"#cloud-config\nusers: default\n",
        b'#cloud-config\n"users":\n- a\n',
        b"#!/bin/sh\ntrue\n",
        b'{"ignition": {}}',
        b"version: v1alpha1\nmachine: {}\n",
    ],
)
def test_what_can_not_be_extended_stays_as_it_is(data: bytes) -> None:
    assert with_user(data, PUBLIC) is None
