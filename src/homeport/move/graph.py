"""The objects of a plane as a graph: who owns whom, what moves, what also stays, and in which order it is created."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from homeport.client.protocol import Key
from homeport.move.dependency import dependencies
from homeport.move.errors import MoveRefused
from homeport.move.node import Node
from homeport.move.reference import references

_SOURCE_NAMESPACE, _SOURCE_NAME = "source-namespace", "source-name"
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105


@dataclass(slots=True)
class Graph:
    nodes: dict[str, Node] = field(default_factory=dict)  # by UID
    _children: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @classmethod
    def build(cls, nodes: Iterable[Node]) -> Graph:
        graph = cls({node.uid: node for node in nodes})
        by_name = {node.place: node for node in graph.nodes.values()}
        roots: dict[tuple[str, Key], set[str]] = defaultdict(set)
        for node in graph.nodes.values():
            if node.hierarchy:
                roots[node.kind.resource.group, node.key].add(node.uid)
        for node in graph.nodes.values():
            refs = node.obj.metadata.get("ownerReferences") or ()
            node.owners = {ref["uid"] for ref in refs if ref["uid"] in graph.nodes}
            soft = map(by_name.get, dependencies(node))
            node.soft_owners = {owner.uid for owner in soft if owner is not None and owner is not node} - node.owners
            node.remote_owners = {owner for at in _sources(node) for owner in roots.get(at, ())} - {node.uid}
            for owner in node.owners | node.soft_owners | node.remote_owners:
                graph._children[owner].add(node.uid)
        return graph

    def below(self, uids: Iterable[str], soft: Callable[[Node], bool] = lambda node: False) -> set[str]:
        """These, and everything that they own; by name alone where `soft` says so. Circles end."""
        found: set[str] = set()
        left = list(uids)
        while left:
            uid = left.pop()
            if uid not in found and not self.nodes[uid].stays:
                found.add(uid)
                children = (self.nodes[each] for each in self._children[uid])
                left += [each.uid for each in children if uid in each.owners or soft(each)]
        return found

    def selection(self, namespace: str = "") -> Selection:
        """What moves. `namespace` '': everything of the plane."""
        spaces = self._spaces(namespace)

        def inside(node: Node) -> bool:
            return spaces is None or node.key.namespace in spaces

        moving = [node for node in self.nodes.values() if node.moves and not node.stays]
        roots = [node for node in moving if inside(node) or not node.key.namespace]
        moved = {node.uid for node in roots} | self.below((n.uid for n in roots if n.hierarchy), inside)
        moved |= self.below({owner for uid in moved for owner in self.nodes[uid].soft_owners} - moved)
        moved = {uid for uid in moved if self.nodes[uid].obj.get("type") != _TOKEN}
        referred = self._referred(moved) - moved
        shared = (referred & self._referred(self.nodes.keys() - moved - referred)) | self._used_elsewhere(moved)
        moved |= referred
        return Selection(
            [self.nodes[uid] for uid in sorted(moved, key=self._place)],
            frozenset(uid for uid in moved if uid in shared or not inside(self.nodes[uid])),
            [node for node in self.nodes.values() if _is_left(node) and inside(node) and node.uid not in moved],
            [f"{self.nodes[uid]} belongs to {self.nodes[each]}" for uid in moved for each in self._torn(uid, moved)],
            [(self.nodes[uid], self.nodes[each]) for uid in sorted(moved) for each in self._presumed(uid)],
        )

    def _presumed(self, uid: str) -> list[str]:
        """What the object needs, and every plane has of its own."""
        return sorted(owner for owner in self.nodes[uid].soft_owners if self.nodes[owner].stays)

    def _spaces(self, namespace: str) -> set[str] | None:
        """The namespace, and those that its objects have for themselves alone. None: all."""
        if not namespace:
            return None
        found: set[str] = {namespace}
        while True:
            more = {
                node.key.namespace
                for node in self.nodes.values()
                for owner in node.remote_owners
                if self.nodes[owner].key.namespace in found
            }
            if more <= found:
                return found
            found |= more

    def _torn(self, uid: str, moved: set[str]) -> list[str]:
        return [owner for owner in self.nodes[uid].remote_owners if owner not in moved]

    def _place(self, uid: str) -> tuple[str, Key]:
        node = self.nodes[uid]
        return (node.kind.resource.qualified, node.key)

    def _referred(self, uids: Iterable[str]) -> set[str]:
        """Secrets and ConfigMaps that these refer to, unless they belong to something else."""
        known = {
            (n.kind.resource.kind, n.key.namespace, n.key.name): n.uid for n in self.nodes.values() if not n.kind.custom
        }
        found = (
            known.get((ref.kind, ref.namespace, ref.name)) for uid in uids for ref in references(self.nodes[uid].obj)
        )
        return {uid for uid in found if uid is not None and not self.nodes[uid].obj.metadata.get("ownerReferences")}

    def _used_elsewhere(self, moved: set[str]) -> set[str]:
        """Classes, with their templates, of Clusters that stay."""
        staying = (node for node in self.nodes.values() if node.kind.is_cluster and node.uid not in moved)
        return self.below({owner for node in staying for owner in node.soft_owners} & moved)


@dataclass(frozen=True, slots=True)
class Selection:
    """What moves, and the UIDs of what is copied and also stays on the source."""

    nodes: Sequence[Node]
    kept: frozenset[str]
    left: Sequence[Node] = ()  # what stays because it belongs to nothing that moves
    torn: Sequence[str] = ()  # what would move without the object that it belongs to
    presumed: Sequence[tuple[Node, Node]] = ()  # what moves, and what it needs that the target has of its own

    @property
    def clusters(self) -> list[Node]:
        return [node for node in self.nodes if node.kind.is_cluster]

    @property
    def versions(self) -> dict[str, str]:
        return {node.uid: node.version for node in self.nodes}

    def roots(self) -> list[Node]:
        """What is paused: everything else is paused with its owner."""
        here = {node.uid for node in self.nodes}
        return [
            node
            for node in self.nodes
            if node.uid not in self.kept
            and node.kind.custom
            and (node.kind.is_cluster or node.hierarchy or not node.owners & here)
        ]

    def groups(self) -> list[list[Node]]:
        """In the order of creation: owners first. Raises MoveRefused for a circle."""
        left, placed = list(self.nodes), set[str]()
        here = {node.uid for node in self.nodes}
        groups = []
        while left:
            ready = [n for n in left if (n.owners | n.soft_owners | n.remote_owners) & here <= placed]
            ready = ready or [node for node in left if node.owners & here <= placed]
            if not ready:
                named = ", ".join(map(str, left[:5]))
                raise MoveRefused([f"{named}: their owner references form a circle: remove one of them"])
            groups.append(ready)
            placed |= {node.uid for node in ready}
            left = [node for node in left if node.uid not in placed]
        return groups


def _is_left(node: Node) -> bool:
    return node.kind.custom and not node.stays


def _sources(node: Node) -> list[tuple[str, Key]]:
    """Objects of other namespaces that it was made for: owner references can't lead there, labels do.

    `<group>/source-namespace` and `<group>/source-name` name an object of that API group.
    """
    found = []
    for label, namespace in node.labels.items():
        group, _, rest = label.rpartition("/")
        name = node.labels.get(f"{group}/{_SOURCE_NAME}")
        if rest == _SOURCE_NAMESPACE and name:
            found.append((group, Key(namespace, name)))
    return found
