"""Which project's program a container runs, by its image: registries, mirrors, tags and digests don't count."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.view import View, finished, leaving, ready


def repository(image: str) -> str:
    """`mirror:5000/quay.io/metallb/controller:v0.14@sha256:...` > `mirror:5000/quay.io/metallb/controller`"""
    bare = image.partition("@")[0]
    folder, _, name = bare.rpartition("/")
    name = name.partition(":")[0]
    return f"{folder}/{name}" if folder else name


@lru_cache(maxsize=4096)  # asked of every container in every pass
def is_image(image: str, *names: str) -> bool:
    """Whether the image is one of these, with or without a registry and folders before its name."""
    found = repository(image)
    return any(found == name or found.endswith(f"/{name}") for name in names)


def runs(pod: Json, *names: str) -> bool:
    return container_of(pod, *names) is not None


def container_of(pod: Json, *names: str) -> Json | None:
    return next((each for each in pod["spec"]["containers"] if is_image(str(each.get("image") or ""), *names)), None)


def working(view: View, *names: str) -> list[Json]:
    """Pods that run the program now: ready, on a node that is alive."""
    return [pod for pod in view.pods if works(view, pod) and runs(pod, *names)]


def works(view: View, pod: Json) -> bool:
    node = pod["spec"].get("nodeName")
    return bool(node) and ready(pod) and not leaving(pod) and not finished(pod) and view.alive(node)


def arguments(container: Json) -> Iterator[str]:
    yield from map(str, container.get("command") or ())
    yield from map(str, container.get("args") or ())


def flag(container: Json, name: str, default: str = "") -> str:
    """The value of `--name=value` or `--name value`."""
    words = list(arguments(container))
    for place, word in enumerate(words):
        if word.startswith(f"--{name}="):
            return word.partition("=")[2]
        if word == f"--{name}" and place + 1 < len(words):
            return words[place + 1]
    return default
