"""What is asked of a release, and the record that it becomes."""

from __future__ import annotations

import base64
import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from homeport.helm.release import record
from homeport.helm.release.content import chart_digest, chart_record, hook_record, manifest_text
from homeport.helm.release.record import Release, format_time
from homeport.machinery.chart import Rendered

Json = dict[str, Any]

HISTORY_LIMIT: Final = 10  # Helm's default


@dataclass(frozen=True, slots=True)
class Desired:
    """A release as it should be. `files`: the chart, by path below its folder."""

    name: str
    namespace: str
    files: Mapping[str, bytes] = field(repr=False)
    values: Mapping[str, Any] = field(default_factory=dict, repr=False)
    labels: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    create_namespace: bool = False
    take_ownership: bool = False  # of objects that exist and do not belong to the release
    crds: bool = True  # create what is in the chart's crds/ folder
    hooks: bool = True
    hook_timeout_seconds: float = 300.0
    history_limit: int = HISTORY_LIMIT
    objection: Callable[[Sequence[Release]], str] | None = None  # why a release with this history is left alone


@dataclass(frozen=True, slots=True)
class Revision:
    """Which revision is rendered. What templates take for random is derived from `seed`, which the record keeps."""

    number: int
    install: bool
    now: float
    seed: bytes = field(repr=False)


def new_release(desired: Desired, rendered: Rendered, revision: Revision, history: Sequence[Release]) -> Release:
    status = record.PENDING_INSTALL if revision.install else record.PENDING_UPGRADE
    now = format_time(revision.now)
    first = next((each.info.get("first_deployed") for each in history if each.info.get("first_deployed")), now)
    info: Json = {
        "first_deployed": now if revision.install else first,
        "last_deployed": now,
        "deleted": "",
        "description": "Initial install underway" if revision.install else "Preparing upgrade",
        "status": status,
    }
    if rendered.notes:
        info["notes"] = rendered.notes
    raw = {
        "name": desired.name,
        "info": info,
        "chart": chart_record(desired.files),
        "config": dict(desired.values),
        "manifest": manifest_text(rendered.manifests),
        "hooks": [hook_record(hook) for hook in rendered.hooks],
        "version": revision.number,
        "namespace": desired.namespace,
        "apply_method": record.SERVER_SIDE,
        record.MEMORY: _memory(desired, revision),
    }
    return Release(raw, {**(history[-1].labels if history else {}), **desired.labels})


def rolled_back(source: Release, latest: Release, now: float) -> Release:
    """A new revision with the content of an older one."""
    raw = copy.deepcopy(source.raw)
    raw["version"] = latest.version + 1
    raw["apply_method"] = record.SERVER_SIDE
    raw["info"] = {
        "first_deployed": latest.info.get("first_deployed", ""),
        "last_deployed": format_time(now),
        "deleted": "",
        "description": f"Rollback to {source.version}",
        "status": record.PENDING_ROLLBACK,
        "rollback_revision": source.version,
        "notes": source.info.get("notes", ""),
    }
    raw[record.MEMORY] = {**source.memory, "rollback": source.version}
    for hook in raw.get("hooks") or ():
        hook["last_run"] = {"started_at": "", "completed_at": "", "phase": ""}
    return Release(raw, dict(source.labels))


def _memory(desired: Desired, revision: Revision) -> Json:
    memory: Json = {
        "digest": chart_digest(desired.files),
        "seed": base64.b64encode(revision.seed).decode(),
        "hookTimeoutSeconds": desired.hook_timeout_seconds,
    }
    if not desired.hooks:
        memory["hooks"] = False
    if desired.description:
        memory["description"] = desired.description
    return memory


def matches(release: Release, desired: Desired) -> bool:
    """Whether the revision has the chart and the values that are desired."""
    if release.config != dict(desired.values):
        return False
    if digest := release.memory.get("digest"):
        return bool(digest == chart_digest(desired.files))
    return _content(release.chart) == _content(chart_record(desired.files))


def _content(chart: Mapping[str, Any]) -> tuple[Any, ...]:
    """What of a chart's record does not depend on who wrote it."""
    metadata = chart.get("metadata") or {}
    files = [(each["name"], each["data"]) for part in ("templates", "files") for each in chart.get(part) or ()]
    return metadata.get("name"), metadata.get("version"), sorted(files), chart.get("schema") or None
