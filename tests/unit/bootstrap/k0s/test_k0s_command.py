"""Shell commands that bring k0s on a machine."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.k0s.v1beta2 import HostSpec
from homeport.bootstrap.k0s.command import download_commands, install_command, start_command
from homeport.bootstrap.k0s.userdata import K0sData, render_cloud_config
from homeport.bootstrap.kubeadm.userdata import File
from homeport.capi.k0s.argument import parse_arguments
from homeport.sim.machine.userdata.cloudconfig import read_cloud_config
from homeport.sim.machine.userdata.part import parse_user_data

VERSION = "v1.33.4+k0s.0"
PROXY = "HTTPS_PROXY=http://proxy.example:3128"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"pre_installed_k0s": True}, []),
        (
            {},
            ["curl -sSfL --retry 5 https://get.k0s.sh | K0S_INSTALL_PATH=/usr/local/bin K0S_VERSION=v1.33.4+k0s.0 sh"],
        ),
        (
            {"args": ["--env", PROXY]},
            [
                f"{PROXY} curl -sSfL --retry 5 https://get.k0s.sh | {PROXY} "
                "K0S_INSTALL_PATH=/usr/local/bin K0S_VERSION=v1.33.4+k0s.0 sh"
            ],
        ),
        (
            {"download_url": "https://mirror.example/k0s", "k0s_install_dir": "/opt/bin/"},
            [
                "mkdir -p /opt/bin",
                "curl -sSfL --retry 5 https://mirror.example/k0s -o /opt/bin/k0s",
                "chmod +x /opt/bin/k0s",
            ],
        ),
        (
            {"download_url": "oci://registry.example/k0s:v1.33"},
            [
                "mkdir -p /usr/local/bin",
                "oras pull --output /usr/local/bin registry.example/k0s:v1.33",
                "chmod +x /usr/local/bin/k0s",
            ],
        ),
    ],
)
def test_k0s_comes_from_where_the_config_says(spec: dict[str, Any], expected: list[str]) -> None:
    host = HostSpec(**spec)
    assert download_commands(host, VERSION, parse_arguments(host.args)) == expected


def test_a_url_can_not_run_commands_of_its_own() -> None:
    host = HostSpec(download_url="https://mirror.example/k0s; rm -rf /")
    assert "'https://mirror.example/k0s; rm -rf /'" in download_commands(host, VERSION, parse_arguments([]))[1]


def test_the_service_is_started_by_whatever_there_is() -> None:
    assert install_command(HostSpec(), "worker", ["--a", "--b"]) == "/usr/local/bin/k0s install worker --a --b"
    for each in ("systemctl start k0sworker", "rc-service k0sworker start", "service k0sworker start"):
        assert each in start_command("worker")


def test_user_data_of_the_user_is_merged_behind_ours() -> None:
    data = K0sData(
        (File("/etc/k0s.token", "secret", permissions="0600"),),
        ("echo ours",),
        "#cloud-config\nruncmd: [echo theirs]\n",
    )
    found = parse_user_data(render_cloud_config(data).encode())
    assert found.config["runcmd"] == ["echo ours", "echo theirs"]
    assert found.config["write_files"][0]["permissions"] == "0600"


def test_cloud_init_reads_what_is_written() -> None:
    data = K0sData((File("/a", 'text "quoted"\nand {{ braces }}'), File("/b", "AAE=", encoding="b64")), ("echo 'a b'",))
    found = parse_user_data(render_cloud_config(data).encode())
    config = read_cloud_config(found.config)
    assert config is not None
    assert found.config["write_files"][0]["content"] == 'text "quoted"\nand {{ braces }}\n'
    assert found.config["runcmd"] == ["echo 'a b'"]
