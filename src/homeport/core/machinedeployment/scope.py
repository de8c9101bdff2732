"""A MachineDeployment in work."""

from __future__ import annotations

from homeport.api.cluster.v1beta2 import Cluster, Machine, MachineDeployment, MachineSet
from homeport.capi.name import DESIRED_REPLICAS, MAX_REPLICAS, PAUSED
from homeport.core.machinedeployment.plan import Observed, SetView, Strategy
from homeport.core.machinedeployment.revision import history_limit, revision_of
from homeport.core.machinedeployment.status import Seen, report
from homeport.core.machineset.replica import is_available
from homeport.core.machineset.share import share_of
from homeport.core.scope import ComputedScope
from homeport.runtime.outcome import Wait

DEFAULT_SURGE = 1
DEFAULT_UNAVAILABLE = 0


class DeploymentScope(ComputedScope[MachineDeployment]):
    def __init__(self, deployment: MachineDeployment, cluster: Cluster | None) -> None:
        super().__init__(deployment)
        self.cluster = cluster
        self.seen = Seen()
        self.sets: dict[str, MachineSet] = {}
        self.machines: dict[str, list[Machine]] = {}  # by set
        self.surge = DEFAULT_SURGE
        try:
            self.surge, self.seen.unavailable = limits(deployment)
        except ValueError as error:  # where no admission has looked at it
            self.seen.trouble = f"spec.rollout.strategy.rollingUpdate: {error}"

    def note_trouble(self, reason: str, message: str) -> None:
        self.seen.trouble = message

    def compute(self, now: float) -> Wait | None:
        return report(self.object, self.seen, now)

    def observed(self, current: MachineSet | None) -> Observed:
        """What the planner goes by."""
        spec = self.object.spec
        strategy: Strategy = "OnDelete" if spec.rollout.strategy.type == "OnDelete" else "RollingUpdate"
        return Observed(
            replicas=spec.replicas or 0,
            sets=[view(each, self.machines[name]) for name, each in self.sets.items()],
            current=current.metadata.name if current is not None else "",
            strategy=strategy,
            surge=self.surge,
            unavailable=self.seen.unavailable,
            paused=bool(spec.paused),
            history=history_limit(self.object),
        )


def limits(deployment: MachineDeployment) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers. Both may be percentages that come to nothing: then one may be missing,
    or there would be no way to roll out."""
    strategy = deployment.spec.rollout.strategy
    if strategy.type == "OnDelete":
        return 0, 0
    given = strategy.rolling_update
    replicas = deployment.spec.replicas or 0
    surge = share_of(DEFAULT_SURGE if given.max_surge is None else given.max_surge, replicas, up=True)
    unavailable = share_of(
        DEFAULT_UNAVAILABLE if given.max_unavailable is None else given.max_unavailable, replicas, up=False
    )
    return surge, min(unavailable, replicas) if surge or unavailable else 1


def view(machine_set: MachineSet, machines: list[Machine]) -> SetView:
    meta, status = machine_set.metadata, machine_set.status
    # One that is paused makes nothing: what is seen of it is all there is.
    acknowledged = status.observed_generation >= meta.generation or PAUSED in meta.annotations
    return SetView(
        name=meta.name,
        created=meta.creation_timestamp or "",
        revision=revision_of(machine_set),
        replicas=machine_set.spec.replicas or 0,
        # Its controller may have seen more Machines than we, or made them just now.
        machines=max(len(machines), status.replicas or 0),
        alive=sum(not m.metadata.deletion_timestamp for m in machines),
        available=sum(is_available(m) for m in machines),
        acknowledged=acknowledged,
        deleting=bool(meta.deletion_timestamp),
        desired=_number(meta.annotations.get(DESIRED_REPLICAS)),
        maximum=_number(meta.annotations.get(MAX_REPLICAS)),
    )


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None
