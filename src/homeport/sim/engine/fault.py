"""Faults as data: one vocabulary for tests, for files of the command line and for the dashboard.

A fault says what it meets (`match`), how often at most (`times`), and what it does (`effect`). Effects on requests
meet requests, effects on tasks meet tasks as they start, the others meet machines and clusters.

    faults:
    - name: every third create is refused
      match: {method: POST, route: /api/vmm/*/ahv/config/vms, every: 3}
      effect: {kind: status, status: 503, code: VMM-10011}
    - name: the second control plane never boots
      match: {kind: vm, entity: "*-cp-*", nth: 2}
      effect: {kind: no-boot}
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from homeport.sim.engine.document import Document, read_document


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, rename="camel"):
    pass


class Match(_Data, frozen=True):
    """All that is given must fit. Texts are globs (`*`, `?`), without regard to case."""

    method: str = ""
    route: str = ""  # the path, or the template of the route
    verb: str = ""  # of a Kubernetes API: get, list, watch, create, update, patch, delete
    resource: str = ""  # of a Kubernetes API: virtualmachines, virtualmachines.kubevirt.io, pods/log
    namespace: str = ""  # of a Kubernetes API
    kind: str = ""  # of the entity: vm, image, subnet, cluster, ...
    entity: str = ""  # its name or id
    cluster: str = ""  # name or id of the Prism Element it is on
    state: dict[str, str | bool] = {}  # its fields, such as {powerState: ON}, which YAML reads as true
    operation: str = ""  # of a task: kVmCreate
    user: str = ""
    nth: tuple[int, ...] | int = ()  # of all that fit so far, from 1
    every: int = 0
    share: float = 1.0
    after: float = 0.0  # seconds since the faults were set
    until: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError("share is a number from 0 to 1")
        if self.every < 0 or any(number < 1 for number in self.numbers):
            raise ValueError("nth and every count from 1")
        if self.until is not None and self.until <= self.after:
            raise ValueError("until must be later than after")

    @property
    def numbers(self) -> tuple[int, ...]:
        return (self.nth,) if isinstance(self.nth, int) else self.nth


class Status(_Data, tag="status", tag_field="kind", frozen=True):
    """An answer of this HTTP status, with an error body as the vendor writes it."""

    status: int
    code: str = ""
    message: str = ""
    group: str = ""

    def __post_init__(self) -> None:
        if not 400 <= self.status <= 599:
            raise ValueError("status is an error, from 400 to 599")


class Throttle(_Data, tag="throttle", tag_field="kind", frozen=True):
    """429 with Retry-After."""

    retry_after: float = 1.0


class Delay(_Data, tag="delay", tag_field="kind", frozen=True):
    seconds: float
    jitter: float = 0.0


class Drop(_Data, tag="drop", tag_field="kind", frozen=True):
    """The connection ends without an answer, `before` or `after` the request took effect."""

    when: Literal["before", "after"] = "before"


class Stale(_Data, tag="stale", tag_field="kind", frozen=True):
    """Reads are answered from the world as it was this long ago."""

    seconds: float


class SessionExpiry(_Data, tag="session-expiry", tag_field="kind", frozen=True):
    """The session that the request came with is over: 401 until the client shows its credentials again."""


class TaskFailure(_Data, tag="task-failure", tag_field="kind", frozen=True):
    """The task runs its time and ends FAILED, without effect."""

    code: str = ""
    message: str = ""
    group: str = ""


class TaskHang(_Data, tag="task-hang", tag_field="kind", frozen=True):
    """The task stays where it is; `seconds` later it goes on, or never."""

    seconds: float | None = None


class Outage(_Data, tag="outage", tag_field="kind", frozen=True):
    """A cluster is out of reach: its tasks wait, its machines are undetermined, it is not available."""


class FullDisk(_Data, tag="full-disk", tag_field="kind", frozen=True):
    """No space is left on the cluster."""


class Crash(_Data, tag="crash", tag_field="kind", frozen=True):
    """The machine goes off this long after its power-on; one that runs when the fault is set, this long after that."""

    seconds: float = 0.0


class NoBoot(_Data, tag="no-boot", tag_field="kind", frozen=True):
    """The machine is powered on, and its guest never starts."""


class Isolation(_Data, tag="isolation", tag_field="kind", frozen=True):
    """The machine boots, and reaches none of these beyond its own network."""

    lacks: tuple[Literal["internet", "dns", "registry"], ...] = ("internet",)


class AddressLate(_Data, tag="address-late", tag_field="kind", frozen=True):
    """Addresses appear this long after the power-on; never, without a number."""

    seconds: float | None = None


class AddressChange(_Data, tag="address-change", tag_field="kind", frozen=True):
    """Addresses are replaced by others this long after the power-on."""

    seconds: float = 0.0


class AddressLoss(_Data, tag="address-loss", tag_field="kind", frozen=True):
    """Addresses are gone this long after the power-on."""

    seconds: float = 0.0


class WatchCut(_Data, tag="watch-cut", tag_field="kind", frozen=True):
    """A watch ends this long after it began: with the end of its stream, or without (`abrupt`)."""

    seconds: float = 0.0
    abrupt: bool = False


class ImportFailure(_Data, tag="import-failure", tag_field="kind", frozen=True):
    """An attempt to import an image fails."""

    message: str = "the server answered with status 404"


class AgentSilence(_Data, tag="agent-silence", tag_field="kind", frozen=True):
    """The guest runs, but its agent reports nothing until this long after the boot; never, without a number."""

    seconds: float | None = None


RequestEffect = Status | Throttle | Delay | Drop | Stale | SessionExpiry
TaskEffect = TaskFailure | TaskHang
Effect = (
    Status
    | Throttle
    | Delay
    | Drop
    | Stale
    | SessionExpiry
    | TaskFailure
    | TaskHang
    | Outage
    | FullDisk
    | Crash
    | NoBoot
    | Isolation
    | AddressLate
    | AddressChange
    | AddressLoss
    | WatchCut
    | ImportFailure
    | AgentSilence
)

REQUEST_EFFECTS = (Status, Throttle, Delay, Drop, Stale, SessionExpiry)
TASK_EFFECTS = (TaskFailure, TaskHang)


class Fault(_Data, frozen=True):
    effect: Effect
    match: Match = Match()
    name: str = ""
    times: int | None = None

    def __post_init__(self) -> None:
        if self.times is not None and self.times < 1:
            raise ValueError("times is a number from 1, or left out")


class FaultFile(_Data, frozen=True):
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What a simulator understands: a fault that it would ignore is an error."""

    simulator: str
    effects: tuple[type, ...]
    unknown: tuple[str, ...] = ()  # fields of `match` that it has no use for

    def read(self, document: Document) -> tuple[Fault, ...]:
        """Raises DocumentError."""
        faults = document.convert(FaultFile).faults
        for number, fault in enumerate(faults):
            if not isinstance(fault.effect, self.effects):
                known = ", ".join(_kind(effect) for effect in self.effects)
                text = f"{_kind(type(fault.effect))!r} does not apply to {self.simulator}: expected one of {known}"
                raise document.error(("faults", number, "effect", "kind"), text)
            for name in self.unknown:
                if getattr(fault.match, name):
                    text = f"does not apply to {self.simulator}: remove it"
                    raise document.error(("faults", number, "match", name), text)
        return faults


def _kind(effect: type) -> str:
    return str(effect.__struct_config__.tag)  # type: ignore[attr-defined]


# Of hypervisors whose API answers with tasks.
TASK_VOCABULARY = Vocabulary(
    "prism",
    (
        *REQUEST_EFFECTS,
        *TASK_EFFECTS,
        Outage,
        FullDisk,
        Crash,
        NoBoot,
        Isolation,
        AddressLate,
        AddressChange,
        AddressLoss,
    ),
    ("verb", "resource", "namespace"),
)


def parse_faults(
    text: str | bytes, source: str = "faults", vocabulary: Vocabulary = TASK_VOCABULARY
) -> tuple[Fault, ...]:
    return vocabulary.read(Document(text, source))


def load_faults(path: Path, vocabulary: Vocabulary = TASK_VOCABULARY) -> tuple[Fault, ...]:
    return vocabulary.read(read_document(path))
