"""What is not acted on where no admission of ours is asked."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.api.controlplane.v1beta2 import KubeadmControlPlane, KubeadmControlPlaneSpec
from homeport.controlplane.kubeadm.etcd.client import Member
from homeport.controlplane.kubeadm.observe.state import MachineState, Observed
from homeport.controlplane.kubeadm.plan.action import Hold
from homeport.controlplane.kubeadm.plan.safety import unsafe_change
from homeport.controlplane.kubeadm.plan.step import plan


def unsafe(version: str, replicas: int | None, *machines: str, etcd_managed: bool = True) -> str:
    kcp = KubeadmControlPlane(spec=KubeadmControlPlaneSpec(version=version, replicas=replicas))
    return unsafe_change(kcp, machines, etcd_managed=etcd_managed)


@pytest.mark.parametrize(
    ("version", "replicas", "machines", "words"),
    [
        ("v1.30.0", 2, (), "spec.replicas is 2"),
        ("v1.30.0", 4, ("v1.30.0",) * 3, "spec.replicas is 4"),
        ("v1.31.0", 3, ("v1.29.0",) * 3, "one minor version at a time"),
        ("v2.0.0", 3, ("v1.29.0",), "one minor version at a time"),
        ("v1.28.0", 3, ("v1.30.0", "v1.29.0"), "a downgrade of more than one minor version is not possible"),
        ("v1.29.0", 3, ("v1.30.0",) * 3, "a finished upgrade can't be taken back"),
        ("v1.29.9", 1, ("v1.30.0",), "a finished upgrade can't be taken back"),
        ("latest", 1, (), "not a valid version"),
        ("", 1, (), "not a valid version"),
    ],
)
def test_unsafe_changes_are_blocked(version: str, replicas: int, machines: tuple[str, ...], words: str) -> None:
    assert words in unsafe(version, replicas, *machines)


@pytest.mark.parametrize(
    ("version", "replicas", "machines"),
    [
        ("v1.30.0", 3, ()),
        ("v1.30.0", None, ("v1.30.0",)),
        ("v1.30.2", 1, ("v1.29.5",)),
        ("v1.31.0", 3, ("v1.30.0", "v1.29.0")),  # in the middle of an upgrade the next is asked for
        ("v1.29.0", 3, ("v1.30.0", "v1.29.0")),  # and the last is taken back
        ("v1.30.0", 3, ("", "main")),
    ],
)
def test_safe_changes_are_not_blocked(version: str, replicas: int | None, machines: tuple[str, ...]) -> None:
    assert unsafe(version, replicas, *machines) == ""


def test_an_even_number_is_fine_with_an_etcd_elsewhere() -> None:
    assert unsafe("v1.30.0", 2, etcd_managed=False) == ""


def _observed(**changes: Any) -> Observed:
    machines = [MachineState(f"cp-{n}", created=float(n), node=f"n-{n}", member=f"n-{n}") for n in range(3)]
    members = [Member(n + 1, f"n-{n}") for n in range(3)]
    return Observed(1000.0, machines=machines, initialized=True, members=members, **changes)


def test_nothing_is_made_replaced_or_removed_for_a_change_that_is_not_safe() -> None:
    assert plan(_observed(replicas=4, unsafe="")) != plan(_observed(replicas=4, unsafe="why"))
    for replicas in (1, 3, 4, 5):
        assert plan(_observed(replicas=replicas, unsafe="why")) == [Hold("UnsafeChange", "why")]
