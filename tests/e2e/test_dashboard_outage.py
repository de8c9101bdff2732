"""The dashboard of a real kube-apiserver that hangs, and one that is killed: the page says that its data is old."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from e2e.browsing import MARKS, ROOT, log_in
from e2e.test_dashboard_on_kubernetes import KINDS, cluster, served
from realkube import RealKube

pytestmark = MARKS
OLD = re.compile(r"old data, of \d+:\d+:\d+.*: .+")


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[RealKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with RealKube(binaries) as started:
        for kind in KINDS:
            apply(started, "-f", str(ROOT / f"config/crds/cluster.x-k8s.io_{kind}.yaml"), "--server-side")
        done = started.kubectl("wait", "crd", "--all", "--for=condition=Established", "--timeout=30s")
        assert done.returncode == 0, done.stderr
        apply(started, "-f", "-", stdin=json.dumps(cluster("default")))
        yield started


def apply(kube: RealKube, *options: str, stdin: str | None = None) -> None:
    done = kube.kubectl("apply", *options, stdin=stdin)
    assert done.returncode == 0, done.stderr


def test_the_page_says_since_when_its_data_is_old_and_is_live_again_by_itself(kube: RealKube, browser: Browser) -> None:
    with served(kube.kubeconfig) as link:
        visit = log_in(browser, link)
        state, main = visit.page.locator("header .link"), visit.page.locator("main")
        expect(main).to_contain_text("quay-default")
        expect(state).to_have_text("live")
        kube.processes["kube-apiserver"].send_signal(signal.SIGSTOP)
        expect(state).to_have_text(OLD)
        expect(main).to_contain_text("quay-default")
        kube.processes["kube-apiserver"].send_signal(signal.SIGCONT)
        expect(state).to_have_text("live")
        kube.processes["kube-apiserver"].kill()
        expect(state).to_have_text(OLD)
        kube.restart_apiserver()
        second = cluster("default")
        second["metadata"]["name"] = "quay-second"
        apply(kube, "-f", "-", stdin=json.dumps(second))
        expect(main).to_contain_text("quay-second")
        expect(state).to_have_text("live")
        visit.page.context.close()
