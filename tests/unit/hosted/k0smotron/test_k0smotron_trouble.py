"""Why Pods of a hosted control plane do not run, on a management cluster that lacks something."""

from __future__ import annotations

from typing import Any

import pytest

from homeport.hosted.k0smotron.pod.trouble import pod_trouble

WAITING = {"name": "etcd", "state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}
UNFIT = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}


@pytest.mark.parametrize(
    ("pod", "late", "said"),
    [
        (None, False, ""),
        (None, True, "Pod etcd-0 does not exist: no kube-controller-manager creates it"),
        ({"status": {"phase": "Pending"}}, False, ""),
        ({"status": {"phase": "Pending"}}, True, "Pod etcd-0 has no Node: hosted control planes need"),
        ({"status": {"containerStatuses": [WAITING]}}, True, "container etcd: no such image"),
        ({"status": {"conditions": [UNFIT]}}, False, "0/3 nodes are available"),
        ({"spec": {"nodeName": "a"}, "status": {}}, True, ""),
        ({"status": {"podIP": "10.0.0.1"}}, True, ""),
    ],
)
def test_what_is_missing_is_named(pod: Any, late: bool, said: str) -> None:
    found = pod_trouble("etcd-0", pod, late=late)
    assert found.startswith(said) if said else found == ""
