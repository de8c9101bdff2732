"""Failed jobs of remote machines: when each one may be repeated."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace

from homeport.api.remote.v1beta2 import RemoteMachine
from homeport.providers.remote.script import Job
from homeport.runtime.clock import Clock
from homeport.runtime.outcome import Wait

_OF_CONTROLLERS = ("homeport.dev", "cluster.x-k8s.io", "k0smotron.io")  # domains of annotations


@dataclass(frozen=True, slots=True)
class _Failure:
    job: Job
    attempt: int
    written: Hashable
    due: float
    wait: Wait


class Failures:
    """The failed attempt of each machine that was reported last, by UID."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._held: dict[str, _Failure] = {}

    def rest(self, infra: RemoteMachine, job: Job, attempt: int, wait: Wait) -> Wait | None:
        """What is reported until the job may be repeated; None: it may.

        `wait`: with the pause after this attempt. Whatever wakes the controller before that does not end the pause,
        except a change of the object: who makes it wants to see the effect.
        """
        uid, written, now = infra.metadata.uid, _written(infra), self._clock.monotonic()
        held = self._held.get(uid)
        if held is None or (held.job, held.attempt) != (job, attempt):
            self._held[uid] = _Failure(job, attempt, written, now + (wait.after or 0.0), wait)
            return wait
        if held.written != written or now >= held.due:
            return None
        return replace(held.wait, after=held.due - now)

    def forget(self, uid: str) -> None:
        self._held.pop(uid, None)


def _written(infra: RemoteMachine) -> Hashable:
    """The spec, by its generation, and annotations that no controller writes."""
    notes = infra.metadata.annotations.items()
    own = sorted((key, value) for key, value in notes if not key.partition("/")[0].endswith(_OF_CONTROLLERS))
    return infra.metadata.generation, tuple(own)
