"""What a container may ask for that runs as a process of this machine: nothing that reaches beyond its own volumes.

Whoever may create Pods in one namespace is not therefore allowed to read the files of the plane, or to run programs as
the plane's user. There is no sandbox: what can't be told to be harmless is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from homeport.machinery import yaml
from homeport.runtime.workload.runner import Launch, RunError

# An absolute path at the beginning of a word or of a value within it; the path of a URL is none, that of a socket is.
_PATH = re.compile(r"(?:^|[=,;\s\"']|unix:(?://)?|file://)(/[^,;\s\"']*)")
# Flags whose values look like paths and are none.
_NO_FILES = ("--etcd-prefix", "--etcd-servers-overrides", "--authorization-always-allow-paths")
_RUNS_PROGRAMS = ("exec", "auth-provider")
_FILES = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


def check_launch(launch: Launch, programs: Sequence[str]) -> None:
    """Raises RunError, which names the container and what is not allowed."""
    for why in _objections(launch, programs):
        raise RunError(f"container {launch.container.get('name')!r} can't run as a process of this machine: {why}")


def check_program(command: Sequence[str], programs: Sequence[str]) -> str:
    """Why a command is not allowed; '' if it is one of the programs."""
    program = command[0].rpartition("/")[2] if command else ""
    return "" if program in programs else f"{program!r} is not one of {', '.join(programs)}"


def _objections(launch: Launch, programs: Sequence[str]) -> Iterator[str]:
    if why := check_program(launch.command, programs):
        yield why
    folders = [mount.path.rstrip("/") for mount in launch.mounts]
    for mount in launch.mounts:
        if mount.kind == "host":
            yield f"volume {mount.name!r} is a folder of this machine"
        for name, content in mount.files.items():
            if why := _kubeconfig_objection(content):
                yield f"{name} of volume {mount.name!r} {why}"
    arguments = [word for word in launch.command[1:] if word.partition("=")[0] not in _NO_FILES]
    words = [*arguments, *launch.env.values(), str(launch.container.get("workingDir") or "")]
    for word in words:
        for path in _PATH.findall(word):
            if ".." in path.split("/") or not any(path == each or path.startswith(f"{each}/") for each in folders):
                yield f"{path!r} is not in one of its volumes"
        if "../" in word:
            yield f"{word!r} leaves its folder"


def _kubeconfig_objection(content: bytes) -> str:
    """A kubeconfig can have programs run and files read, by whoever uses it."""
    if not any(each.encode() in content for each in (*_RUNS_PROGRAMS, *_FILES)):
        return ""
    try:
        config: Any = yaml.load(content.decode())
    except (UnicodeDecodeError, yaml.YamlError):
        return ""
    if not isinstance(config, dict) or not isinstance(config.get("users", []), list):
        return ""
    users = [each.get("user") for each in config.get("users") or () if isinstance(each, dict)]
    clusters = [each.get("cluster") for each in config.get("clusters") or () if isinstance(each, dict)]
    for part in (*users, *clusters):
        if isinstance(part, dict) and (found := [name for name in (*_RUNS_PROGRAMS, *_FILES) if name in part]):
            return f"is a kubeconfig with {found[0]}: embed certificates and tokens"
    return ""
