from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from homeport.api.meta import Resource
from homeport.client.protocol import Key, MergePatch
from homeport.machinery import condition
from homeport.runtime.workload.coroutine import ContainerHandle, CoroutineRunner, until_stopped
from homeport.runtime.workload.kind import CLAIM
from homeport.runtime.workload.runner import Launch, Runners
from scenario.builtin.plane import CONFIG_MAP, POD, OnPlane, Plane, stated

DEPLOYMENT = Resource("apps", "v1", "Deployment", "deployments")
REPLICA_SET = Resource("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SET = Resource("apps", "v1", "StatefulSet", "statefulsets")
JOB = Resource("batch", "v1", "Job", "jobs")
SERVICE = Resource("", "v1", "Service", "services")
LABELS = {"app": "web"}


class Stage:
    """Runs images `ok:*`; `slow:*` are ready after ten seconds, `crash:*` end with 3, `done:*` with 0, `broken:*` never."""

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.running: set[str] = set()
        self.most = 0
        self.runners = Runners()
        self.runners.register("stage", CoroutineRunner(self._main, ready_at_start=False), images=["*:*"], match=None)

    def runs(self, count: int) -> bool:
        return len(self.running) == count

    async def _main(self, launch: Launch, inside: ContainerHandle) -> int:
        self.launches.append(launch)
        name = launch.pod["metadata"]["name"]
        kind = launch.container["image"].partition(":")[0]
        if kind in ("crash", "done"):
            return 3 if kind == "crash" else 0
        self.running.add(name)
        self.most = max(self.most, len(self.running))
        try:
            if kind == "slow":
                await asyncio.sleep(10)
            inside.ready(kind != "broken")
            return await until_stopped(launch, inside)
        finally:
            self.running.discard(name)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def _template(image: str = "ok:1", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}], **spec}}


async def _deploy(plane: Plane, image: str = "ok:1", replicas: int = 3, **spec: Any) -> None:
    body = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": _template(image), **spec}
    await plane.make(DEPLOYMENT, "web", spec=body)


async def _patch(plane: Plane, kind: Resource, spec: dict[str, Any]) -> None:
    await plane.client.patch(kind, Key("default", "web"), MergePatch({"spec": spec}))


def _pods(plane: Plane) -> list[dict[str, Any]]:
    return plane.objects("pods", "default/")


def _images(plane: Plane) -> list[str]:
    return [pod["spec"]["containers"][0]["image"] for pod in _pods(plane)]


async def _rolled_out(plane: Plane, kind: Resource, replicas: int) -> bool:
    found = await plane.get(kind, "web")
    status = found["status"]
    return (
        status.get("observedGeneration") == found.metadata["generation"]
        and [status.get(f, 0) for f in ("replicas", "updatedReplicas", "availableReplicas")] == [replicas] * 3
    )


def test_a_deployment_comes_to_ready(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await _deploy(plane)
        await plane.until(lambda: _rolled_out(plane, DEPLOYMENT, 3), "rolled out")
        deployment = await plane.get(DEPLOYMENT, "web")
        conditions = deployment["status"]["conditions"]
        assert condition.is_true(conditions, "Available")
        assert stated(conditions, "Progressing")["reason"] == "NewReplicaSetAvailable"
        (owned,) = plane.objects("replicasets.apps")
        digest = owned["metadata"]["labels"]["pod-template-hash"]
        assert owned["metadata"]["name"] == f"web-{digest}"
        assert owned["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
        for pod in _pods(plane):
            assert pod["metadata"]["name"].startswith(f"web-{digest}-")
            assert pod["metadata"]["ownerReferences"][0]["name"] == owned["metadata"]["name"]
            assert pod["metadata"]["labels"]["pod-template-hash"] == digest
            assert pod["spec"]["nodeName"] == "homeport"
            assert pod["status"]["phase"] == "Running"
            assert condition.is_true(pod["status"]["conditions"], "Ready")
            assert pod["status"]["podIP"].startswith("127.")
            assert pod["status"]["containerStatuses"][0]["ready"]
        assert len({pod["status"]["podIP"] for pod in _pods(plane)}) == 3

    on_plane(scenario, runners=stage.runners)


def test_a_settled_workload_writes_nothing(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await _deploy(plane)
        await plane.settle(7200)
        before = plane.server.store.revision
        await plane.settle(12 * 3600)
        assert plane.server.store.revision == before

    on_plane(scenario, runners=stage.runners)


def test_an_image_that_nobody_runs_says_what_to_do(on_plane: OnPlane) -> None:
    runners = Runners()
    runners.register("apiserver", CoroutineRunner(until_stopped), images=["*/kube-apiserver:*"])

    async def scenario(plane: Plane) -> None:
        await _deploy(plane, "nginx:1.27", replicas=1)
        await plane.settle()
        (pod,) = _pods(plane)
        assert pod["status"]["phase"] == "Pending"
        scheduled = stated(pod["status"]["conditions"], "PodScheduled")
        assert (scheduled["status"], scheduled["reason"]) == ("False", "Unschedulable")
        assert "no runner for image 'nginx:1.27'" in scheduled["message"]
        assert "registered: apiserver" in scheduled["message"]
        deployment = await plane.get(DEPLOYMENT, "web")
        assert not condition.is_true(deployment["status"]["conditions"], "Available")
        await plane.settle(700)
        deployment = await plane.get(DEPLOYMENT, "web")
        assert stated(deployment["status"]["conditions"], "Progressing")["reason"] == "ProgressDeadlineExceeded"

    on_plane(scenario, runners=runners)


def test_scaling_up_and_down(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await _deploy(plane, replicas=1)
        for count in (4, 2, 0):
            await _patch(plane, DEPLOYMENT, {"replicas": count})
            await plane.until(partial(_rolled_out, plane, DEPLOYMENT, count), f"{count} replicas")
            await plane.until(partial(stage.runs, count), f"{count} running")
            assert len(_pods(plane)) == count

    on_plane(scenario, runners=stage.runners)


def test_a_rolling_update_keeps_within_its_limits(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await _deploy(plane, "slow:1", replicas=4)
        await plane.until(lambda: _rolled_out(plane, DEPLOYMENT, 4), "first")
        least, most = [4], [4]

        def watch(changes: list[Any]) -> None:
            pods = [p for p in _pods(plane) if not p["metadata"].get("deletionTimestamp")]
            least.append(sum(condition.is_true(p["status"].get("conditions"), "Ready") for p in pods))
            most.append(len(pods))

        plane.server.store.subscribe("pods", watch)
        await _patch(plane, DEPLOYMENT, {"template": _template("slow:2")})
        await plane.until(lambda: _rolled_out(plane, DEPLOYMENT, 4), "second")
        await plane.until(lambda: _images(plane) == ["slow:2"] * 4, "all new")
        assert min(least) >= 3
        assert max(most) <= 5
        revisions = {
            s["metadata"]["annotations"]["deployment.kubernetes.io/revision"]: s["spec"]["replicas"]
            for s in plane.objects("replicasets.apps")
        }
        assert revisions == {"1": 0, "2": 4}
        assert (await plane.get(DEPLOYMENT, "web")).metadata["annotations"]["deployment.kubernetes.io/revision"] == "2"

    on_plane(scenario, runners=stage.runners)


def test_a_rollout_that_never_gets_ready_leaves_the_old_version_working(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await _deploy(plane, replicas=4)
        await plane.until(lambda: _rolled_out(plane, DEPLOYMENT, 4), "first")
        await _patch(plane, DEPLOYMENT, {"template": _template("broken:1")})
        await plane.settle(1000)
        ready = [p for p in _pods(plane) if condition.is_true(p["status"]["conditions"], "Ready")]
        assert len(ready) == 3
        found = await plane.get(DEPLOYMENT, "web")
        assert stated(found["status"]["conditions"], "Progressing")["reason"] == "ProgressDeadlineExceeded"
        assert condition.is_true(found["status"]["conditions"], "Available")
        await _patch(plane, DEPLOYMENT, {"template": _template("ok:1")})
        await plane.until(lambda: _rolled_out(plane, DEPLOYMENT, 4), "rolled back")
        names = {
            s["metadata"]["annotations"]["deployment.kubernetes.io/revision"] for s in plane.objects("replicasets.apps")
        }
        assert names == {"2", "3"}, "the first version is the third now"

    on_plane(scenario, runners=stage.runners)


def test_recreate_never_runs_two_versions_together(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await _deploy(plane, replicas=2, strategy={"type": "Recreate"})
        await plane.until(lambda: _rolled_out(plane, DEPLOYMENT, 2), "first")
        together: list[set[str]] = []
        plane.server.store.subscribe("pods", lambda changes: together.append(set(_images(plane))))
        await _patch(plane, DEPLOYMENT, {"template": _template("ok:2")})
        await plane.until(lambda: _images(plane) == ["ok:2"] * 2, "second")
        assert all(len(images) < 2 for images in together)

    on_plane(scenario, runners=stage.runners)


def test_deleting_a_deployment_ends_everything_below(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await _deploy(plane)
        await plane.until(lambda: len(stage.running) == 3, "running")
        await plane.delete(DEPLOYMENT, "web", "Foreground")
        await plane.until(lambda: not plane.names("deployments.apps"), "gone")
        assert not plane.names("pods")
        assert not plane.names("replicasets.apps")
        assert not stage.running

    on_plane(scenario, runners=stage.runners)


def test_a_container_that_crashes_is_restarted_after_growing_pauses(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(POD, "web", spec=_template("crash:1")["spec"])
        await plane.settle(5)
        pod = await plane.get(POD, "web")
        state = pod["status"]["containerStatuses"][0]
        assert state["restartCount"] == 1
        assert state["state"]["waiting"]["reason"] == "CrashLoopBackOff"
        assert state["lastState"]["terminated"]["exitCode"] == 3
        assert not state["ready"]
        assert pod["status"]["phase"] == "Running"
        await plane.settle(3600)
        assert 10 < len(stage.launches) < 25
        assert [launch.attempt for launch in stage.launches[:4]] == [0, 1, 2, 3]

    on_plane(scenario, runners=stage.runners)


@pytest.mark.parametrize(
    ("image", "policy", "phase"),
    [("done:1", "Never", "Succeeded"), ("crash:1", "Never", "Failed"), ("done:1", "OnFailure", "Succeeded")],
)
def test_a_pod_that_is_not_restarted_ends(on_plane: OnPlane, stage: Stage, image: str, policy: str, phase: str) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(POD, "web", spec=_template(image, restartPolicy=policy)["spec"])
        await plane.settle(60)
        assert (await plane.get(POD, "web"))["status"]["phase"] == phase
        assert len(stage.launches) == 1

    on_plane(scenario, runners=stage.runners)


def test_init_containers_run_first_and_one_after_the_other(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        inits = [{"name": n, "image": "done:1"} for n in ("a", "b")]
        await plane.make(POD, "web", spec=_template("ok:1", initContainers=inits)["spec"])
        await plane.settle(10)
        assert [launch.container["name"] for launch in stage.launches] == ["a", "b", "c"]
        status = (await plane.get(POD, "web"))["status"]
        assert status["phase"] == "Running"
        assert [s["state"]["terminated"]["reason"] for s in status["initContainerStatuses"]] == ["Completed"] * 2

    on_plane(scenario, runners=stage.runners)


def test_containers_get_what_they_refer_to_and_wait_for_it(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        env = [
            {"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "colour"}}},
            {"name": "WHERE", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": "TEXT", "value": "$(COLOUR) at $(WHERE) for $$5"},
        ]
        container = {
            "name": "c",
            "image": "ok:1",
            "command": ["run", "--colour=$(COLOUR)"],
            "env": env,
            "volumeMounts": [{"name": "v", "mountPath": "/etc/v"}],
        }
        volumes = [{"name": "v", "configMap": {"name": "settings"}}]
        await plane.make(POD, "web", spec={"containers": [container], "volumes": volumes})
        await plane.settle(10)
        waiting = (await plane.get(POD, "web"))["status"]["containerStatuses"][0]["state"]["waiting"]
        assert waiting["reason"] == "CreateContainerConfigError"
        assert 'configmap "settings" not found' in waiting["message"]
        await plane.make(CONFIG_MAP, "settings", data={"colour": "red"})
        await plane.settle(10)
        (launch,) = stage.launches
        assert launch.command == ["run", "--colour=red"]
        assert launch.env["TEXT"] == f"red at {launch.address} for $5"
        assert launch.files["/etc/v/colour"] == b"red"

    on_plane(scenario, runners=stage.runners)


def test_a_stateful_set_starts_in_order_and_has_claims(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        claims = [
            {
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ]
        spec = {
            "replicas": 3,
            "serviceName": "web",
            "selector": {"matchLabels": LABELS},
            "template": _template("slow:1"),
            "volumeClaimTemplates": claims,
        }
        await plane.make(STATEFUL_SET, "web", spec=spec)
        await plane.settle(5)
        assert plane.names("pods", "default/") == ["default/web-0"]
        await plane.until(lambda: _rolled_out(plane, STATEFUL_SET, 3), "all")
        assert [launch.pod["metadata"]["name"] for launch in stage.launches] == ["web-0", "web-1", "web-2"]
        pod = await plane.get(POD, "web-1")
        assert pod["spec"]["hostname"] == "web-1"
        assert pod["spec"]["subdomain"] == "web"
        assert pod.metadata["labels"]["apps.kubernetes.io/pod-index"] == "1"
        assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-1"}} in pod["spec"]["volumes"]
        bound = [c["status"]["phase"] for c in plane.objects("persistentvolumeclaims")]
        assert bound == ["Bound"] * 3
        await _patch(plane, STATEFUL_SET, {"replicas": 1})
        await plane.until(lambda: _rolled_out(plane, STATEFUL_SET, 1), "fewer")
        assert plane.names("pods", "default/") == ["default/web-0"]
        assert len(plane.names("persistentvolumeclaims")) == 3, "claims outlive their Pods"
        # One that is deleted stays while a Pod uses it; the others go at once.
        for number in range(3):
            await plane.client.delete(CLAIM, Key("default", f"data-web-{number}"))
        await plane.settle(60)
        assert plane.names("persistentvolumeclaims") == ["default/data-web-0"]
        await plane.stop()
        await plane.start()
        await plane.settle(60)
        assert plane.names("persistentvolumeclaims") == ["default/data-web-0"]
        await plane.delete(STATEFUL_SET, "web")
        await plane.until(lambda: not plane.names("persistentvolumeclaims"), "it goes with its last Pod")

    on_plane(scenario, runners=stage.runners)


def test_a_stateful_set_is_updated_from_the_end_and_not_below_its_partition(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        spec = {
            "replicas": 3,
            "serviceName": "web",
            "selector": {"matchLabels": LABELS},
            "template": _template("ok:1"),
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
        }
        await plane.make(STATEFUL_SET, "web", spec=spec)
        await plane.until(lambda: _rolled_out(plane, STATEFUL_SET, 3), "first")
        stage.launches.clear()
        await _patch(plane, STATEFUL_SET, {"template": _template("ok:2")})
        await plane.settle(60)
        assert [launch.pod["metadata"]["name"] for launch in stage.launches] == ["web-2", "web-1"]
        assert _images(plane) == ["ok:1", "ok:2", "ok:2"]
        await plane.delete(POD, "web-0")
        await plane.settle(60)
        assert _images(plane) == ["ok:1", "ok:2", "ok:2"], "below the partition the old version comes back"
        await _patch(
            plane, STATEFUL_SET, {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}}
        )
        await plane.until(lambda: _images(plane) == ["ok:2"] * 3, "all")
        await plane.settle(10)
        status = (await plane.get(STATEFUL_SET, "web"))["status"]
        assert status["currentRevision"] == status["updateRevision"]
        assert status["updatedReplicas"] == 3

    on_plane(scenario, runners=stage.runners)


def test_a_job_runs_to_completion(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(
            JOB,
            "web",
            spec={
                "completions": 3,
                "parallelism": 2,
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "done:1"}]}},
            },
        )
        await plane.settle(30)
        status = (await plane.get(JOB, "web"))["status"]
        assert condition.is_true(status["conditions"], "Complete")
        assert status["succeeded"] == 3
        assert len(stage.launches) == 3

    on_plane(scenario, runners=stage.runners)


def test_a_job_gives_up_after_its_limit(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(
            JOB,
            "web",
            spec={
                "backoffLimit": 2,
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "crash:1"}]}},
            },
        )
        await plane.settle(600)
        conditions = (await plane.get(JOB, "web"))["status"]["conditions"]
        assert stated(conditions, "Failed")["reason"] == "BackoffLimitExceeded"
        assert len(stage.launches) == 3

    on_plane(scenario, runners=stage.runners)


def test_services_find_ready_pods_and_selectorless_ones_are_left_alone(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        ports = [{"name": "http", "port": 80, "targetPort": 8080}]
        await plane.make(SERVICE, "web", spec={"selector": LABELS, "ports": ports})
        await plane.make(SERVICE, "bare", spec={"ports": ports})
        await _deploy(plane, "slow:1", replicas=2)
        await plane.settle(5)
        (found,) = plane.objects("endpointslices.discovery.k8s.io", "default/web")
        assert [e["conditions"]["ready"] for e in found["endpoints"]] == [False, False]
        await plane.settle(15)
        (found,) = plane.objects("endpointslices.discovery.k8s.io", "default/web")
        assert [e["conditions"]["ready"] for e in found["endpoints"]] == [True, True]
        assert found["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
        addresses = sorted(pod["status"]["podIP"] for pod in _pods(plane))
        assert sorted(e["addresses"][0] for e in found["endpoints"]) == addresses
        (subset,) = next(e for e in plane.objects("endpoints", "default/web"))["subsets"]
        assert sorted(a["ip"] for a in subset["addresses"]) == addresses
        assert plane.names("endpoints", "default/bare") == []
        await _patch(plane, DEPLOYMENT, {"replicas": 0})
        await plane.settle(40)
        assert "subsets" not in next(iter(plane.objects("endpoints", "default/web")))
        await plane.delete(SERVICE, "web")
        await plane.settle()
        assert plane.names("endpoints", "default/web") == []
        assert plane.names("endpointslices.discovery.k8s.io", "default/web") == []

    on_plane(scenario, runners=stage.runners)


def test_a_restart_brings_pods_back_where_they_were(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await _deploy(plane, replicas=2)
        await plane.until(lambda: len(stage.running) == 2, "running")
        await plane.settle()
        before = {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in _pods(plane)}
        await plane.stop()
        assert not stage.running, "what runs ends with its plane"
        await plane.start()
        await plane.until(lambda: len(stage.running) == 2, "running again")
        await plane.settle()
        assert {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in _pods(plane)} == before
        state = _pods(plane)[0]["status"]["containerStatuses"][0]
        assert state["restartCount"] == 1
        assert state["lastState"]["terminated"]["reason"] == "ContainerStatusUnknown"
        assert state["ready"]

    on_plane(scenario, runners=stage.runners)


def test_after_a_restart_init_containers_prepare_their_pod_again(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        inits = [{"name": "a", "image": "done:1"}]
        await plane.make(POD, "web", spec=_template("ok:1", initContainers=inits)["spec"])
        await plane.settle(10)
        await plane.stop()
        await plane.start()
        await plane.until(lambda: stage.runs(1), "running again")
        await plane.settle()
        assert [launch.container["name"] for launch in stage.launches] == ["a", "c", "a", "c"]
        status = (await plane.get(POD, "web"))["status"]
        [init] = status["initContainerStatuses"]
        assert (init["restartCount"], init["state"]["terminated"]["reason"]) == (1, "Completed")
        assert status["containerStatuses"][0]["ready"]

    on_plane(scenario, runners=stage.runners)


def test_a_pod_that_is_deleted_by_force_stops_running(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(POD, "web", spec=_template()["spec"])
        await plane.until(lambda: "web" in stage.running, "running")
        await plane.client.delete(POD, Key("default", "web"), grace_seconds=0)
        await plane.settle()
        assert not stage.running

    on_plane(scenario, runners=stage.runners)


def test_logs_of_containers_reach_the_log_endpoint(on_plane: OnPlane, stage: Stage) -> None:
    async def scenario(plane: Plane) -> None:
        await plane.make(POD, "web", spec=_template()["spec"])
        await plane.until(lambda: "web" in stage.running, "running")
        source = plane.server.builtin.logs.find("default", "web", "c")
        assert source is not None
        assert [line.text for line in source.lines()] == ["c runs as attempt 0"]

    on_plane(scenario, runners=stage.runners)


def _probed(verdict: Callable[[str], bool]) -> Runners:
    """Containers that are ready as far as they know, and whose probes get the verdict on their command."""

    class Probed:
        def __init__(self, inner: Any) -> None:
            self.inner = inner
            self.wait, self.stop = inner.wait, inner.stop

        @property
        def ready(self) -> bool:
            return True

        async def probe(self, command: list[str]) -> bool:
            return verdict(command[0])

    class ProbedRunner(CoroutineRunner):
        async def run(self, launch: Launch) -> Any:
            return Probed(await super().run(launch))

    runners = Runners()
    runners.register("probed", ProbedRunner(until_stopped), images=["*"])
    return runners


def test_a_startup_probe_is_not_asked_again_once_the_container_has_started(on_plane: OnPlane) -> None:
    asked: Counter[str] = Counter()

    def verdict(command: str) -> bool:
        asked[command] += 1
        return asked["start"] > 3

    async def scenario(plane: Plane) -> None:
        kinds = {"startupProbe": "start", "readinessProbe": "ready", "livenessProbe": "live"}
        probes = {kind: {"exec": {"command": [word]}, "periodSeconds": 1} for kind, word in kinds.items()}
        probes["startupProbe"] |= {"failureThreshold": 10}
        await plane.make(POD, "web", spec={"containers": [{"name": "c", "image": "ok:1", **probes}]})
        await plane.settle(60)
        state = (await plane.get(POD, "web"))["status"]["containerStatuses"][0]
        assert (state["ready"], state["restartCount"]) == (True, 0)
        assert asked["start"] == 4
        assert min(asked["ready"], asked["live"]) > 40

    on_plane(scenario, runners=_probed(verdict))


def test_a_probe_decides_about_readiness_and_life(on_plane: OnPlane) -> None:
    healthy = {"ready": False, "live": True}

    async def scenario(plane: Plane) -> None:
        container = {
            "name": "c",
            "image": "ok:1",
            "readinessProbe": {"exec": {"command": ["ready"]}, "periodSeconds": 5},
            "livenessProbe": {"exec": {"command": ["live"]}, "periodSeconds": 5},
        }
        await plane.make(POD, "web", spec={"containers": [container]})
        await plane.settle(30)
        assert not condition.is_true((await plane.get(POD, "web"))["status"]["conditions"], "Ready")
        healthy["ready"] = True
        await plane.settle(10)
        assert condition.is_true((await plane.get(POD, "web"))["status"]["conditions"], "Ready")
        healthy["live"] = False
        await plane.settle(17)
        healthy["live"] = True
        await plane.settle(20)
        state = (await plane.get(POD, "web"))["status"]["containerStatuses"][0]
        assert state["restartCount"] == 1
        assert state["ready"]

    on_plane(scenario, runners=_probed(lambda command: healthy[command]))
