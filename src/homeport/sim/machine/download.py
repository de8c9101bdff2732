"""What a machine reaches beyond its own network, and what it downloads from there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit

from homeport.machinery.address import is_address
from homeport.sim.machine.k0s import release
from homeport.sim.machine.shell.program import TOOLS
from homeport.sim.machine.shell.shell import Invocation, Program, Ran
from homeport.sim.machine.vm import Machine
from homeport.sim.network.address import normal

INSTALLER = "get.k0s.sh"
_PROXY, _RESOLVE, _NOT_FOUND, _CONNECT = 5, 6, 22, 28  # exit codes of curl
_RELEASES = "/k0sproject/k0s/releases/download/"
_OPTION = re.compile(r"-[A-Za-z]*o")


class DownloadError(Exception):
    """`code` is what curl ends with; the text is what follows its `curl: (CODE) `."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def check_reach(machine: Machine, url: str, env: Mapping[str, str] = {}) -> None:
    """Whether the host of a URL can be reached at all, perhaps through the proxy of `env`. Raises DownloadError."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    proxy = next((env[name] for name in _proxies(parts.scheme) if env.get(name)), "")
    if proxy and not is_inside(machine, normal(parts.hostname or "")):
        _check_proxy(machine, proxy)
        return
    host = normal(parts.hostname or "")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not is_address(host) and "dns" in machine.lacks:
        raise DownloadError(_RESOLVE, f"Could not resolve host: {host}")
    if "internet" in machine.lacks and not is_inside(machine, host):
        raise DownloadError(_CONNECT, f"Failed to connect to {host} port {port} after 130000 ms: Connection timed out")


def _proxies(scheme: str) -> tuple[str, ...]:
    return ("https_proxy", "HTTPS_PROXY", "all_proxy") if scheme == "https" else ("http_proxy", "all_proxy")


def _check_proxy(machine: Machine, proxy: str) -> None:
    """Names beyond it are the proxy's own matter."""
    parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    host, port = normal(parts.hostname or ""), parts.port or 1080
    if not is_address(host) and "dns" in machine.lacks:
        raise DownloadError(_PROXY, f"Could not resolve proxy: {host}")
    if "internet" in machine.lacks and not is_inside(machine, host):
        raise DownloadError(_CONNECT, f"Failed to connect to {host} port {port} after 130000 ms: Connection timed out")


def is_inside(machine: Machine, host: str) -> bool:
    """Private addresses, and names of the simulated network: they are reached without the internet."""
    if is_address(host):
        return ip_address(host).is_private
    try:
        return all(ip_address(each).is_private for each in machine.network.resolve(host))
    except OSError:
        return False


def fetch_k0s(machine: Machine, url: str, env: Mapping[str, str] = {}) -> bytes:
    """The binary at a URL: of the version that the URL names, or of the stable one. Raises DownloadError."""
    check_reach(machine, url, env)
    version = release.version_in(url)
    parts = urlsplit(url)
    if (parts.hostname or "").lower() == "github.com" and parts.path.startswith(_RELEASES):
        asked = parts.path.removeprefix(_RELEASES).partition("/")[0].replace("%2B", "+").replace("%2b", "+")
        if not release.exists(asked) or version != asked:
            raise DownloadError(_NOT_FOUND, "The requested URL returned error: 404")
    return release.binary(version or release.STABLE)


def downloads(machine: Machine) -> dict[str, Program]:
    """curl, wget and the installer of k0s."""
    fetching = _Downloads(machine)
    return {"curl": fetching.curl, "wget": fetching.curl, "oras": fetching.oras, "k0s-get": fetching.installer}


class _Downloads:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    async def curl(self, call: Invocation) -> Ran:
        url = next((each for each in call.args[1:] if "://" in each or each.startswith(INSTALLER)), "")
        try:
            if url:
                check_reach(self._machine, url, call.env)
            if (urlsplit(url if "://" in url else f"//{url}").hostname or "") == INSTALLER:
                return Ran(0, "k0s-get\n")
            target = _output(call.args[1:])
            if target.rpartition("/")[2] == "k0s":
                self._machine.disk.rewrite(target, fetch_k0s(self._machine, url, call.env))
                return Ran()
        except DownloadError as failed:
            return call.fail(f"{call.args[0]}: ({failed.code}) {failed}", failed.code)
        return await TOOLS["curl"](call)

    async def installer(self, call: Invocation) -> Ran:
        """What the script of get.k0s.sh does."""
        version = call.env.get("K0S_VERSION") or release.STABLE
        folder = call.env.get("K0S_INSTALL_PATH") or "/usr/local/bin"
        url = release.download_url(version)
        call.shell.console.say(f"Downloading k0s from URL: {url}")
        try:
            self._machine.disk.write(f"{folder}/k0s", fetch_k0s(self._machine, url, call.env), mode=0o755)
        except DownloadError as failed:
            return call.fail(f"curl: ({failed.code}) {failed}", failed.code)
        return Ran(0, f"k0s is now executable in {folder}\n")

    async def oras(self, call: Invocation) -> Ran:
        """`oras pull` and `oras blob fetch` of an artifact with k0s; only some images have the program."""
        if "oras" not in self._machine.programs:
            return call.fail(f"sh: 1: {call.args[0]}: not found", 127)
        target, reference = _output(call.args[1:]), call.args[-1]
        try:
            content = fetch_k0s(self._machine, f"https://{reference}", call.env)
        except DownloadError as failed:
            return call.fail(f"Error: failed to fetch {reference}: {failed}")
        self._machine.disk.write(f"{target}/k0s" if call.args[1:2] == ["pull"] else target, content)
        return Ran()


def _output(args: list[str]) -> str:
    for at, word in enumerate(args):
        if word.startswith(("--output=", "--output-document=")):
            return word.partition("=")[2]
        if word in ("--output", "--output-document", "-O") or _OPTION.fullmatch(word):
            return args[at + 1] if at + 1 < len(args) and not args[at + 1].startswith(("-", "http")) else ""
    return ""
