"""An installation of an older release is upgraded while its clusters are scaled: nothing is replaced, nothing doubled."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from capikit.installed import COMBINED, await_ready, deployment, environment, refusals
from capikit.podnetwork import NetworkedKube, Pod
from capikit.release import BEFORE, Release, checked_out
from e2e.test_install_on_kubernetes import (
    EXAMPLE,
    await_all,
    await_holder,
    await_line,
    holder,
    infrastructure,
    machines,
    ok,
)
from homeport.app.plane.instance import STATUS_PATH
from homeport.app.remote import ask
from realkube import RealKube, free_port
from seeds.shell import Shell, opened

pytestmark = [pytest.mark.timeout(900)]

NOW = Release()
LEASE = ("get", "lease", "homeport", "-n", "homeport-system", "-o", "jsonpath={.spec.holderIdentity}")
INSTALLED = (
    "deployments,services,serviceaccounts,clusterroles,clusterrolebindings,roles,rolebindings,networkpolicies,"
    "poddisruptionbudgets,mutatingwebhookconfigurations,validatingwebhookconfigurations"
)


@pytest.fixture(scope="module")
def site(kubectl: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A plane whose simulated infrastructure the controllers use."""
    with opened(tmp_path_factory.mktemp("site"), kubectl, "--sim") as made:
        yield made


@pytest.fixture
def kube(binaries: dict[str, Path] | str) -> Iterator[NetworkedKube]:
    if isinstance(binaries, str):
        pytest.skip(binaries)
    with NetworkedKube(binaries) as made:
        yield made


@pytest.fixture
def before(tmp_path: Path) -> Release:
    found = checked_out(BEFORE, tmp_path / "before")
    if isinstance(found, str):
        pytest.skip(found)
    return found


@dataclass
class Replica:
    """A Pod of the Deployment as it is now, run by the code of a release."""

    kube: NetworkedKube
    release: Release
    options: tuple[str, ...]
    name: str
    place: str = COMBINED
    pods: list[Pod] = field(default_factory=list)

    def __enter__(self) -> Replica:
        body = deployment(self.kube, self.place)
        template = body["spec"]["template"]
        arguments = template["spec"]["containers"][0]["args"]
        port = free_port() if any(each.startswith("--webhook-listen=") for each in arguments) else 0
        own = ["--health=127.0.0.1:0", *([f"--webhook-listen=127.0.0.1:{port}"] if port else [])]
        self.log = self.kube.dir / f"{self.name}.log"
        with open(self.log, "ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "homeport", *arguments, *own, *self.options],
                stdout=output,
                stderr=output,
                text=True,
                env=self.release.environment(environment(self.kube, body)),
            )
        if port:
            await_ready(port, self.process, self.log)
            self.pods = [Pod(body["metadata"]["namespace"], template["metadata"]["labels"], {"webhook": port})]
            self.kube.pods.extend(self.pods)
        return self

    def leads(self) -> bool:
        return f"-{self.process.pid}-" in ok(self.kube, *LEASE)

    def stop(self) -> None:
        """As a kubelet does: it is asked to end, and out of the Service at once."""
        for pod in self.pods:
            self.kube.pods.remove(pod)
        self.pods = []
        self.process.terminate()
        self.process.wait(120)

    def __exit__(self, *_: object) -> None:
        self.stop()


def scaled(kube: RealKube, replicas: int) -> None:
    ok(kube, "scale", "machinedeployment/harbour-workers", f"--replicas={replicas}")


def await_scaled(kube: RealKube, replicas: int) -> None:
    await_all(kube, "machinedeployment/harbour-workers", f"jsonpath={{.status.availableReplicas}}={replicas}")


def vms(site: Shell) -> int:
    """What the simulated Prism Central has."""
    (prism,) = [each for each in ask(site.data / "kubeconfig", STATUS_PATH)["simulators"] if each["name"] == "prism"]
    return int(prism["machines"])


def written(kube: RealKube) -> dict[str, str]:
    """Everything that an installation has, with the version of its last change."""
    found = json.loads(ok(kube, "get", INSTALLED, "-A", "-l", "homeport.dev/installed", "-o", "json"))["items"]
    found += json.loads(ok(kube, "get", "customresourcedefinitions", "-o", "json"))["items"]
    return {
        f"{each['kind']} {each['metadata'].get('namespace', '')}/{each['metadata']['name']}": (
            each["metadata"]["resourceVersion"]
        )
        for each in found
    }


def test_an_upgrade_under_load_replaces_no_machine_and_never_has_two_leaders(
    kube: NetworkedKube, site: Shell, before: Release
) -> None:
    config = ("--kubeconfig", str(kube.kubeconfig))
    before.homeport("install", *config)
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(Replica(kube, before, infrastructure(site), "old"))
        ok(kube, "apply", "-f", str(EXAMPLE))
        await_all(kube, "cluster/harbour", "condition=Available")
        await_all(kube, "kubeadmcontrolplane/harbour", "jsonpath={.status.availableReplicas}=3")
        await_scaled(kube, 2)
        first = machines(kube)
        assert (len(first), vms(site)) == (5, 5)

        scaled(kube, 3)  # the upgrade begins while this is under way
        NOW.homeport("install", *config)
        new = stack.enter_context(Replica(kube, NOW, infrastructure(site), "new"))
        await_scaled(kube, 3)
        assert (old.leads(), new.leads()) == (True, False), "the new version works beside the old one"
        second = machines(kube)
        assert first.items() <= second.items()

        scaled(kube, 4)  # and it ends while the next is
        old.stop()
        await_scaled(kube, 4)
        assert new.leads()
        third = machines(kube)
        assert second.items() <= third.items()
        assert (len(third), vms(site)) == (7, 7)
        assert len({each.split()[1] for each in third.values()}) == 7, "two Machines have one VM"

        scaled(kube, 1)
        await_all(kube, "machinedeployment/harbour-workers", "jsonpath={.status.replicas}=1")
        await_scaled(kube, 1)
        last = machines(kube)
        assert last.items() <= third.items()
        assert (len(last), vms(site)) == (4, 4)
    assert not refusals(new.log)


def test_the_split_layout_of_an_older_release_and_the_combined_one_never_work_at_the_same_time(
    kube: NetworkedKube, before: Release, tmp_path: Path
) -> None:
    """kubectl adds the new Deployment and removes none, and the older release knows no Lease that both would hold."""
    core, alone = "capi-system/capi-controller-manager", re.compile(r".+-\d+-\w{6}")
    before.homeport("install", "--kubeconfig", str(kube.kubeconfig), "--layout", "split")
    with contextlib.ExitStack() as stack:
        old = stack.enter_context(Replica(kube, before, (), "old", core))
        await_holder(kube, core, alone)
        assert holder(kube, "homeport-system/homeport") == ""
        file = tmp_path / "install.yaml"
        file.write_text(NOW.homeport("install", "--dry-run", "-o", "yaml"))
        ok(kube, "apply", "--server-side", "--force-conflicts", "-f", str(file))
        new = stack.enter_context(Replica(kube, NOW, (), "new"))
        await_line(new.log, "waiting for the lease", f'"lease":"{core}"', f'"holder":"{holder(kube, core)}"')
        assert "controllers: running" not in new.log.read_text()
        assert holder(kube, "homeport-system/homeport") == ""
        old.stop()
        await_holder(kube, "homeport-system/homeport", alone)
        assert new.leads()
    assert not refusals(new.log)


def test_a_second_installation_of_the_same_version_changes_nothing_and_a_downgrade_is_refused(
    kube: NetworkedKube,
) -> None:
    config = ("--kubeconfig", str(kube.kubeconfig))
    NOW.homeport("install", *config)
    first = written(kube)
    assert len(first) > 100
    NOW.homeport("install", *config)
    assert written(kube) == first

    namespace, name = COMBINED.split("/")
    newer = {"spec": {"template": {"metadata": {"labels": {"app.kubernetes.io/version": "99.0.0"}}}}}
    ok(kube, "patch", "deployment", "-n", namespace, name, "-p", json.dumps(newer))
    first = written(kube)
    for more in ((), ("--layout", "split"), ("--no-controllers",)):
        command = [sys.executable, "-m", "homeport", "install", *config, *more]
        refused = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        assert refused.returncode == 1
        assert f"Deployment {COMBINED} runs Homeport 99.0.0, and this is the older version" in refused.stderr
    assert written(kube) == first
