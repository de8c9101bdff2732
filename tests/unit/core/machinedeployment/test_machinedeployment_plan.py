"""Single decisions of the rollout planner, and what surrounds it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.api.cluster.v1beta2 import MachineDeployment, MachineSet
from homeport.core.machinedeployment import intent, revision
from homeport.core.machinedeployment.admission import default, validate
from homeport.core.machinedeployment.plan import (
    Action,
    Create,
    Observed,
    Promote,
    Remove,
    Scale,
    SetView,
    complete,
    plan,
)
from homeport.core.machinedeployment.proportion import spread
from homeport.core.machinedeployment.scope import limits
from homeport.runtime.clock import VIRTUAL_START, rfc3339


def old(
    replicas: int, machines: int | None = None, alive: int | None = None, available: int | None = None, **more: Any
) -> SetView:
    return view("old", "1", 1, replicas, machines, alive, available, **more)


def new(
    replicas: int, machines: int | None = None, alive: int | None = None, available: int | None = None, **more: Any
) -> SetView:
    return view("new", "2", 2, replicas, machines, alive, available, **more)


def view(
    name: str,
    created: str,
    number: int,
    replicas: int,
    machines: int | None,
    alive: int | None,
    available: int | None,
    **more: Any,
) -> SetView:
    there = replicas if machines is None else machines
    living = there if alive is None else alive
    return SetView(name, created, number, replicas, there, living, living if available is None else available, **more)


def steps(actions: list[Action]) -> dict[str, int]:
    return {a.name: a.replicas for a in actions if isinstance(a, Scale)}


ROLLING = [
    ("room by surge, and nothing may be missing", (3, 1, 0), [old(3), new(0)], {"new": 1}),
    ("one may be missing, and no surge", (3, 0, 1), [old(3), new(0)], {"old": 2}),
    ("what is being deleted takes room", (3, 1, 0), [old(2, 3, 2), new(1)], {}),
    ("an available new one lets an old one go", (3, 1, 0), [old(3), new(1)], {"old": 2}),
    ("one that is not available does not", (3, 1, 0), [old(3), new(1, available=0)], {}),
    ("a scale-down that was not seen yet is counted", (3, 1, 0), [old(2, 3, 3), new(1)], {}),
    ("all at once where all may be missing", (6, 0, 10), [old(6), new(0)], {"old": 0}),
    ("a scale-up of the deployment goes to the new set", (12, 3, 1), [old(3), new(6)], {"new": 12}),
    ("a scale-down shrinks both", (2, 1, 0), [old(3), new(3)], {"new": 2, "old": 0}),
    ("old Machines of no use go first where they cost nothing", (3, 1, 0), [old(3, available=0), new(1)], {"old": 2}),
    ("unborn Machines of a set that never worked are dropped", (3, 0, 1), [old(3, 0), new(0)], {"old": 0}),
    ("those of a set that works are kept while the new one does not", (3, 1, 0), [old(3, 2), new(1, available=0)], {}),
    ("a deadlock is broken by one", (3, 1, 0), [old(3, available=2), new(1)], {"old": 2}),
    ("nothing is asked of a set that is going", (3, 1, 0), [old(3, deleting=True), new(0)], {"new": 1}),
    ("growth waits for a set that has not answered", (3, 1, 0), [old(0, 0, acknowledged=False), new(0)], {}),
]


@pytest.mark.parametrize(("limit", "sets", "expected"), [r[1:] for r in ROLLING], ids=[r[0] for r in ROLLING])
def test_rolling_update(limit: tuple[int, int, int], sets: list[SetView], expected: dict[str, int]) -> None:
    replicas, surge, unavailable = limit
    observed = Observed(replicas, sets, "new", "RollingUpdate", surge, unavailable)
    assert steps(plan(observed)) == expected


ON_DELETE = [
    ("nothing happens by itself", 3, [old(3), new(0)], {}),
    ("a deleted Machine's place is given up first", 3, [old(3, 2), new(0)], {"old": 2}),
    ("then the new set takes it", 3, [old(2), new(0)], {"new": 1}),
    ("one that is still going keeps its place", 3, [old(3, 3, 2), new(0)], {}),
    ("a scale-down takes old ones", 2, [old(3), new(1)], {"old": 1}),
    ("a scale-up gives new ones", 5, [old(3), new(0)], {"new": 2}),
]


@pytest.mark.parametrize(("replicas", "sets", "expected"), [r[1:] for r in ON_DELETE], ids=[r[0] for r in ON_DELETE])
def test_the_strategy_on_delete_replaces_only_deleted_machines(
    replicas: int, sets: list[SetView], expected: dict[str, int]
) -> None:
    assert steps(plan(Observed(replicas, sets, "new", "OnDelete", 0, 0))) == expected


def test_the_first_set_gets_all_replicas() -> None:
    assert plan(Observed(3, [])) == [Create(3, 1, "0 Machines are fewer than 3 replicas + 1 surge")]


def test_the_next_set_gets_the_next_revision() -> None:
    [create] = plan(Observed(3, [old(3)], ""))
    assert isinstance(create, Create)
    assert (create.replicas, create.revision) == (1, 2)


def test_a_set_that_fits_again_is_promoted() -> None:
    actions = plan(Observed(1, [old(0), new(1)], "old"))
    assert actions[0] == Promote("old", 3)
    assert steps(actions) == {"old": 1}


def test_old_sets_beyond_the_history_go_when_all_is_done() -> None:
    sets = [view(f"s{n}", str(n), n, 0, 0, 0, 0) for n in range(1, 5)]
    current = view("s5", "5", 5, 2, 2, 2, 2)
    observed = Observed(2, [*sets, current], "s5", history=2)
    assert complete(observed)
    assert plan(observed) == [Remove("s1"), Remove("s2")]
    assert plan(Observed(2, [*sets, current], "s5", history=9)) == []


def test_nothing_is_removed_before_the_rollout_is_over() -> None:
    assert plan(Observed(2, [old(0), new(2, available=1)], "new", history=0)) == []


@pytest.mark.parametrize(
    ("sets", "wanted", "expected"),
    [
        ([], 3, {}),
        ([new(2)], 5, {"new": 5}),
        ([old(0), new(0)], 5, {"new": 5}),
        ([old(2, desired=3), new(2, desired=3)], 3, {}),  # nobody scaled it
        ([old(2, desired=3, maximum=4), new(2, desired=3, maximum=4)], 7, {"old": 4, "new": 4}),
        ([old(3, desired=5, maximum=6), new(3, desired=5, maximum=6)], 2, {"old": 1, "new": 2}),
        ([old(2, desired=4, maximum=5), new(3, desired=4, maximum=5)], 0, {"old": 0, "new": 0}),
    ],
)
def test_paused_sets_keep_their_mix(sets: list[SetView], wanted: int, expected: dict[str, int]) -> None:
    found = spread(sets, wanted, 1, "RollingUpdate")
    assert found == expected
    assert sum(found.values()) in (0, wanted, wanted + 1)


def test_a_paused_deployment_makes_no_set() -> None:
    assert plan(Observed(3, [old(3)], "", paused=True)) == []


# -- sizes, revisions, sets ------------------------------------------------------------------------------------------


def deployment(version: str = "v1.30.0", replicas: int = 3, **spec: Any) -> MachineDeployment:
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {
            "clusterName": "c1",
            "version": version,
            "bootstrap": {"configRef": {"apiGroup": "g.io", "kind": "ConfigTemplate", "name": "c"}},
            "infrastructureRef": {"apiGroup": "g.io", "kind": "InfraTemplate", "name": "i"},
        },
    }
    body = {
        "metadata": {"name": "md", "namespace": "default", "uid": "u1"},
        "spec": {
            "clusterName": "c1",
            "replicas": replicas,
            "selector": {"matchLabels": {"a": "b"}},
            "template": template,
            **spec,
        },
    }
    return msgspec.convert(body, MachineDeployment)


def made(held: MachineDeployment, number: int = 1, created: float = VIRTUAL_START, replicas: int = 1) -> MachineSet:
    body = intent.new_set(held, number, replicas, surge=1)
    body["metadata"] |= {"creationTimestamp": rfc3339(created), "uid": f"s{number}"}
    return msgspec.convert(body, MachineSet)


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (3, None, None, (1, 0)),
        (10, "25%", "25%", (3, 2)),
        (1, "0%", "10%", (0, 1)),  # both come to nothing: then one may be missing
        (3, 0, 10, (0, 3)),
        (0, 1, 0, (1, 0)),
    ],
)
def test_limits(replicas: int, surge: Any, unavailable: Any, expected: tuple[int, int]) -> None:
    given = {"maxSurge": surge, "maxUnavailable": unavailable}
    update = {key: value for key, value in given.items() if value is not None}
    rollout = {"strategy": {"type": "RollingUpdate", "rollingUpdate": update}}
    assert limits(deployment(replicas=replicas, rollout=rollout)) == expected


def test_only_some_fields_are_a_rollout() -> None:
    held = deployment()
    found = made(held)
    now = VIRTUAL_START + 10
    held.spec.template.metadata.labels["x"] = "y"
    held.spec.template.spec.deletion.node_drain_timeout_seconds = 3
    held.spec.template.spec.min_ready_seconds = 3
    assert revision.is_wanted(found, held, now)
    assert not revision.is_wanted(found, deployment("v1.31.0"), now)


def test_a_set_older_than_the_rollout_time_is_outdated_once_that_has_come() -> None:
    held = deployment(rollout={"after": rfc3339(VIRTUAL_START + 100)})
    found = made(held)
    assert revision.is_wanted(found, held, VIRTUAL_START + 99)
    assert not revision.is_wanted(found, held, VIRTUAL_START + 100)
    assert revision.is_wanted(made(held, 2, VIRTUAL_START + 100), held, VIRTUAL_START + 200)


def test_of_several_fitting_sets_the_largest_is_current() -> None:
    held = deployment()
    small, large = made(held, 1, replicas=1), made(held, 2, VIRTUAL_START + 5, replicas=2)
    found = revision.find_current([small, large], held, VIRTUAL_START + 10)
    assert found is large


def test_names_are_the_same_until_something_changes() -> None:
    held = deployment()
    assert intent.set_name(held, 1) == intent.set_name(deployment(), 1)
    others = {intent.set_name(held, 2), intent.set_name(deployment("v1.31.0"), 1)}
    assert intent.set_name(held, 1) not in others
    assert len(others) == 2


def test_a_fresh_set_is_what_its_deployment_says_it_should_be() -> None:
    held = deployment()
    found = made(held)
    again = intent.intent(held, found, replicas=1, surge=1, revision=1, history="", current=True)
    again["metadata"].pop("uid")
    assert intent.digest(again) == intent.digest(intent.new_set(held, 1, 1, surge=1))


def test_old_sets_make_no_machines_when_people_delete_them() -> None:
    held = deployment(rollout={"strategy": {"type": "OnDelete"}})
    body = intent.intent(held, made(held), replicas=1, surge=0, revision=1, history="", current=False)
    assert body["metadata"]["annotations"]["cluster.x-k8s.io/disable-machine-create"] == "true"


def test_the_revision_before_is_found_also_by_a_number_it_had_earlier() -> None:
    held = deployment()
    held.metadata.annotations["machinedeployment.clusters.x-k8s.io/revision"] = "4"
    two, four = made(held, 2), made(held, 4)
    four.metadata.annotations[revision.HISTORY] = "1,3"
    assert revision.find_revision([two, four], held) is two
    assert revision.find_revision([two, four], held, 3) is four
    with pytest.raises(revision.NoRevision, match=r"no revision 9 \(it has: 2, 4\)"):
        revision.find_revision([two, four], held, 9)


# -- admission -------------------------------------------------------------------------------------------------------


def body(**spec: Any) -> dict[str, Any]:
    template = {"spec": {"clusterName": "c1", "bootstrap": {"dataSecretName": "s"}, "version": "1.30.0"}}
    return {"metadata": {"name": "md"}, "spec": {"clusterName": "c1", "template": template, **spec}}


def test_defaults() -> None:
    found = body()
    default(found, None)
    spec = found["spec"]
    both = {"cluster.x-k8s.io/cluster-name": "c1", "cluster.x-k8s.io/deployment-name": "md"}
    assert spec["replicas"] == 1
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == both
    assert spec["rollout"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }
    assert spec["template"]["spec"]["version"] == "v1.30.0"
    assert found["metadata"]["finalizers"] == ["cluster.x-k8s.io/machinedeployment"]
    assert validate(found, None) == []
    before = str(found)
    default(found, found)
    assert str(found) == before


@pytest.mark.parametrize(
    ("sizes", "was", "expected"),
    [(("2", "5"), None, 2), (("2", "5"), 1, 2), (("2", "5"), 9, 5), (("2", "5"), 4, 4), (("2",), None, 1)],
)
def test_replicas_suit_the_autoscaler(sizes: tuple[str, ...], was: int | None, expected: int) -> None:
    keys = ("min", "max")
    prefix = "cluster.x-k8s.io/cluster-api-autoscaler-node-group"
    found = body()
    found["metadata"]["annotations"] = {f"{prefix}-{key}-size": text for key, text in zip(keys, sizes, strict=False)}
    default(found, None if was is None else body(replicas=was))
    assert found["spec"]["replicas"] == expected


def strategy(surge: Any, unavailable: Any) -> dict[str, Any]:
    update = {"maxSurge": surge, "maxUnavailable": unavailable}
    return {"rollout": {"strategy": {"type": "RollingUpdate", "rollingUpdate": update}}}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (strategy(0, 0), "spec.rollout.strategy.rollingUpdate"),
        (strategy("x", 0), "spec.rollout.strategy.rollingUpdate.maxSurge"),
        ({"remediation": {"maxInFlight": "half"}}, "spec.remediation.maxInFlight"),
        ({"machineNaming": {"template": "worker"}}, "spec.machineNaming.template"),
        ({"selector": {"matchLabels": {"a": "b"}}}, "spec.template.metadata.labels"),
    ],
)
def test_what_is_refused(change: dict[str, Any], field: str) -> None:
    found = body(**change)
    default(found, None)
    assert [cause.field for cause in validate(found, None)] == [field]


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        ("machineset.cluster.x-k8s.io/skip-preflight-checks", "Everything"),
        (revision.HISTORY_LIMIT, "many"),
    ],
)
def test_annotations_that_could_not_work_are_refused(annotation: str, value: str) -> None:
    found = body()
    default(found, None)
    found["metadata"]["annotations"] = {annotation: value}
    assert [cause.field for cause in validate(found, None)] == [f"metadata.annotations[{annotation}]"]
