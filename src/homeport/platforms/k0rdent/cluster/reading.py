"""Values of a template while they are read, and what is wrong with them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from homeport.machinery.quantity import compare
from homeport.platforms.k0rdent.values import Fault

Json = dict[str, Any]

ROOT = "spec.config"
FLOORS = {"memorySize": "2Gi", "systemDiskSize": "20Gi"}


@dataclass(slots=True)
class Reading:
    values: Json
    faults: list[Fault] = field(default_factory=list)

    def at(self, path: str, default: Any = None) -> Any:
        found: Any = self.values
        for step in path.split("."):
            if not isinstance(found, dict) or found.get(step) is None:
                return default
            found = found[step]
        return found

    def fault(self, path: str, message: str) -> None:
        self.faults.append(Fault(f"{ROOT}.{path}", message))

    def chosen(self, role: str, name: str, default: Any = None) -> tuple[str, Any]:
        """The role's own value, or that of all machines; with the path that it was written at."""
        for place in (role, "machineDefaults"):
            found = self.at(f"{place}.{name}")
            if found is not None and found not in ({}, ""):
                return f"{place}.{name}", found
        return f"machineDefaults.{name}", default

    def size(self, role: str, name: str, default: str) -> str:
        """Memory or disk."""
        path, value = self.chosen(role, name, default)
        try:
            if compare(value, FLOORS[name]) < 0:
                self.fault(path, f"{value} is below the minimum of {FLOORS[name]}")
        except ValueError:
            self.fault(path, f"{value!r} is not a valid quantity: expected for example {FLOORS[name]}")
        return str(value)
