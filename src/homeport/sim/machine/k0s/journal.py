"""What the service of k0s logs. On simulated machines it is shown on the console."""

from __future__ import annotations

from datetime import UTC, datetime

from homeport.sim.machine.vm import Machine


class Journal:
    """Lines as k0s writes them, with the name of its unit in front."""

    def __init__(self, machine: Machine, unit: str) -> None:
        self._machine = machine
        self._unit = unit

    def info(self, message: str, **fields: str) -> None:
        self._line("info", message, fields)

    def warn(self, message: str, **fields: str) -> None:
        self._line("warning", message, fields)

    def error(self, message: str, **fields: str) -> None:
        self._line("error", message, fields)

    def fatal(self, message: str) -> None:
        """The process ends."""
        self._machine.console.say(f"{self._unit}: Error: {message}")
        self.systemd("Main process exited, code=exited, status=1/FAILURE")
        self.systemd("Failed with result 'exit-code'.")

    def systemd(self, message: str) -> None:
        self._machine.console.say(f"systemd[1]: {self._unit}.service: {message}")

    def _line(self, level: str, message: str, fields: dict[str, str]) -> None:
        at = datetime.fromtimestamp(self._machine.clock.now(), UTC)
        more = "".join(f" {name}={value}" for name, value in fields.items())
        escaped = message.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        self._machine.console.say(f'{self._unit}: time="{at:%Y-%m-%d %H:%M:%S}" level={level} msg="{escaped}"{more}')
