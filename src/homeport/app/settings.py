"""Where an instance keeps its things and where it listens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from homeport.client.reach import DIRECT, Reach

DEFAULT_DATA = Path("~/.homeport")
DEFAULT_LISTEN = "127.0.0.1:6443"


class SettingsError(ValueError):
    """A setting that cannot work; the text names it and the cure."""


SIMULATORS = ("prism",)


@dataclass(frozen=True, slots=True)
class Simulators:
    """Which simulators run beside the plane, and how."""

    names: tuple[str, ...] = SIMULATORS
    speed: str = "instant"
    world: Path | None = None
    faults: Path | None = None
    listen: tuple[str, int] | None = None  # None: the usual port, or a free one if that is taken
    reset: bool = False

    @classmethod
    def named(cls, text: str) -> tuple[str, ...]:
        """`all`, or names with commas between them."""
        names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
        if names == ("all",):
            return SIMULATORS
        for name in names:
            if name not in SIMULATORS:
                known = ", ".join(SIMULATORS)
                raise SettingsError(f"--sim {text!r}: there is no simulator {name!r}; there are: {known}")
        return names


@dataclass(frozen=True, slots=True)
class Settings:
    data: Path
    host: str = "127.0.0.1"
    port: int = 6443
    audit: bool = False
    workloads: bool = True
    simulators: Simulators | None = None
    reach: Reach = DIRECT  # without simulators: how addresses of manifests are dialled
    ccm_image: str = ""  # '': the one of this release

    @classmethod
    def make(
        cls,
        data: Path | str = DEFAULT_DATA,
        listen: str = DEFAULT_LISTEN,
        *,
        audit: bool = False,
        workloads: bool = True,
        simulators: Simulators | None = None,
        reach: Reach = DIRECT,
        ccm_image: str = "",
    ) -> Settings:
        host, port = parse_listen(listen)
        return cls(Path(data).expanduser().absolute(), host, port, audit, workloads, simulators, reach, ccm_image)

    @property
    def database(self) -> Path:
        return self.data / "state.db"

    @property
    def pki(self) -> Path:
        return self.data / "pki"

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubeconfig"

    @property
    def log(self) -> Path:
        return self.data / "homeport.log"

    @property
    def simulated(self) -> Path:
        """Where simulators keep what they simulate."""
        return self.data / "sim"

    @property
    def simulated_before(self) -> bool:
        """Whether simulators ran on this data directory: its objects may name what is simulated."""
        return simulated_before(self.simulated)

    @property
    def audit_log(self) -> Path:
        return self.data / "audit.log"


def simulated_before(folder: Path) -> bool:
    """Whether simulators ran in the folder `sim` of a data directory."""
    return (folder / "prism" / "world.json").exists()


def parse_listen(text: str, *, option: str = "--listen") -> tuple[str, int]:
    """`HOST:PORT`, `[::1]:PORT`, `:PORT` (loopback) or `HOST` (port 6443)."""
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, port = text, "6443"
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if ":" in host and not text.startswith("["):
        raise SettingsError(f"{option} {text!r}: write an IPv6 address in brackets, such as [::1]:6443")
    if not port.isdigit() or int(port) > 65535:
        raise SettingsError(f"{option} {text!r}: the port must be a number from 0 to 65535, such as 127.0.0.1:6443")
    return host, int(port)
