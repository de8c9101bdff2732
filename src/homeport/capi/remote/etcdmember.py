"""The etcd members of workload clusters, as the control plane provider saw them last.

Infrastructure providers ask here before they remove a control plane machine that has no object. Only the process that
asks etcd knows; in any other process the members are unknown, and then nothing is removed.
"""

from __future__ import annotations

from collections.abc import Iterable

from homeport.client.protocol import Key


class EtcdMembers:
    def __init__(self) -> None:
        self._seen: dict[Key, tuple[float, frozenset[str]]] = {}

    def note(self, cluster: Key, asked_at: float, known_as: Iterable[str]) -> None:
        """`known_as`: names and addresses of all members; `asked_at`: when etcd was asked, by the wall clock."""
        self._seen[cluster] = (asked_at, frozenset(known_as))

    def forget(self, cluster: Key) -> None:
        self._seen.pop(cluster, None)

    def since(self, cluster: Key, moment: float) -> frozenset[str] | None:
        """Names and addresses of the members, if etcd was asked after that moment; None: not known."""
        seen = self._seen.get(cluster)
        return seen[1] if seen is not None and seen[0] > moment else None
