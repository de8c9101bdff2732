"""Values for clusters that do not set them: of an environment, a team, the ButlerConfig, or built in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from homeport.api.butler.v1alpha1.part import ClusterDefaults
from homeport.api.butler.v1alpha1.tenantcluster import EffectiveValue
from homeport.platforms.butler.normal.outcome import Reading, is_given
from homeport.platforms.butler.normal.sizes import WORKER_CPU, WORKER_DISK, WORKER_MEMORY, from_gib

KUBERNETES_VERSION = "v1.34.2"
WORKERS = 1

OBJECT, ENVIRONMENT, TEAM, CONFIG, BUILT_IN = "object", "environment", "team", "ButlerConfig", "built-in"


@dataclass(frozen=True, slots=True)
class ClusterValues:
    """What one level has to say; '' and None: nothing."""

    version: str = ""
    workers: int | None = None
    cpu: int | None = None
    memory: str | int = ""
    disk: str | int = ""
    addons: tuple[str, ...] = ()


BUILT_IN_VALUES = ClusterValues(KUBERNETES_VERSION, WORKERS, WORKER_CPU, WORKER_MEMORY, WORKER_DISK)


def read_defaults(given: ClusterDefaults | None) -> ClusterValues:
    if given is None:
        return ClusterValues()
    return ClusterValues(
        given.kubernetes_version,
        given.worker_count,
        given.worker_cpu,
        from_gib(given.worker_memory_gi),
        from_gib(given.worker_disk_gi),
        tuple(given.default_addons),
    )


@dataclass(slots=True)
class Choices:
    """Takes each value from the first level that has it, and remembers which one that was."""

    reading: Reading
    levels: Sequence[tuple[str, ClusterValues]]  # the most specific one first
    effective: list[EffectiveValue] = field(default_factory=list)

    def choose(self, path: str, attribute: str, own: object = None) -> tuple[object, str]:
        """The value, and where to look if it is wrong: the field of the object, or the level that it comes from."""
        if is_given(own):
            self.note(path, own, OBJECT)
            return own, path
        for source, level in self.levels:
            value = getattr(level, attribute)
            if is_given(value):
                self.note(path, value, source)
                return value, f"{path} (default of the {source})"
        return None, path

    def names(self, path: str, attribute: str) -> tuple[tuple[str, ...], str]:
        """A list of names of the first level that has one, and the level."""
        for source, level in self.levels:
            found = tuple(getattr(level, attribute))
            if found:
                self.note(path, found, source)
                return found, source
        return (), ""

    def note(self, path: str, value: object, source: str) -> None:
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        self.effective.append(EffectiveValue(field=path, value=shown, source=source))

    def given_or(self, path: str, own: str, *others: tuple[str, str]) -> str:
        """A text: the object's own, or the first that is not empty of (source, text)."""
        for source, text in ((OBJECT, own), *others):
            if text:
                self.note(path, text, source)
                return text
        return ""
