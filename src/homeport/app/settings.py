"""Where an instance keeps its things and where it listens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from homeport.app import simulators
from homeport.builtin.workload.address import Pool
from homeport.capi.chartsettings import OWN_ADDRESSES, ChartSettings
from homeport.client.dial import DIRECT, DialOptions
from homeport.sim.state import Options

DEFAULT_DATA = Path("~/.homeport")
DEFAULT_LISTEN = "127.0.0.1:6443"
MOST_WORKERS = 64


class SettingsError(ValueError):
    """A setting that cannot work; the text names it and the cure."""


@dataclass(frozen=True, slots=True)
class Simulators:
    """Which simulators run beside the plane, and how. Options by simulator; one without gets the defaults."""

    names: tuple[str, ...] = simulators.NAMES
    speed: str = "instant"
    world: Mapping[str, Path] = field(default_factory=dict)
    faults: Mapping[str, Path] = field(default_factory=dict)
    listen: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    reset: bool = False

    def options(self, name: str) -> Options:
        return Options(self.speed, self.world.get(name), self.faults.get(name), self.listen.get(name), self.reset)


def parse_names(text: str) -> tuple[str, ...]:
    """`all`, or names separated by commas. Raises SettingsError."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",")))
    if names == ("all",):
        return simulators.NAMES
    for name in names:
        if name not in simulators.NAMES and not simulators.is_plugin(name):
            known = ", ".join(simulators.NAMES)
            forms = f"all, or some of {known}, or MODULE:NAME of a plugin"
            raise SettingsError(f"--sim {text!r}: unknown simulator {name!r}: expected {forms}")
    return names


def parse_by_name(option: str, values: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """`NAME=VALUE` for each simulator, or one plain VALUE if only one runs. Raises SettingsError."""
    found: dict[str, str] = {}
    for value in values:
        name, equals, rest = value.partition("=")
        if not equals or name not in (*simulators.NAMES, *names):
            if len(names) != 1:
                forms = " or ".join(f"{each}={rest or value}" for each in names)
                why = f"unknown simulator {name!r}" if equals else "several simulators run"
                raise SettingsError(f"{option} {value}: {why}: expected {forms}")
            name, rest = names[0], value
        if name not in names:
            raise SettingsError(f"{option} {value}: simulator {name!r} is not started: add it to --sim")
        if name in found:
            raise SettingsError(f"{option} {value}: given twice for simulator {name!r}")
        found[name] = rest
    return found


@dataclass(frozen=True, slots=True)
class Settings:
    data: Path
    host: str = "127.0.0.1"
    port: int = 6443
    audit: bool = False
    workloads: bool = True
    simulators: Simulators | None = None
    dial: DialOptions = DIRECT  # without simulators: how addresses of manifests are dialled
    ccm_image: str = ""  # '': the one of this release
    service_pool: str = ""  # ranges that Services of type LoadBalancer get addresses from
    charts: ChartSettings = OWN_ADDRESSES
    hosted_binaries: Path | None = None  # programs of hosted control planes
    workers: int = 1  # processes that run the controllers; 1: the plane itself
    dashboard: bool = True

    @classmethod
    def make(
        cls,
        data: Path | str = DEFAULT_DATA,
        listen: str = DEFAULT_LISTEN,
        *,
        audit: bool = False,
        workloads: bool = True,
        simulators: Simulators | None = None,
        dial: DialOptions = DIRECT,
        ccm_image: str = "",
        service_pool: str = "",
        charts: Path | None = None,
        chart_mirror: str = "",
        hosted_binaries: Path | None = None,
        workers: int = 1,
        dashboard: bool = True,
    ) -> Settings:
        host, port = parse_listen(listen)
        if not 1 <= workers <= MOST_WORKERS:
            raise SettingsError(f"--workers {workers}: must be from 1 to {MOST_WORKERS}")
        _check_pool(service_pool)
        folder = Path(data).expanduser().absolute()
        found = replace(read_charts(charts, chart_mirror), simulated=simulators is not None, cache=folder / "charts")
        binaries = hosted_binaries.expanduser().absolute() if hosted_binaries is not None else None
        made = cls(folder, host, port, audit, workloads, simulators, dial, ccm_image, service_pool, found, binaries)
        return replace(made, workers=workers, dashboard=dashboard)

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
    def images(self) -> Path:
        """Files that may be uploaded to providers."""
        return self.data / "images"

    @property
    def simulated_before(self) -> bool:
        """Whether simulators ran on this data directory: its objects may name what is simulated."""
        return simulated_before(self.simulated)

    @property
    def volumes(self) -> Path:
        """Data of Pods that run as processes."""
        return self.processes / "claims"

    @property
    def processes(self) -> Path:
        """Where Pods that run as processes keep their files and data."""
        return self.data / "workload"

    @property
    def changes(self) -> Path:
        """The newest writes of users, for timelines."""
        return self.data / "changes.log"

    @property
    def audit_log(self) -> Path:
        return self.data / "audit.log"


def simulated_before(folder: Path) -> bool:
    """Whether simulators ran in the folder `sim` of a data directory: each keeps its world there."""
    return bool(simulated_sites(folder))


def simulated_sites(folder: Path) -> list[str]:
    """The names of the simulators that ran in that folder."""
    return sorted({world.parent.name for world in folder.glob("*/world.*")})


def read_charts(folder: Path | None, mirror: str) -> ChartSettings:
    """Raises SettingsError."""
    if folder is not None and mirror:
        raise SettingsError("--charts and --chart-mirror exclude each other: charts come from one place")
    if folder is not None:
        folder = folder.expanduser().absolute()
        if not folder.is_dir():
            raise SettingsError(f"--charts {folder}: the folder does not exist: create it and copy the charts into it")
    if mirror and not mirror.startswith(("oci://", "https://")):
        raise SettingsError(f"--chart-mirror {mirror!r}: expected for example oci://registry.example.com/charts")
    return ChartSettings(folder, mirror.rstrip("/"))


def _check_pool(text: str) -> None:
    try:
        if text:
            Pool(text)
    except ValueError as error:
        raise SettingsError(
            f"--service-pool {text!r}: {error}: expected for example 10.0.0.10-10.0.0.50 or 10.0.0.0/28"
        ) from error


def parse_listen(text: str, *, option: str = "--listen") -> tuple[str, int]:
    """`HOST:PORT`, `[::1]:PORT`, `:PORT` (loopback) or `HOST` (port 6443)."""
    host, colon, port = text.rpartition(":")
    if not colon or (text.startswith("[") and text.endswith("]")):
        host, port = text, "6443"
    host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if ":" in host and not text.startswith("["):
        raise SettingsError(f"{option} {text!r}: an IPv6 address needs brackets, for example [::1]:6443")
    if text.startswith("[") != ("]" in text):
        raise SettingsError(f"{option} {text!r}: a bracket is missing, expected for example [::1]:6443")
    if not port.isdigit() or int(port) > 65535:
        raise SettingsError(f"{option} {text!r}: the port must be a number from 0 to 65535, for example 127.0.0.1:6443")
    return host, int(port)
