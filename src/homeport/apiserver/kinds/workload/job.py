"""Job and CronJob: the generated selector, schedules, and what may not change."""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Iterator, Mapping

from homeport.apiserver.kinds.check import (
    dns_subdomain,
    immutable,
    invalid,
    label_selector,
    named,
    not_negative,
    one_of,
    required,
    too_long,
    unsupported,
)
from homeport.apiserver.kinds.pod.spec import default_template
from homeport.apiserver.kinds.strategy import WithStatus
from homeport.apiserver.kinds.workload.jobpolicy import failure_policy, success_policy
from homeport.apiserver.kinds.workload.schedule import schedule_error
from homeport.apiserver.kinds.workload.workload import mismatch, template
from homeport.apiserver.resource import Json
from homeport.client.errors import Cause

_UID = "batch.kubernetes.io/controller-uid"
_NAME = "batch.kubernetes.io/job-name"
_OLD_UID, _OLD_NAME = "controller-uid", "job-name"
_COUNTS = (
    "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
    "backoffLimitPerIndex", "maxFailedIndexes",
)  # fmt: skip
_MODES = ("NonIndexed", "Indexed")
_MANY, _FEWER = 100_000, 10_000
_URL_PATH_TEXT = "[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+"
_URL_PATH = re.compile(_URL_PATH_TEXT).fullmatch


class Job(WithStatus):
    def begin(self, obj: Json) -> None:
        super().begin(obj)
        spec = obj["spec"] = obj.get("spec") or {}
        found = spec["template"] = spec.get("template") or {}
        same = (found.get("metadata") or {}).get("labels") == obj["metadata"].get("labels")
        if not spec.get("manualSelector"):
            self._select(obj, spec, found)
        if same:
            # Labels that were taken from the Pods follow them.
            obj["metadata"].pop("labels", None)

    def _select(self, obj: Json, spec: Json, found: Json) -> None:
        uid, name = obj["metadata"]["uid"], obj["metadata"].get("name", "")
        meta = found["metadata"] = found.get("metadata") or {}
        labels = meta.setdefault("labels", {})
        for key, value in ((_UID, uid), (_OLD_UID, uid), (_NAME, name), (_OLD_NAME, name)):
            labels.setdefault(key, value)
        selector = spec["selector"] = spec.get("selector") or {}
        match = selector.setdefault("matchLabels", {})
        match.setdefault(_UID, uid)

    def default(self, obj: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        default_template(spec.setdefault("template", {}))
        labels = (spec["template"].get("metadata") or {}).get("labels")
        if labels and not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)
        if spec.get("completions") is None and spec.get("parallelism") is None:
            spec["completions"] = 1
        spec.setdefault("parallelism", 1)
        spec.setdefault("backoffLimit", 2**31 - 1 if spec.get("backoffLimitPerIndex") is not None else 6)
        spec.setdefault("completionMode", "NonIndexed")
        spec.setdefault("suspend", False)
        spec.setdefault("podReplacementPolicy", "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed")
        spec.setdefault("manualSelector", False)
        for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
            for pattern in rule.get("onPodConditions") or ():
                pattern["status"] = pattern.get("status") or "True"

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        causes: list[Cause] = []
        if old is None:
            causes += self._generated(obj)
        causes += job_spec("spec", spec, None if old is None else old["spec"])
        if spec.get("selector") is None:
            causes.append(required("spec.selector"))
        causes += label_selector("spec.selector", spec.get("selector"))
        causes += mismatch(spec.get("selector"), spec["template"])
        if old is not None:
            causes += self._changed(spec, old["spec"], old.get("status") or {})
        return causes

    def _generated(self, obj: Json) -> Iterator[Cause]:
        spec, uid = obj["spec"], obj["metadata"]["uid"]
        if spec.get("manualSelector"):
            return
        given = (spec["template"].get("metadata") or {}).get("labels") or {}
        for key in (_OLD_UID, _UID):
            if given.get(key) != uid:
                yield invalid("spec.template.metadata.labels", given, f"must be '{uid}'")
        match = (spec.get("selector") or {}).get("matchLabels") or {}
        if match.get(_UID) != uid or len(match) != 1:
            yield invalid("spec.selector", spec.get("selector"), "`selector` not auto-generated")

    def _changed(self, spec: Json, old: Json, status: Json) -> Iterator[Cause]:
        if spec.get("completionMode") != "Indexed" or spec.get("completions") != spec.get("parallelism"):
            yield from immutable("spec.completions", spec.get("completions"), old.get("completions"))
        yield from immutable("spec.selector", spec.get("selector"), old.get("selector"))
        if not (old.get("suspend") and not status.get("startTime")):
            yield from immutable("spec.template", spec.get("template"), old.get("template"))
        for field in ("completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"):
            yield from immutable(f"spec.{field}", spec.get(field), old.get(field))

    def fields(self, obj: Json) -> Mapping[str, str]:
        return {"status.successful": str((obj.get("status") or {}).get("succeeded", 0))}


def job_spec(field: str, spec: Json, old: Json | None = None) -> Iterator[Cause]:
    for name in _COUNTS:
        yield from not_negative(f"{field}.{name}", spec.get(name))
    if spec.get("maxFailedIndexes") is not None and spec.get("backoffLimitPerIndex") is None:
        yield required(f"{field}.backoffLimitPerIndex", "when maxFailedIndexes is specified")
    yield from _manager(f"{field}.managedBy", spec.get("managedBy"))
    mode = spec.get("completionMode")
    if mode is not None and mode not in _MODES:
        yield unsupported(f"{field}.completionMode", mode, _MODES)
    if mode == "Indexed":
        yield from _indexed(field, spec)
    elif mode in (None, "NonIndexed"):
        for name in ("backoffLimitPerIndex", "maxFailedIndexes"):
            if spec.get(name) is not None:
                yield invalid(f"{field}.{name}", spec[name], "requires indexed completion mode")
    if spec.get("podFailurePolicy") is not None:
        yield from failure_policy(f"{field}.podFailurePolicy", spec)
    if spec.get("successPolicy") is not None:
        yield from success_policy(f"{field}.successPolicy", spec)
    yield from _replacement(f"{field}.podReplacementPolicy", spec)
    yield from template(f"{field}.template", spec.get("template") or {}, (old or {}).get("template"))
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "")
    subfield = f"{field}.template.spec.restartPolicy"
    if policy in ("", "Always"):
        yield required(subfield, 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield unsupported(subfield, policy, ("OnFailure", "Never"))
    elif spec.get("podFailurePolicy") is not None and policy != "Never":
        yield invalid(subfield, policy, 'only "Never" is supported when podFailurePolicy is specified')


def _manager(field: str, name: str | None) -> Iterator[Cause]:
    """Who looks after the Job, as `example.com/controller`."""
    if name is None:
        return
    domain, slash, path = name.partition("/")
    if not name:
        yield required(field)
    elif not slash or not domain or not path:
        yield invalid(field, name, 'must be a domain-prefixed path (such as "acme.io/foo")')
    else:
        yield from named(field, domain, dns_subdomain)
        if not _URL_PATH(path):
            yield invalid(field, path, f"Invalid path (regex used for validation is '{_URL_PATH_TEXT}')")
    if len(name) > 63:
        yield too_long(field, 63)


def _replacement(field: str, spec: Json) -> Iterator[Cause]:
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return
    if spec.get("podFailurePolicy") is not None:
        if policy != "Failed":
            yield unsupported(field, policy, ("Failed",))
    else:
        yield from one_of(field, policy, ("Failed", "TerminatingOrFailed"))


def _indexed(field: str, spec: Json) -> Iterator[Cause]:
    completions, parallelism = spec.get("completions"), spec.get("parallelism")
    failed = spec.get("maxFailedIndexes")
    if completions is None:
        yield required(f"{field}.completions", "when completion mode is Indexed")
    if parallelism is not None and parallelism > _MANY:
        detail = f"must be less than or equal to {_MANY} when completion mode is Indexed"
        yield invalid(f"{field}.parallelism", parallelism, detail)
    if completions is not None and failed is not None and failed > completions:
        yield invalid(f"{field}.maxFailedIndexes", failed, "must be less than or equal to completions")
    if failed is not None and failed > _MANY:
        yield invalid(f"{field}.maxFailedIndexes", failed, f"must be less than or equal to {_MANY}")
    if completions is None or completions <= _MANY or spec.get("backoffLimitPerIndex") is None:
        return
    if failed is None:
        yield required(f"{field}.maxFailedIndexes", f"must be specified when completions is above {_MANY}")
    for name in ("parallelism", "maxFailedIndexes"):
        if spec.get(name) is not None and spec[name] > _FEWER:
            detail = (
                f"must be less than or equal to {_FEWER} when completions are above {_MANY} and used with backoff "
                "limit per index"
            )
            yield invalid(f"{field}.{name}", spec[name], detail)


class CronJob(WithStatus):
    def default(self, obj: Json) -> None:
        spec = obj["spec"] = obj.get("spec") or {}
        if not spec.get("concurrencyPolicy"):
            spec["concurrencyPolicy"] = "Allow"
        spec.setdefault("suspend", False)
        spec.setdefault("successfulJobsHistoryLimit", 3)
        spec.setdefault("failedJobsHistoryLimit", 1)
        job = spec["jobTemplate"] = spec.get("jobTemplate") or {}
        inner = job["spec"] = job.get("spec") or {}
        default_template(inner.setdefault("template", {}))

    def validate(self, obj: Json, old: Json | None) -> list[Cause]:
        spec = obj["spec"]
        causes = list(self._schedule(spec, None if old is None else old["spec"]))
        causes += not_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
        if old is None or old["spec"].get("timeZone") != spec.get("timeZone"):
            causes += self._zone(spec.get("timeZone"))
        policies = ("Allow", "Forbid", "Replace")
        causes += one_of("spec.concurrencyPolicy", spec["concurrencyPolicy"], policies)
        job = spec["jobTemplate"].get("spec") or {}
        before = None if old is None else (old["spec"].get("jobTemplate") or {}).get("spec")
        causes += job_spec("spec.jobTemplate.spec", job, before)
        if job.get("manualSelector"):
            field = "spec.jobTemplate.spec.manualSelector"
            causes.append(unsupported(field, True, ("nil", "false")))
        for name in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
            causes += not_negative(f"spec.{name}", spec.get(name))
        if not spec.get("schedule"):
            causes.append(required("spec.schedule"))
        if old is None and len(obj["metadata"].get("name", "")) > 52:
            causes.insert(0, _long_name(obj["metadata"]["name"]))
        return causes

    def _schedule(self, spec: Json, old: Json | None) -> Iterator[Cause]:
        text = spec.get("schedule", "")
        if not text:
            return
        wrong = schedule_error(text)
        if wrong:
            yield invalid("spec.schedule", text, wrong)
        if "TZ" in text and not (old is not None and "TZ" in old.get("schedule", "")):
            detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
            yield invalid("spec.schedule", text, detail)

    def _zone(self, name: str | None) -> Iterator[Cause]:
        if name is None:
            return
        if not name:
            yield invalid("spec.timeZone", name, "timeZone must be nil or non-empty string")
        elif name.lower() == "local":
            detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
            yield invalid("spec.timeZone", name, detail)
        elif not _known_zone(name):
            yield invalid("spec.timeZone", name, f"unknown time zone {name}")


def _known_zone(name: str) -> bool:
    try:
        zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):  # a path out of the database, a folder, no such zone
        return False
    return True


def _long_name(name: str) -> Cause:
    # The controller adds eleven characters to make a Job's name.
    return invalid("metadata.name", name, "must be no more than 52 characters")
