"""etcd as state: members, leader, alarms and quorum. Which members reach each other is for the caller to say."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field


class EtcdError(Exception):
    """A request that etcd refuses, in its words."""


@dataclass(slots=True)
class Member:
    id: int
    name: str  # of the node
    peer_url: str
    client_url: str
    learner: bool = False


@dataclass(slots=True)
class Etcd:
    """`alive(name)`: that member runs. `reaches(a, b)`: it hears the other."""

    alive: Callable[[str], bool]
    reaches: Callable[[str, str], bool]
    rng: random.Random = field(default_factory=random.Random)
    members: dict[str, Member] = field(default_factory=dict)
    cluster_id: int = 0
    leader: str = ""
    term: int = 1
    alarms: set[tuple[int, str]] = field(default_factory=set)  # (member, NOSPACE or CORRUPT)

    def __post_init__(self) -> None:
        self.cluster_id = self.rng.getrandbits(63)

    @property
    def voters(self) -> list[Member]:
        return [member for member in self.members.values() if not member.learner]

    def quorum_at(self, name: str) -> bool:
        """Whether the member runs and hears, itself included, more than half of the voters."""
        if name not in self.members or not self.alive(name):
            return False
        heard = sum(1 for each in self.voters if self.alive(each.name) and self.reaches(name, each.name))
        return heard > len(self.voters) // 2

    def elect(self) -> str:
        """The leader, a new one if the old is lost; '' without quorum."""
        if self.leader and self.quorum_at(self.leader) and not self.members[self.leader].learner:
            return self.leader
        self.leader = next((member.name for member in self.voters if self.quorum_at(member.name)), "")
        if self.leader:
            self.term += 1
        return self.leader

    def bootstrap(self, name: str, address: str) -> Member:
        if self.members:
            raise EtcdError("member has already been bootstrapped")
        return self._put(name, address, learner=False)

    def add(self, name: str, address: str) -> Member:
        """A new member, as a learner; `promote` makes it a voter."""
        self._require_quorum()
        if any(member.peer_url == _peer(address) for member in self.members.values()):
            raise EtcdError("etcdserver: Peer URLs already exists")
        if any(member.learner for member in self.members.values()):
            raise EtcdError("etcdserver: too many learner members in cluster")
        return self._put(name, address, learner=True)

    def promote(self, name: str) -> None:
        self._require_quorum()
        self.members[name].learner = False

    def remove(self, member_id: int) -> None:
        self._require_quorum()
        found = self.by_id(member_id)
        left = [each for each in self.voters if each.id != member_id and self.alive(each.name)]
        if not found.learner and len(self.voters) > 1 and len(left) <= (len(self.voters) - 1) // 2:
            raise EtcdError("etcdserver: re-configuration failed due to not enough started members")
        del self.members[found.name]
        self.alarms = {alarm for alarm in self.alarms if alarm[0] != member_id}
        if self.leader == found.name:
            self.leader = ""
        self.elect()

    def move_leader(self, target_id: int) -> None:
        self._require_quorum()
        target = self.by_id(target_id)
        if target.learner or not self.quorum_at(target.name):
            raise EtcdError("etcdserver: bad leader transferee")
        if self.leader != target.name:
            self.leader = target.name
            self.term += 1

    def by_id(self, member_id: int) -> Member:
        for member in self.members.values():
            if member.id == member_id:
                return member
        raise EtcdError("etcdserver: member not found")

    def _put(self, name: str, address: str, *, learner: bool) -> Member:
        member = Member(self.rng.getrandbits(63), name, _peer(address), f"https://{_host(address)}:2379", learner)
        self.members[name] = member
        self.elect()
        return member

    def _require_quorum(self) -> None:
        if not self.elect():
            raise EtcdError("etcdserver: no leader")


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _peer(address: str) -> str:
    return f"https://{_host(address)}:2380"
