"""Which containers of simulated clusters run the controllers, and with which options."""

from __future__ import annotations

import pytest

from homeport.app.kubernetes.layout import LayoutError, placements
from homeport.app.kubernetes.standin import is_manager, programs, read_words, words_of
from homeport.app.kubernetes.workload import PodOptions, arguments
from homeport.app.platform import chosen
from homeport.client.dial import DIRECT


def test_every_deployment_of_an_installation_runs_a_program_whatever_its_image() -> None:
    find = programs(lambda host: DIRECT)
    for layout in ("combined", "split"):
        for placement in placements(chosen().components, layout):
            container = {"image": "mirror.example.com/other:1", "args": arguments(placement, PodOptions())}
            assert find(container) is not None
            platform, cluster = read_words(words_of(container), placement.namespace)
            assert platform.placement == placement
            assert (cluster.namespace, cluster.lease) == placement.lease


@pytest.mark.parametrize(
    "words", [[], ["ccm", "--cloud=nutanix"], ["up"], ["up", "--sim"], ["/bin/sh", "-c", "up --kubernetes"]]
)
def test_other_containers_run_none(words: list[str]) -> None:
    assert not is_manager(words)


def test_options_of_the_pod_choose_what_runs() -> None:
    words = ["homeport", "up", "--kubernetes", "--shards", "--without=k0rdent", "--chart-mirror=oci://mirror/charts"]
    platform, cluster = read_words(words, "homeport-system")
    assert "k0rdent" not in {each.name for each in platform.components}
    assert (cluster.shards, cluster.charts.mirror) == (True, "oci://mirror/charts")
    with pytest.raises(LayoutError, match="expected one of"):
        read_words(["up", "--kubernetes", "--deployment=a/b"], "homeport-system")
