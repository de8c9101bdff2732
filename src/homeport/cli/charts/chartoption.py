"""Options of `homeport chart` that say where a chart comes from and with which values."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

if TYPE_CHECKING:
    from homeport.helm.source.source import FetchedChart

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
_HELPER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_PART = re.compile(r"(?<!\\)\.")

_SOURCE = (
    click.argument("chart"),
    click.option("--repo", metavar="URL", default="", help="Address of the HTTP repository that holds CHART."),
    click.option("--version", default="", help="Version or range, such as 1.18.x (default: the newest release)."),
    click.option("--digest", default="", help="Refuse an archive with another digest (sha256:...)."),
    click.option("--username", default="", help="User of the registry or repository."),
    click.option("--password-file", type=_FILE, help="File with the password of the user."),
    click.option("--registry-config", type=_FILE, help="Docker configuration (config.json) with credentials."),
    click.option("--ca-file", type=_FILE, help="CA certificates (PEM) to trust instead of the system's."),
    click.option("--plain-http", is_flag=True, help="Use HTTP without TLS (default: TLS, verified)."),
    click.option("--keyring", type=_FILE, help="Public OpenPGP keyring: refuse a chart that none of its keys signed."),
    click.option(
        "--mirror", "mirrors", multiple=True, metavar="PREFIX=TARGET",
        help="Fetch addresses that begin with PREFIX from TARGET, which may be a folder. Repeatable.",
    ),
)  # fmt: skip
_VALUES = (
    click.option(
        "-f", "--values", "files", multiple=True, type=_FILE, help="YAML file with values. Repeatable: later ones win."
    ),
    click.option(
        "--set", "settings", multiple=True, metavar="PATH=VALUE", help="One value, such as image.tag=v2. Repeatable."
    ),
)


@dataclass(frozen=True, slots=True)
class Source:
    """The options about the source of a chart, as given."""

    chart: str
    repo: str
    version: str
    digest: str
    username: str
    password_file: Path | None
    registry_config: Path | None
    ca_file: Path | None
    plain_http: bool
    keyring: Path | None
    mirrors: tuple[str, ...]

    async def fetch(self) -> FetchedChart:
        """What goes wrong becomes a message."""
        from homeport.client.wire.quick import import_aiohttp

        import_aiohttp()
        from homeport.helm.errors import HelmError
        from homeport.helm.source.provenance import parse_keyring
        from homeport.helm.source.source import ChartSource
        from homeport.helm.source.wire import Trust

        try:
            source = ChartSource(
                self._credentials(),
                Trust(self.ca_file.read_bytes() if self.ca_file else None, self.plain_http),
                _mirrors(self.mirrors),
                _cache(),
                parse_keyring(self.keyring.read_bytes()) if self.keyring else None,
            )
            return await source.fetch(self._location())
        except HelmError as error:
            raise click.ClickException(str(error)) from None

    def _location(self) -> Any:
        from homeport.helm.source.reference import ChartLocation

        pinned: dict[str, str] = {"version": self.version, "digest": self.digest}
        if self.repo:
            return ChartLocation(repository=self.repo, chart=self.chart, **pinned)
        if self.chart.startswith("oci://"):
            return ChartLocation(oci=self.chart, **pinned)
        return ChartLocation(path=self.chart, **pinned)

    def _credentials(self) -> Any:
        from homeport.helm.source.credential import NONE, Credential, Credentials, parse_docker

        if self.registry_config is not None:
            found = parse_docker(str(self.registry_config), self.registry_config.read_bytes())
            host = (self.repo or self.chart).split("://", 1)[-1].partition("/")[0]
            helper = "" if found.find(host) else found.helper(host)
            return Credentials({host: _ask_helper(helper, host)}) if helper else found
        if not self.username:
            return NONE
        if self.password_file is None:
            raise click.UsageError("--username needs --password-file")
        password = self.password_file.read_text().rstrip("\r\n")
        return Credentials({"": Credential(self.username, password)})


def _ask_helper(name: str, host: str) -> Any:
    """What the program that Docker keeps its passwords with knows of a host."""
    import json
    import subprocess

    from homeport.helm.source.credential import Credential

    program = f"docker-credential-{name}"
    if not _HELPER.fullmatch(name):
        raise click.ClickException(f"--registry-config: {program!r} is not a valid name of a credential helper")
    try:
        done = subprocess.run([program, "get"], input=host.encode(), capture_output=True, timeout=60, check=False)  # noqa: S603
        found = json.loads(done.stdout) if done.returncode == 0 else {}
    except FileNotFoundError:
        raise click.ClickException(
            f"--registry-config: the credentials for {host} are kept by {program}, which is not installed here: "
            "install it, or use --username and --password-file"
        ) from None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        found = {}
    if not found.get("Username") or not found.get("Secret"):
        raise click.ClickException(f"--registry-config: {program} has no credentials for {host}: log in first")
    if found["Username"] == "<token>":
        return Credential(identity_token=found["Secret"])
    return Credential(found["Username"], found["Secret"])


def sourced(fn: F) -> F:
    """Adds CHART and the options about its source; they come as `source`, a Source."""

    @functools.wraps(fn)
    def call(**given: Any) -> Any:
        names = Source.__dataclass_fields__
        return fn(source=Source(**{name: given.pop(name) for name in names}), **given)

    return cast(F, _decorated(call, _SOURCE))


def valued(fn: F) -> F:
    """Adds the options about values; they come as `values`."""

    @functools.wraps(fn)
    def call(files: tuple[Path, ...], settings: tuple[str, ...], **given: Any) -> Any:
        return fn(values=read_values(files, settings), **given)

    return cast(F, _decorated(call, _VALUES))


def _decorated(fn: Any, options: tuple[Any, ...]) -> Any:
    """As click decorates: the last option first."""
    for option in reversed(options):
        fn = option(fn)
    return fn


def read_values(files: tuple[Path, ...], settings: tuple[str, ...]) -> dict[str, Any]:
    """Files first, then single values; maps are merged, anything else is replaced."""
    from homeport.machinery import yaml
    from homeport.machinery.chart.load import overlaid

    values: dict[str, Any] = {}
    for path in files:
        try:
            found = yaml.load(path.read_bytes(), str(path))
        except yaml.YamlError as error:
            raise click.ClickException(str(error)) from None
        if found is not None and not isinstance(found, dict):
            raise click.ClickException(f"{path}: expected a map of values")
        values = overlaid(values, found or {})
    for setting in settings:
        path_text, equals, text = setting.partition("=")
        if not equals or not path_text:
            raise click.UsageError(f"--set {setting!r}: expected PATH=VALUE, for example image.tag=v2")
        values = overlaid(values, _nested(_PART.split(path_text), yaml.load(text)))
    return values


def _nested(parts: list[str], value: Any) -> dict[str, Any]:
    name = parts[0].replace("\\.", ".")
    return {name: _nested(parts[1:], value) if len(parts) > 1 else value}


def _mirrors(texts: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in texts:
        prefix, equals, target = text.partition("=")
        if not equals or not prefix or not target:
            raise click.UsageError(f"--mirror {text!r}: expected PREFIX=TARGET")
        found[prefix] = target
    return found


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "homeport" / "charts"
