"""Flags of `k0s install`: what users give is merged with what we add."""

from __future__ import annotations

import pytest

from homeport.capi.k0s.argument import (
    Arguments,
    BadArgument,
    join_flags,
    kubelet_may_set,
    parse_arguments,
    parse_taint,
    runs_worker,
)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ([], Arguments()),
        (["--debug"], Arguments(rest=("--debug",))),
        (["--labels=a=b,c="], Arguments(labels={"a": "b", "c": ""})),
        (["--labels a=b", "--labels", "c=d"], Arguments(labels={"a": "b", "c": "d"})),
        (['--labels="a=b"'], Arguments(labels={"a": "b"})),
        (["--taints=a=b:NoSchedule,c:NoExecute"], Arguments(taints=("a=b:NoSchedule", "c:NoExecute"))),
        (
            ["--kubelet-extra-args='--v=2 --cloud-provider=external'", "--kubelet-extra-args=--foo"],
            Arguments(kubelet=("--v=2 --cloud-provider=external", "--foo")),
        ),
        (["--env", "A=b", "--labels=x=y"], Arguments(labels={"x": "y"}, rest=("--env", "A=b"))),
    ],
)
def test_labels_taints_and_kubelet_arguments_are_taken_out(args: list[str], expected: Arguments) -> None:
    assert parse_arguments(args) == expected


@pytest.mark.parametrize(
    "args", [["--labels=alone"], ["--taints=a=b"], ["--taints=a=b:Never"], ["--taints=:NoSchedule"]]
)
def test_what_kubernetes_would_refuse_is_named(args: list[str]) -> None:
    with pytest.raises(BadArgument, match=r"label|taint"):
        parse_arguments(args)


@pytest.mark.parametrize(
    ("label", "allowed"),
    [
        ("tier", True),
        ("example.com/tier", True),
        ("node.kubernetes.io/instance-type", True),
        ("node.kubernetes.io/anything", True),
        ("topology.kubernetes.io/zone", True),
        ("kubernetes.io/os", True),
        ("kubelet.kubernetes.io/a", True),
        ("node-role.kubernetes.io/worker", False),
        ("node-restriction.kubernetes.io/a", False),
        ("kubernetes.io/anything", False),
        ("a.k8s.io/b", False),
    ],
)
def test_kubelet_may_not_set_labels_of_kubernetes_own_domains(label: str, allowed: bool) -> None:
    assert kubelet_may_set(label) is allowed


def test_flags_of_a_worker_are_given_once() -> None:
    given = parse_arguments(
        [
            "--labels=tier=web,node-role.kubernetes.io/worker=",
            "--debug",
            "--kubelet-extra-args=--v=2",
            "--taints=a=b:NoSchedule",
        ]
    )
    assert join_flags(given, machine="md-0", hostname="md-0", taints=["c:NoSchedule"]) == [
        "--labels=k0smotron.io/machine-name=md-0,tier=web",
        "--taints=a=b:NoSchedule,c:NoSchedule",
        "--debug",
        '--kubelet-extra-args="--hostname-override=md-0 --v=2"',
    ]


def test_a_machine_of_a_pool_has_its_own_hostname_and_no_label() -> None:
    assert join_flags(Arguments(), machine="", hostname="") == []


def test_a_name_that_is_too_long_for_a_label_is_left_out() -> None:
    assert join_flags(Arguments(), machine="a" * 64, hostname="") == []


def test_a_controller_that_is_a_node_too_says_so() -> None:
    assert runs_worker(parse_arguments(["--enable-worker"]))
    assert runs_worker(parse_arguments(["--single=true"]))
    assert not runs_worker(parse_arguments(["--enable-worker=false"]))


def test_a_taint_without_a_value_has_none() -> None:
    assert parse_taint("a:NoSchedule") == {"key": "a", "effect": "NoSchedule"}
    assert parse_taint("a=b:NoSchedule") == {"key": "a", "value": "b", "effect": "NoSchedule"}
