"""Trees that follow changes: the same as trees made at once, for less work."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.api.butler.v1alpha1.part import GROUP as BUTLER_GROUP
from homeport.api.meta import Unstructured
from homeport.app.tree.branch import Branch
from homeport.app.tree.grow import grow
from homeport.app.tree.read import Found, roots_of
from homeport.app.tree.structure import DEEPEST
from homeport.cli.cluster.drawing import draw
from homeport.dashboard.tree.fold import ALONE, MOST_APART, is_well
from homeport.dashboard.tree.live import LiveTrees

API = "cluster.x-k8s.io/v1beta2"
BOOTSTRAP = "bootstrap.cluster.x-k8s.io/v1beta2"
BUTLER = "butler.butlerlabs.dev/v1alpha1"
# Kind, name, API version, and the places in this list of what may own it.
PLACES: list[tuple[str, str, str, tuple[int, ...]]] = [
    ("TenantCluster", "team", BUTLER, ()),
    ("Cluster", "a", API, (0,)),
    ("MachineDeployment", "w", API, (1,)),
    ("MachineSet", "w-1", API, (2, 1)),
    ("MachineSet", "w-2", API, (2,)),
    ("Machine", "m1", API, (3, 4, 1)),
    ("Machine", "m2", API, (3, 4)),
    ("Machine", "m3", API, (4, 3)),
    ("KubeadmConfig", "m1", BOOTSTRAP, (5, 6)),
    ("NutanixMachine", "m1", "infrastructure.cluster.x-k8s.io/v1beta1", (5, 7)),
    ("ClusterAddon", "dns", "addons.homeport.dev/v1alpha1", ()),
    ("Cluster", "b", API, ()),
]


def condition(kind: str, status: str, message: str, reason: str = "Broken") -> dict[str, Any]:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def made(
    kind: str, name: str, version: str = API, owner: str = "", status: dict[str, Any] | None = None, **spec: Any
) -> Unstructured:
    metadata: dict[str, Any] = {"name": name, "namespace": "default", "uid": f"{kind}/{name}"}
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
    return Unstructured({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "status": status})


@st.composite
def objects(draw: st.DrawFn) -> tuple[str, Unstructured | None]:
    """A UID, and the object as it is now; None: it is gone."""
    kind, name, version, owners = draw(st.sampled_from(PLACES))
    uid = f"{kind}/{name}"
    if draw(st.integers(0, 5)) == 0:
        return uid, None
    owner = draw(st.sampled_from([*(f"{PLACES[n][0]}/{PLACES[n][1]}" for n in owners), ""]))
    found = [
        condition(
            each, draw(st.sampled_from(["True", "False"])), draw(st.sampled_from(["", "no image", "no address"])), why
        )
        for each, why in (
            ("Ready", "NotReady"),
            ("InfrastructureReady", "Broken"),
            ("InfrastructureReachable", "Unreachable"),
        )
        if draw(st.booleans())
    ]
    status: dict[str, Any] = {"conditions": found, "readyReplicas": draw(st.integers(0, 2))}
    if draw(st.booleans()):
        status["nodeRef"] = {"name": name}
    spec = {"replicas": draw(st.integers(1, 3)), "clusterName": draw(st.sampled_from(["a", "b"]))}
    obj = made(kind, name, version, owner, status, **spec)
    if kind == "Cluster" and draw(st.booleans()):
        prefix = "butler.butlerlabs.dev/source-"
        obj.metadata["labels"] = {f"{prefix}namespace": "default", f"{prefix}name": "team"}
    return uid, obj


def take(trees: LiveTrees, uid: str, obj: Unstructured | None) -> None:
    if obj is None:
        trees.drop(uid)
    else:
        trees.put(obj)


def work(trees: LiveTrees) -> int:
    """Gives how many objects were looked at."""
    return sum(1 for _ in trees.work())


def drawn(trees: LiveTrees) -> dict[str, Any]:
    return {each.uid: (trees.tree(each, []), trees.digest(each).counts) for each in trees.structure.roots()}


def sick_first(branch: Branch) -> Branch:
    children = sorted((sick_first(each) for each in branch.children), key=is_well)
    return msgspec.structs.replace(branch, children=children)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(objects(), st.booleans()), max_size=40))
def test_a_tree_that_followed_changes_is_the_tree_made_at_once(
    changes: list[tuple[tuple[str, Unstructured | None], bool]],
) -> None:
    live, held = LiveTrees(), dict[str, Unstructured]()
    for (uid, obj), now in changes:
        take(live, uid, obj)
        held.pop(uid, None)
        if obj is not None:
            held[uid] = obj
        if now:
            work(live)
    work(live)
    present = list(held.values())
    roots = roots_of(present)
    expected = {root.uid: tree for root, tree in zip(roots, grow(Found(roots, present), None), strict=True)}
    found = drawn(live)
    assert found.keys() == expected.keys()
    for uid, tree in expected.items():
        machines = [each for each in tree.root.walk() if each.kind == "Machine"]
        assert found[uid][0] == msgspec.structs.replace(tree, root=sick_first(tree.root))
        assert found[uid][1][:2] == (len(machines), sum(each.healthy is True for each in machines))


def cluster(machines: int, **status: Any) -> LiveTrees:
    trees = LiveTrees()
    trees.put(made("Cluster", "a"))
    trees.put(made("MachineDeployment", "w", owner="Cluster/a", replicas=machines))
    trees.put(made("MachineSet", "w", owner="MachineDeployment/w"))
    for number in range(machines):
        trees.put(machine(number))
    work(trees)
    return trees


def machine(number: int, status: str = "True", message: str = "") -> Unstructured:
    found = [condition("Ready", status, message)]
    return made("Machine", f"m{number:05d}", owner="MachineSet/w", status={"conditions": found})


def workers(trees: LiveTrees) -> list[tuple[str, str]]:
    [root] = trees.structure.roots()
    return [(each.kind, each.name) for each in trees.tree(root, []).root.children[0].children]


def test_equal_machines_are_one_group_and_sick_ones_come_first() -> None:
    trees = cluster(ALONE + 5)
    assert workers(trees) == [("Group", f"{ALONE + 5} Machines")]
    trees.put(machine(3, "False", "no image"))
    work(trees)
    assert workers(trees) == [("Machine", "m00003"), ("Group", f"{ALONE + 4} Machines")]
    trees.drop("Machine/m00001")
    work(trees)
    assert workers(trees) == [("Machine", "m00003"), ("Group", f"{ALONE + 3} Machines")]


def test_a_few_equal_machines_are_shown_one_by_one() -> None:
    assert workers(cluster(ALONE)) == [("Machine", f"m{n:05d}") for n in range(ALONE)]


def test_of_many_machines_that_differ_only_the_first_are_shown_one_by_one() -> None:
    trees = cluster(200)
    for number in range(150):
        trees.put(machine(number, "False", f"VM {number} was not found"))
    work(trees)
    found = workers(trees)
    assert found[:MOST_APART] == [("Machine", f"m{n:05d}") for n in range(MOST_APART)]
    assert found[MOST_APART:] == [("Group", f"{150 - MOST_APART} Machines"), ("Group", "50 Machines")]
    [root] = trees.structure.roots()
    rest = trees.tree(root, []).root.children[0].children[MOST_APART]
    assert (rest.state, rest.problem) == ("Not ready", f"for example: VM {MOST_APART} was not found")


def test_a_change_that_nobody_above_can_see_is_looked_at_once() -> None:
    trees = cluster(1_000)
    trees.put(machine(500, message="all is well"))
    assert work(trees) == 1
    trees.put(made("MachineDeployment", "w", owner="Cluster/a", replicas=1_000, status={"readyReplicas": 7}))
    assert work(trees) == 2  # itself and its Cluster, but no Machine
    trees.put(machine(500, "False", "no image"))
    assert work(trees) == 4
    [root] = trees.structure.roots()
    assert trees.tree(root, []).cause == "MachineDeployment w: machine m00500: no image"


def test_owner_references_in_a_circle_have_an_end() -> None:
    trees = LiveTrees()
    trees.put(made("Cluster", "a", owner="MachineDeployment/w"))
    trees.put(made("MachineDeployment", "w", owner="Cluster/a"))
    trees.put(made("Machine", "self", owner="Machine/self"))
    work(trees)
    trees.put(made("Cluster", "a", owner="MachineDeployment/w", replicas=2))
    work(trees)
    [root] = trees.structure.roots()
    assert len(list(trees.tree(root, []).root.walk())) <= 2


def test_work_that_is_left_half_done_is_done_by_the_next_page() -> None:
    objects = [made("Cluster", "a"), *(made("Machine", f"m{n}", owner="Cluster/a") for n in range(9))]
    trees = LiveTrees()
    for each in objects:
        trees.put(each)
    for _ in range(20):  # pages that are opened and left
        steps = trees.work()
        next(steps, None)
        steps.close()
    assert trees.structure.touched == set()
    [root] = trees.structure.roots()
    assert trees.digest(root).counts.machines == 9


@pytest.mark.parametrize("circle", [False, True])
def test_a_chain_of_owners_is_cut_off_where_nobody_reads_any_more(circle: bool) -> None:
    """Whoever may create objects decides how long it is."""
    number = 3_000
    broken = {"conditions": [condition("Ready", "False", "no image")]}
    chain = [made("Machine", f"m{n}", owner=f"Machine/m{n - 1}" if n else "Cluster/a") for n in range(number)]
    chain.append(made("Machine", "last", owner=f"Machine/m{number - 1}", status=broken))
    root = made("Cluster", "a", owner="Machine/last" if circle else "")
    trees = LiveTrees()
    for each in (root, *reversed(chain)):
        trees.put(each)
    work(trees)
    item = trees.structure.find("Cluster", "default", "a")
    assert item is not None
    shown = trees.tree(item, [])
    assert len(list(shown.root.walk())) == DEEPEST
    assert len(shown.cause) < 2_000
    [grown] = grow(Found([root], chain), None)
    assert len(list(grown.root.walk())) == DEEPEST
    msgspec.json.encode(grown)


def test_an_owner_reference_into_another_namespace_puts_nothing_into_its_tree() -> None:
    trees = LiveTrees()
    trees.put(made("Cluster", "a"))
    forged = made(
        "Machine", "forged", owner="Cluster/a", status={"conditions": [condition("Ready", "False", "pay me")]}
    )
    forged.metadata["namespace"] = "other"
    trees.put(forged)
    work(trees)
    [root] = trees.structure.roots()
    assert trees.digest(root).counts.machines == 0
    assert trees.cause(root) is None
    assert trees.tree(root, []).root.children == []


def test_labels_that_name_the_tenant_cluster_of_another_team_put_nothing_into_its_tree() -> None:
    trees = LiveTrees()
    own, forged = made("Cluster", "own"), made("Cluster", "forged")
    for each, namespace in ((own, "tenant-team"), (forged, "other")):
        labels = {f"{BUTLER_GROUP}/source-namespace": "default", f"{BUTLER_GROUP}/source-name": "team"}
        each.metadata.update(namespace=namespace, labels=labels)
        trees.put(each)
    trees.put(made("TenantCluster", "team", BUTLER))
    work(trees)
    assert [each.name for each in trees.structure.roots()] == ["team"]  # Butler has not said yet which one it is
    trees.put(made("TenantCluster", "team", BUTLER, status={"tenantNamespace": "tenant-team"}))
    work(trees)
    assert sorted(each.name for each in trees.structure.roots()) == ["forged", "team"]
    root = trees.structure.find("TenantCluster", "default", "team")
    assert root is not None
    assert [each.name for each in trees.tree(root, []).root.children] == ["own"]


def test_a_cluster_that_runs_and_can_not_be_managed_says_so_and_since_when() -> None:
    well = {"conditions": [condition("Available", "True", "")]}
    lost = condition("InfrastructureReachable", "False", "Prism Central does not know whether VM m1 is on")
    machine = {"conditions": [condition("Ready", "True", ""), lost | {"lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    objects = [
        made("Cluster", "a", status=well),
        made("Machine", "m1", owner="Cluster/a", status={"conditions": [condition("Ready", "True", "")]}),
        made("NutanixMachine", "m1", "infrastructure.cluster.x-k8s.io/v1beta1", "Machine/m1", machine),
    ]
    live = LiveTrees()
    for each in objects:
        live.put(each)
    work(live)
    [root] = live.structure.roots()
    for tree in (live.tree(root, []), *grow(Found([objects[0]], objects), None)):
        assert tree.cause.startswith(
            "it runs, but can't be managed now: NutanixMachine m1: Prism Central does not know"
        )
        assert tree.since == "2026-01-01T00:00:00Z"
        assert tree.culprit is not None
        assert tree.culprit.kind == "NutanixMachine"


def test_a_cluster_that_repeats_it_names_the_object_that_reports_it() -> None:
    denied = "Prism Central rejects the credentials"
    ready = condition("Ready", "True", "")
    lost = condition("InfrastructureReachable", "False", denied)
    repeated = condition("InfrastructureReachable", "False", f"NutanixCluster a: {denied}")
    infra = {"conditions": [ready, lost]}
    api = "infrastructure.cluster.x-k8s.io/v1beta1"
    objects = [
        made(
            "Cluster",
            "a",
            status={"conditions": [condition("Available", "True", ""), repeated]},
            infrastructureRef={"kind": "NutanixCluster", "name": "a"},
        ),
        made("NutanixCluster", "a", api, "Cluster/a", infra),
        made("Machine", "m1", owner="Cluster/a", status={"conditions": [ready]}),
        made("NutanixMachine", "m1", api, "Machine/m1", infra),
    ]
    live = LiveTrees()
    for each in objects:
        live.put(each)
    work(live)
    [root] = live.structure.roots()
    [grown] = grow(Found([objects[0]], objects), None)
    for tree in (live.tree(root, []), grown):
        assert tree.cause == f"it runs, but can't be managed now: NutanixCluster a: {denied}"
        assert tree.culprit is not None
        assert tree.culprit.kind == "NutanixCluster"
    assert [each.text.strip(" │") for each in draw(grown) if denied in each.text] == [
        f"{denied} (reported by 1 more object below)"
    ]


def test_a_cluster_of_k0smotron_is_a_part_of_a_control_plane_and_no_cluster_of_its_own() -> None:
    """Nor is it unhealthy because nothing is scaled."""
    steady = {
        "conditions": [
            condition("Available", "True", ""),
            condition("ControlPlaneScaling", "False", "", "ControlPlaneWithDesiredReplicas"),
        ]
    }
    hosted = made("Cluster", "a", "k0smotron.io/v1beta2", "K0smotronControlPlane/a", steady)
    hosted.metadata["uid"] = "hosted"
    objects = [
        made("Cluster", "a", status={"conditions": [condition("Available", "True", "")]}),
        made("K0smotronControlPlane", "a", "controlplane.cluster.x-k8s.io/v1beta2", "Cluster/a", steady),
        hosted,
    ]
    live = LiveTrees()
    for each in objects:
        live.put(each)
    work(live)
    assert [each.uid for each in live.structure.roots()] == ["Cluster/a"]
    assert [each.uid for each in roots_of(objects)] == ["Cluster/a"]
    [root] = live.structure.roots()
    assert live.tree(root, []).cause == ""
    alone = live.structure.get("hosted")
    assert alone is not None
    assert alone.facts.said is None
