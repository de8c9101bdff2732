"""Which kinds move, and in which version."""

from __future__ import annotations

from typing import Any

from homeport.app.platform import chosen
from homeport.capi.name import CLUSTERCTL_CORE_LABEL, CLUSTERCTL_LABEL, MOVE_HIERARCHY_LABEL, MOVE_LABEL
from homeport.move.kind import MovedKind, moved_kinds


def definition(name: str, *versions: str, stored: str = "", **labels: str) -> dict[str, Any]:
    stored = stored or versions[-1]
    return {
        "metadata": {"name": f"{name.lower()}s.example.com", "labels": {CLUSTERCTL_LABEL: "", **labels}},
        "spec": {
            "group": "example.com",
            "names": {"kind": name, "plural": f"{name.lower()}s"},
            "scope": "Namespaced",
            "versions": [
                {"name": each, "served": True, "storage": each == stored, "subresources": {"status": {}}}
                for each in versions
            ],
        },
    }


def found(source: dict[str, Any], *target: dict[str, Any]) -> MovedKind:
    return moved_kinds([source], target)[0]


def test_the_stored_version_is_used_where_both_serve_it_and_otherwise_one_that_both_serve() -> None:
    table = {
        (("v1", "v2"), ("v1", "v2")): "v2",
        (("v1", "v2"), ("v1",)): "v1",
        (("v1",), ("v1", "v2")): "v1",
        (("v1", "v2", "v3"), ("v1", "v2")): "v2",
    }
    for (here, there), version in table.items():
        kind = found(definition("Widget", *here), definition("Widget", *there))
        assert (kind.resource.version, kind.problem) == (version, "")


def test_a_kind_that_the_target_does_not_serve_is_a_problem_with_a_cure() -> None:
    assert "does not serve widgets.example.com: install" in found(definition("Widget", "v1")).problem
    other = found(definition("Widget", "v2"), definition("Widget", "v1")).problem
    assert "in v1, the source in v2" in other


def test_labels_say_which_kinds_move_and_which_take_what_they_own_along() -> None:
    plain, moved = definition("Plain", "v1"), definition("Moved", "v1", **{MOVE_LABEL: ""})
    root = definition("Root", "v1", **{MOVE_HIERARCHY_LABEL: ""})
    inventory = definition("Provider", "v1", **{CLUSTERCTL_CORE_LABEL: "inventory"})
    kinds = {each.resource.kind: each for each in moved_kinds([plain, moved, root, inventory], None)}
    assert set(kinds) == {"Plain", "Moved", "Root", "Secret", "ConfigMap"}
    assert [(kinds[n].moves, kinds[n].hierarchy) for n in ("Plain", "Moved", "Root")] == [
        (False, False),
        (True, False),
        (True, True),
    ]


def test_every_kind_of_the_plane_that_belongs_to_clusters_moves() -> None:
    kinds = {each.resource.kind for each in moved_kinds(chosen().definitions(), None)}
    assert {"Cluster", "Machine", "KubeadmControlPlane", "NutanixMachine", "IPAddress", "ClusterAddon"} <= kinds
    assert {"StewardControlPlane", "TenantControlPlane", "ClusterResourceSetBinding", "InClusterIPPool"} <= kinds
