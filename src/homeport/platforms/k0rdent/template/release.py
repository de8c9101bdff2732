"""Charts of templates as Helm releases of the plane: what would change, installation, upgrade and removal.

A release belongs to us if its record has our label: one that somebody installed under the same name is left alone.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.api.k0rdent.v1beta1 import GROUP
from homeport.client.errors import NotFound
from homeport.client.protocol import Client, Key
from homeport.helm.errors import HelmError
from homeport.helm.release import record
from homeport.helm.release.content import identify, parse_manifest
from homeport.helm.release.desired import Desired, Revision, matches
from homeport.helm.release.operation import Outcome
from homeport.helm.release.record import Release
from homeport.helm.release.releases import Releases
from homeport.helm.release.render import render_chart
from homeport.helm.release.target import Target
from homeport.machinery.chart import Manifest
from homeport.platforms.k0rdent.deployment.render import diff
from homeport.platforms.k0rdent.name import MANAGED
from homeport.runtime.clock import Clock

Json = dict[str, Any]

OWNER_LABEL = f"{GROUP}/template-release"
_RETRY_SECONDS = 60.0  # until a release that failed is tried again
_REPAIR_SECONDS = 60.0
_MOST_CHARACTERS = 64_000  # of a diff, in a status
_MASK = "(not shown)"


@dataclass(frozen=True, slots=True)
class Subject:
    """A release and whose it is. `owner`: a value for a label."""

    namespace: str
    name: str
    owner: str


def release_of(subject: Subject, files: Mapping[str, bytes], values: Mapping[str, Any]) -> Desired:
    return Desired(
        subject.name,
        subject.namespace,
        files,
        dict(values),
        labels={**MANAGED, OWNER_LABEL: subject.owner},
        objection=lambda history: _objection(subject, history),
    )


def _objection(subject: Subject, history: Sequence[Release]) -> str:
    if not history or history[-1].status == record.UNINSTALLED or _is_ours(subject, history):
        return ""
    return (
        f"Helm release {subject.namespace}/{subject.name} exists and was not made for this object: uninstall it, or "
        "choose another name"
    )


def _is_ours(subject: Subject, history: Sequence[Release]) -> bool:
    return any(each.labels.get(OWNER_LABEL) == subject.owner for each in history)


class TemplateReleases:
    """`client` is handed to each call: it marks objects for one owner."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._repaired: dict[Key, float] = {}

    def forget(self, key: Key) -> None:
        self._repaired.pop(key, None)

    async def history(self, client: Client, subject: Subject) -> list[Release]:
        return await Releases(client, self._clock).history(subject.namespace, subject.name)

    async def render(self, client: Client, desired: Desired, history: Sequence[Release]) -> list[Json]:
        """Objects of the chart as they would be applied now, each with its namespace. Raises HelmError."""
        seed = next((each.memory["seed"] for each in reversed(history) if each.memory.get("seed")), "")
        number = history[-1].version + 1 if history else 1
        revision = Revision(number, not history, self._clock.now(), base64.b64decode(seed))
        rendered = await render_chart(client, desired, revision)
        return await _placed(client, desired.namespace, rendered.manifests)

    def is_current(self, desired: Desired, history: Sequence[Release]) -> bool:
        return bool(history) and history[-1].status == record.DEPLOYED and matches(history[-1], desired)

    async def ensure(self, client: Client, desired: Desired) -> Outcome:
        """Raises HelmError and ApiError."""
        releases = Releases(client, self._clock)
        outcome = await releases.ensure(desired)
        release = outcome.release
        if outcome.failed and release is not None and release.began() + _RETRY_SECONDS <= self._clock.now():
            outcome = await releases.upgrade(desired)
        key = Key(desired.namespace, desired.name)
        if outcome.wait is None and not outcome.failed and release is not None:
            last, now = self._repaired.get(key), self._clock.now()
            if last is not None and now - last >= _REPAIR_SECONDS:
                await releases.repair(release)
            if last is None or now - last >= _REPAIR_SECONDS:
                self._repaired[key] = now
        return outcome

    async def uninstall(self, client: Client, subject: Subject) -> Outcome:
        """Nothing if there is no release, or it is somebody else's. Raises HelmError and ApiError."""
        history = await self.history(client, subject)
        if not history or not _is_ours(subject, history):
            return Outcome(None)
        return await Releases(client, self._clock).uninstall(subject.namespace, subject.name)

    async def diff(self, client: Client, desired: Desired, objects: Iterable[Json], history: Sequence[Release]) -> str:
        """What the objects would become, as `diff -u` shows it. Values of Secrets are not shown."""
        target = Target(client, desired.namespace)
        parts, new = [], set()
        for each in objects:
            new.add(identify(each, desired.namespace))
            live = await target.get(each)
            text = diff(None if live is None else _masked({**live, **_typed(each)}), _masked(each))
            if text:
                parts.append(text)
        if history:
            old = parse_manifest(history[-1].manifest, history[-1].label)
            gone = sorted(str(at) for at in {identify(one, desired.namespace) for one in old} - new)
            parts += [f"{each} would be deleted" for each in gone]
        text = "\n".join(parts)
        return text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}\n... (more is not shown)"


async def _placed(client: Client, namespace: str, manifests: Sequence[Manifest]) -> list[Json]:
    target = Target(client, namespace)
    objects = parse_manifest("".join(f"---\n{each.text}\n" for each in manifests), "the chart")
    made = []
    for each in objects:
        try:
            made.append((await target.place(each))[1])
        except NotFound as error:
            raise HelmError(f"{each['kind']} {each['metadata']['name']}: {error}") from None
    return made


def _typed(obj: Mapping[str, Any]) -> Json:
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"]}


def _masked(obj: Mapping[str, Any]) -> Json:
    made = dict(obj)
    if obj.get("kind") == "Secret":
        for part in ("data", "stringData"):
            if isinstance(obj.get(part), Mapping):
                made[part] = dict.fromkeys(obj[part], _MASK)
    return made
