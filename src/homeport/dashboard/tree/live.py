"""The trees of all objects that are put in. After a change, only what it concerns is worked out again. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterable

from homeport.api.meta import Unstructured
from homeport.app.tree.branch import Branch, Tree
from homeport.app.tree.structure import DEEPEST, Item, Structure, role
from homeport.dashboard.tree.digest import NOTHING, Below, Blame, Digest, digest, gather
from homeport.dashboard.tree.fold import Shown, group, is_well


class LiveTrees:
    """`put` and `drop`, then `work`, then read."""

    def __init__(self) -> None:
        self.structure = Structure()
        self._digests: dict[Item, Digest] = {}
        self._below: dict[Item, Below] = {}
        self._working: set[Item] = set()

    def put(self, obj: Unstructured) -> None:
        self.structure.put(obj)

    def drop(self, uid: str) -> None:
        item = self.structure.get(uid)
        self.structure.drop(uid)
        if item is not None:
            self._forget(item)

    def work(self) -> Generator[None]:
        """Works out what changed, one object at a time; read again when it is exhausted. If it is closed before, the
        next one does the rest. From the leaves upwards: an object whose digest stays the same concerns no one above
        it."""
        levels: dict[int, set[Item]] = defaultdict(set)
        depths = _depths(self.structure.touched)
        for each in self.structure.touched:
            levels[depths[each]].add(each)
        self.structure.touched = set()
        try:
            for depth in range(max(levels, default=-1), -1, -1):
                while levels[depth]:
                    item = levels[depth].pop()
                    if self._digest(item) and depth and item.above is not None:
                        self._below.pop(item.above, None)
                        levels[depth - 1].add(item.above)
                    yield
        finally:
            self.structure.touched.update(*levels.values())

    def _digest(self, item: Item) -> bool:
        """Whether it concerns its owner."""
        if self.structure.is_passed_over(item):
            self._forget(item)
            return True
        made = digest(item, self._gathered(item))
        if self._digests.get(item) == made:
            return False
        self._digests[item] = made
        return True

    def _gathered(self, item: Item) -> Below:
        found = self._below.get(item)
        if found is None or item.order is None:
            self._working.add(item)
            children = [each for each in self.structure.children(item) if self._is_known(each)]
            self._working.discard(item)
            if not children:
                self._below.pop(item, None)
                return NOTHING
            found = self._below[item] = gather(children, [self._digests[each] for each in children])
        return found

    def _is_known(self, item: Item) -> bool:
        """A MachineSet that was passed over so far has no digest. What owns itself, by way of others, is left out."""
        if item not in self._digests and item not in self._working and len(self._working) < DEEPEST:
            self._digest(item)
        return item in self._digests

    def _forget(self, item: Item) -> None:
        self._digests.pop(item, None)
        self._below.pop(item, None)

    # -- reading ---------------------------------------------------------------------------------------------------

    def digest(self, item: Item) -> Digest:
        return self._digests[item]

    def cause(self, item: Item) -> Blame | None:
        """Why it is not well. A root that is healthy has no cause, though one of its parts may be under way, unless it
        can't be managed."""
        found = self.digest(item)
        return found.lost if item.facts.runs else found.blame

    def tree(self, item: Item, unreadable: list[str]) -> Tree:
        """The tree as pages draw it, with equal machines as one."""
        root, cause = self._branch(item, None, frozenset()), self.cause(item)
        if cause is None:
            return Tree(root, unreadable=unreadable)
        return Tree(root, cause.sentence, cause.at, unreadable, cause.said.since)

    def _branch(self, item: Item, above: Item | None, seen: frozenset[Item]) -> Branch:
        seen |= {item}
        found = [
            self._drawn(child, entry, item, seen)
            for child, entry in self._below.get(item, NOTHING).shown
            if child not in seen and len(seen) < DEEPEST
        ]
        if item.facts.nodes:
            found = sorted([*found, *item.facts.nodes], key=is_well)
        place = "" if above is None else role(item.object, above.object)
        return item.facts.branch(place, self._digests[item].problem, found)

    def _drawn(self, item: Item, entry: Shown, above: Item, seen: frozenset[Item]) -> Branch:
        made = self._branch(item, above, seen)
        return made if entry.number == 1 else group(made, entry)


def _depths(items: Iterable[Item]) -> dict[Item, int]:
    """How many are above each. Owner references that go in a circle have an end here, too."""
    known: dict[Item, int] = {}
    for item in items:
        way: dict[Item, None] = {}
        each: Item | None = item
        while each is not None and each not in known and each not in way:
            way[each] = None
            each = each.above
        depth = known.get(each, -1) if each is not None else -1
        for passed in reversed(way):
            depth += 1
            known[passed] = depth
    return known
