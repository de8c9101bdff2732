"""Serial consoles of VMs. KubeVirt also keeps each as the log of a container in the Pod that runs the VM."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

from homeport.apiserver.kinds.pod.log import LogBuffer, LogLine, LogSources
from homeport.sim.harvester.controller.launcher import CONSOLE_LOG, is_launcher
from homeport.sim.harvester.core import Core
from homeport.sim.harvester.kind import POD, VMI, Json

_LINES_KEPT = 500


class Consoles:
    """`machine_of`: the machine of an instance."""

    def __init__(self, core: Core, sources: LogSources, machine_of: Callable[[Json], str]) -> None:
        self._core = core
        self._sources = sources
        self._machine_of = machine_of
        self._logs: dict[str, LogBuffer] = {}
        self._removals: dict[str, Callable[[], None]] = {}

    def start(self) -> None:
        """Once the mirror has Pods."""
        self._core.mirror.on(POD, self._follow)

    def write(self, machine: str, line: str) -> None:
        self.log(machine).write(line)

    def log(self, machine: str) -> LogBuffer:
        return self._logs.setdefault(machine, LogBuffer(_LINES_KEPT, self._core.clock.now))

    def read(self, chosen: Callable[[str], bool]) -> list[str]:
        """The lines of all machines that are chosen."""
        return [line.text for machine, log in self._logs.items() if chosen(machine) for line in log.lines()]

    def _follow(self, key: str, new: Json | None, old: Json | None) -> None:
        if new is None:
            self._removals.pop(key, lambda: None)()
        elif key not in self._removals and is_launcher(new):
            namespace, _, name = key.partition("/")
            source = _ConsoleLog(partial(self._of_pod, f"{namespace}/{new['metadata']['ownerReferences'][0]['name']}"))
            self._removals[key] = self._sources.register(namespace, name, CONSOLE_LOG, source)

    def _of_pod(self, instance: str) -> LogBuffer:
        vmi = self._core.mirror.get(VMI, instance)
        return LogBuffer() if vmi is None else self.log(self._machine_of(vmi))


class _ConsoleLog:
    """A Pod may exist before its instance has a machine: it is looked for when the log is read."""

    def __init__(self, find: Callable[[], LogBuffer]) -> None:
        self._find = find

    def lines(self) -> Sequence[LogLine]:
        return self._find().lines()

    def follow(self) -> AsyncIterator[LogLine]:
        return self._find().follow()
