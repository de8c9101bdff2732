"""Shell commands that bring k0s on a machine and start it. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from homeport.api.k0s.v1beta2 import HostSpec
from homeport.capi.k0s.argument import Arguments

SUCCESS = "mkdir -p /run/cluster-api && touch /run/cluster-api/bootstrap-success.complete"
_FETCH = "curl -sSfL --retry 5"
_SCRIPT = "https://get.k0s.sh"
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
_ENVIRONMENT = re.compile(r"(?:--env|-e)(?:[= ](?P<value>.*))?", re.DOTALL)


def binary(spec: HostSpec) -> str:
    return f"{spec.k0s_install_dir.rstrip('/')}/k0s"


def download_commands(spec: HostSpec, version: str, given: Arguments) -> list[str]:
    """What the service reaches through a proxy, the download reaches through the same one."""
    if spec.pre_installed_k0s:
        return []
    path, folder = binary(spec), spec.k0s_install_dir.rstrip("/")
    proxies = "".join(f"{name}={shlex.quote(value)} " for name, value in proxy_variables(given.rest))
    if spec.download_url.startswith("oci://"):
        reference = shlex.quote(spec.download_url.removeprefix("oci://"))
        # A digest is that of the binary itself; an artifact has a file k0s.
        fetch = f"blob fetch --output {path}" if "@sha256:" in reference else f"pull --output {folder}"
        return [f"mkdir -p {folder}", f"{proxies}oras {fetch} {reference}", f"chmod +x {path}"]
    if spec.download_url:
        fetch = f"{proxies}{_FETCH} {shlex.quote(spec.download_url)} -o {path}"
        return [f"mkdir -p {folder}", fetch, f"chmod +x {path}"]
    variables = f"{proxies}K0S_INSTALL_PATH={folder}"
    if version:
        variables += f" K0S_VERSION={version}"
    return [f"{proxies}{_FETCH} {_SCRIPT} | {variables} sh"]


def install_command(spec: HostSpec, role: str, flags: Sequence[str]) -> str:
    return " ".join([binary(spec), "install", role, *flags])


def start_command(role: str) -> str:
    """By whatever starts services on the machine."""
    service = f"k0s{role}"
    return (
        f"(command -v systemctl > /dev/null 2>&1 && systemctl start {service}) || "
        f"(command -v rc-service > /dev/null 2>&1 && rc-service {service} start) || "
        f"(command -v service > /dev/null 2>&1 && service {service} start) || "
        '(echo "this machine has none of systemd, OpenRC and SysV init"; false)'
    )


def proxy_variables(args: Sequence[str]) -> list[tuple[str, str]]:
    """Those among the variables of the service: `--env HTTPS_PROXY=http://proxy:3128`."""
    found = []
    words = iter(args)
    for word in words:
        match = _ENVIRONMENT.fullmatch(word.strip())
        if match is None:
            continue
        text = match["value"] if match["value"] is not None else next(words, "")
        for pair in text.strip("\"'").split(","):
            name, separator, value = pair.partition("=")
            if separator and name in _PROXIES:
                found.append((name, value))
    return found
