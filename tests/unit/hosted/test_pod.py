"""The Pods of a control plane: the whole objects as written down, and what matters in them one by one."""

from __future__ import annotations

import functools
import re
import subprocess
from typing import Any

import pytest

from homeport.hosted import name as names
from homeport.hosted.tenant.deployment import render_deployment, render_tenant_service
from homeport.hosted.tenant.flag import api_server_args, controller_manager_args, scheduler_args, with_extra
from homeport.hosted.tenant.pod import render_pod_template
from homeport.hosted.tenant.storage import default_schema
from realkube import find_binaries
from unit.hosted.podcase import ETCD, GOLDEN, cases, inputs, render


@pytest.mark.parametrize("name", cases())
def test_objects_are_as_written_down(name: str) -> None:
    assert render(cases()[name]) == (GOLDEN / f"{name}.yaml").read_text(), "python tests/unit/hosted/podcase.py"


def test_no_golden_file_is_left_over() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(cases())


@functools.cache
def known_flags(program: str) -> frozenset[str]:
    found = find_binaries()
    if isinstance(found, str):
        pytest.skip(found)
    binary = found["kube-apiserver"].parent / program
    if not binary.exists():
        pytest.skip(f"no {binary}: run tools/kube/build {program}")
    shown = subprocess.run([str(binary), "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    return frozenset(re.findall(r"^\s+(?:-\w, )?(--[a-z0-9-]+)", shown, re.MULTILINE))


@pytest.mark.parametrize("render", [api_server_args, controller_manager_args, scheduler_args])
@pytest.mark.parametrize("case", ["plain", "full", "overrides", "postgres", "loopback"])
def test_the_real_program_knows_every_flag(render: Any, case: str) -> None:
    program, *args = render(cases()[case])
    assert {each.partition("=")[0] for each in args} <= known_flags(program)


@pytest.mark.parametrize("name", cases())
def test_every_mount_has_its_volume_and_every_file_of_a_flag_is_mounted(name: str) -> None:
    pod = render_pod_template(cases()[name])["spec"]
    volumes = {each["name"] for each in pod["volumes"]}
    for container in pod["containers"]:
        mounts = container.get("volumeMounts", ())
        assert {each["name"] for each in mounts} <= volumes
        paths = [each["mountPath"] for each in mounts]
        for flag in container.get("command", ())[1:]:
            value = flag.partition("=")[2].removeprefix("unix://")
            if value.startswith("/") and "etcd-prefix" not in flag and "overrides" not in flag:
                assert any(value == each or value.startswith(f"{each}/") for each in paths), flag


def test_extra_flags_replace_ours_and_follow() -> None:
    found = with_extra("p", {"--b": "1", "--a": "2", "--c": None}, ["--b=9", "d", "--e=x=y"])
    assert found == ["p", "--a=2", "--b=9", "--d", "--e=x=y"]


def test_all_new_pods_start_before_an_old_one_goes() -> None:
    strategy = render_deployment(inputs())["spec"]["strategy"]
    assert strategy == {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0}}


def test_node_restriction_is_always_on() -> None:
    given = inputs(kubernetes={"version": "v1.37.1", "kubelet": {}, "admissionControllers": ["PodSecurity"]})
    assert "--enable-admission-plugins=PodSecurity,NodeRestriction" in api_server_args(given)


def test_the_selector_of_service_and_deployment_matches_the_pods() -> None:
    for case in cases().values():
        deployment, service = render_deployment(case), render_tenant_service(case)
        labels = deployment["spec"]["template"]["metadata"]["labels"]
        assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
        assert service["spec"]["selector"].items() <= labels.items()


def test_no_password_is_in_the_pod() -> None:
    kine = next(
        each for each in render_pod_template(cases()["postgres"])["spec"]["containers"] if each["name"] == names.KINE
    )
    assert "--endpoint=postgres://$(DB_USER):$(DB_PASSWORD)@$(DB_CONNECTION_STRING)/$(DB_SCHEMA)" in kine["command"]
    assert all("valueFrom" in each for each in kine["env"])


def test_a_changed_checksum_changes_the_template() -> None:
    one = inputs(ETCD)
    other = type(one)(**{**{f: getattr(one, f) for f in one.__slots__}, "checksums": {"ca": "other"}})
    assert render_pod_template(one) != render_pod_template(other)


@pytest.mark.parametrize(
    ("one", "other"), [(("a-b", "c"), ("a", "b-c")), (("a", "b" * 63), ("a", "b" * 62 + "c")), (("a", "b"), ("a", "c"))]
)
def test_schemas_of_two_control_planes_differ(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert default_schema(*one) != default_schema(*other)
    assert re.fullmatch(r"[a-z0-9_]{1,63}", default_schema(*one))


def test_a_simple_name_gives_a_simple_schema() -> None:
    assert default_schema("default", "demo") == "default_demo"
