"""Which object belongs to which, and in which order, while objects come, change and go. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import TypeVar

from homeport.api.meta import Unstructured
from homeport.app.tree.facts import Facts
from homeport.app.tree.read import ROOTS, is_home, roots_of, source_of
from homeport.capi.name import CONTROL_PLANE_LABEL, GROUP, TEMPLATE_SUFFIX

INFRASTRUCTURE, CONTROL_PLANE, WORKERS, ADDONS, OTHER = "Infrastructure", "Control plane", "Workers", "Add-ons", "Other"
_ORDER = {name: place for place, name in enumerate(("", INFRASTRUCTURE, CONTROL_PLANE, WORKERS, ADDONS, OTHER))}
_WORKERS = frozenset({"MachineDeployment", "MachinePool", "MachineSet"})
_ADDONS = frozenset({"ClusterAddon", "TenantAddon", "ServiceSet", "ClusterResourceSetBinding"})
_NAMED = frozenset(kind for _, kind in ROOTS)  # others refer to these by name
_SET = "MachineSet"
DEEPEST = 30  # levels that are shown: owner references are written by users, and may form a chain of any length

K = TypeVar("K")
Place = tuple[str, str, str]  # kind, namespace, name


class Item:
    """One object and its place."""

    __slots__ = ("above", "below", "facts", "kind", "name", "object", "order", "owners", "shape", "uid")

    def __init__(self, obj: Unstructured) -> None:
        self.uid = obj.uid
        self.kind = str(obj.get("kind"))
        self.name = obj.name
        self.above: Item | None = None
        self.below: dict[str, Item] = {}
        self.order: list[Item] | None = None  # what is shown below it; None: not worked out
        self.take(obj)

    def take(self, obj: Unstructured) -> None:
        """The object as it is now."""
        self.object = obj
        self.facts = Facts(obj)
        self.owners = (tuple(_owners(obj)), _named_owner(obj, self.kind))
        # What decides whether and where it is shown below its owner.
        self.shape = (CONTROL_PLANE_LABEL in (obj.metadata.get("labels") or {}), self._is_ready_config())

    @property
    def place(self) -> Place:
        return self.kind, self.object.namespace, self.name

    def _is_ready_config(self) -> bool:
        """A bootstrap configuration that has done its work."""
        return "bootstrap" in str(self.object.get("apiVersion")) and self.facts.said is None


class Structure:
    """`everything`: with templates, bootstrap configurations and empty MachineSets.

    `touched` collects the items that changed, or have other items below them; whoever reads it empties it.
    """

    def __init__(self, *, everything: bool = False) -> None:
        self.touched: set[Item] = set()
        self._everything = everything
        self._items: dict[str, Item] = {}
        self._named: dict[Place, dict[Item, None]] = defaultdict(dict)  # in the order in which they came
        self._by_owner: dict[str, dict[Item, None]] = defaultdict(dict)  # by the UIDs in owner references
        self._by_name: dict[Place, dict[Item, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self._items)

    def get(self, uid: str) -> Item | None:
        return self._items.get(uid)

    def find(self, kind: str, namespace: str, name: str) -> Item | None:
        """One of the objects that users create. Of kinds with the same name, that of Cluster API counts."""
        found = self._named.get((kind, namespace, name)) or ()
        ours = [each for each in found if str(each.object.get("apiVersion")).startswith(f"{GROUP}/")]
        return next(iter((*ours, *found)), None)

    def roots(self) -> Iterator[Item]:
        objects = [each.object for some in self._named.values() for each in some]
        return (self._items[each.uid] for each in roots_of(objects))

    # -- changes ---------------------------------------------------------------------------------------------------

    def put(self, obj: Unstructured) -> None:
        item = self._items.get(obj.uid)
        if item is None:
            self._add(obj)
            return
        owners, shape = item.owners, item.shape
        item.take(obj)
        if item.kind == "Cluster":
            item.order = None  # its references decide the sections
        elif item.kind == "TenantCluster":  # its status decides which Cluster is its own
            self._find_owners(self._by_name.get(item.place, ()))
        if item.owners != owners:
            self._forget_owners(item, owners)
            self._refer(item)
        elif item.shape != shape and item.above is not None:
            self._reorder(item.above)
        self.touched.add(item)

    def drop(self, uid: str) -> None:
        item = self._items.pop(uid, None)
        if item is None:
            return
        self._forget_owners(item, item.owners)
        self._move(item, None)
        if item.kind in _NAMED:
            _discard(self._named, item.place, item)
        self._find_owners([*item.below.values(), *self._by_name.get(item.place, ())])
        self.touched.discard(item)

    def _add(self, obj: Unstructured) -> None:
        item = self._items[obj.uid] = Item(obj)
        if item.kind in _NAMED:
            self._named[item.place][item] = None
        self._refer(item)
        self._find_owners([*self._by_owner.get(item.uid, ()), *self._by_name.get(item.place, ())])
        self.touched.add(item)

    def _find_owners(self, items: Iterable[Item]) -> None:
        for each in items:
            self._move(each, self._owner(each))

    def _refer(self, item: Item) -> None:
        uids, named = item.owners
        for uid in uids:
            self._by_owner[uid][item] = None
        if named is not None:
            self._by_name[named][item] = None
        self._move(item, self._owner(item))

    def _forget_owners(self, item: Item, owners: tuple[tuple[str, ...], Place | None]) -> None:
        for uid in owners[0]:
            _discard(self._by_owner, uid, item)
        if owners[1] is not None:
            _discard(self._by_name, owners[1], item)

    def _owner(self, item: Item) -> Item | None:
        """An owner reference reaches no other namespace: nobody puts objects into the tree of another team."""
        uids, named = item.owners
        known = (self._items[uid] for uid in uids if uid in self._items)
        found = next((each for each in known if each.object.namespace in ("", item.object.namespace)), None)
        if found is None and named is not None:
            found = self.find(*named)
            if found is not None and item.kind == "Cluster" and not is_home(found.object, item.object.namespace):
                found = None
        return None if found is item else found

    def _move(self, item: Item, above: Item | None) -> None:
        if item.above is above:
            return
        if item.above is not None:
            item.above.below.pop(item.uid, None)
            self._reorder(item.above)
        item.above = above
        if above is not None:
            above.below[item.uid] = item
            self._reorder(above)

    def _reorder(self, item: Item) -> None:
        item.order = None
        self.touched.add(item)
        if item.kind == _SET and item.above is not None:  # which may show these Machines as its own
            item.above.order = None
            self.touched.add(item.above)

    # -- order -----------------------------------------------------------------------------------------------------

    def children(self, item: Item) -> list[Item]:
        """What is shown below it, in order."""
        if item.order is None:
            found = [(_section(each, item), each.kind, each.name, each.uid, each) for each in self._shown(item)]
            found.sort()  # a UID is there once, so items are never compared
            item.order = [each[-1] for each in found]
        return item.order

    def _shown(self, item: Item) -> Iterator[Item]:
        for each in item.below.values():
            if self._everything:
                yield each
            elif self.is_passed_over(each):
                yield from each.below.values()
            elif each.kind == _SET:
                if each.below:
                    yield each
            elif not each.kind.endswith(TEMPLATE_SUFFIX) and not each.shape[1]:
                yield each

    def is_passed_over(self, item: Item) -> bool:
        """Whether its owner shows what is below it: the level of the only MachineSet in use would tell nothing."""
        if self._everything or item.kind != _SET or item.above is None or not item.below:
            return False
        return not any(each.kind == _SET and each.below for each in item.above.below.values() if each is not item)


def _discard(index: dict[K, dict[Item, None]], key: K, item: Item) -> None:
    held = index[key]
    held.pop(item, None)
    if not held:
        del index[key]


def _owners(obj: Unstructured) -> list[str]:
    """UIDs, the controller first."""
    refs = sorted(obj.metadata.get("ownerReferences") or (), key=lambda ref: not ref.get("controller"))
    return [str(ref.get("uid")) for ref in refs]


def _named_owner(obj: Unstructured, kind: str) -> Place | None:
    """For objects that name what they belong to, because owner references don't reach there."""
    if kind == "Cluster" and (source := source_of(obj)) is not None:
        return source[0], *source[1]
    spec = obj.get("spec") or {}
    if kind == "ClusterAddon":
        return "Cluster", obj.namespace, str(spec.get("clusterName") or "")
    if kind == "TenantAddon":
        return "TenantCluster", obj.namespace, str((spec.get("clusterRef") or {}).get("name", ""))
    return None


def _section(item: Item, above: Item) -> int:
    if above.kind != "Cluster" and item.kind not in _ADDONS:
        return 0  # as `role` says, for the 10,000 Machines of a MachineDeployment
    return _ORDER[role(item.object, above.object)]


def role(obj: Unstructured, above: Unstructured) -> str:
    """The section below a Cluster, or below a platform's object, that an object is in."""
    kind = str(obj.get("kind"))
    if kind in _ADDONS:
        return ADDONS
    if above.get("kind") != "Cluster":
        return ""
    spec = above.get("spec") or {}
    if not isinstance(spec, dict):
        return ""
    for field, name in (("infrastructureRef", INFRASTRUCTURE), ("controlPlaneRef", CONTROL_PLANE)):
        ref = spec.get(field) or {}
        if (ref.get("kind"), ref.get("name")) == (kind, obj.name):
            return name
    if kind in _WORKERS:
        return WORKERS
    if kind == "Machine":
        return CONTROL_PLANE if CONTROL_PLANE_LABEL in (obj.metadata.get("labels") or {}) else WORKERS
    return OTHER
