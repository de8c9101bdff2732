"""ManagementBackup: writes archives of the plane, as `homeport backup` does, when they are due.

Which backups exist is observed: the archives carry the name of their ManagementBackup and their time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from homeport.api.k0rdent.v1beta1 import ManagementBackup
from homeport.api.k0rdent.v1beta1.management import BackupState
from homeport.capi.component import Setup
from homeport.capi.environment import BackupError, Backups
from homeport.platforms.k0rdent.backup.schedule import Schedule, parse_schedule
from homeport.platforms.k0rdent.reconciler import CheckReconciler
from homeport.runtime.clock import parse_time, rfc3339
from homeport.runtime.outcome import Wait
from homeport.runtime.reconciler import Phase, Scope

RETENTION_SECONDS = 30 * 86_400.0
_RETRY_SECONDS = 300.0
_LONGEST_SECONDS = 86_400.0  # between two looks at the clock
_FORMAT = "%Y%m%d%H%M%S"
_LOCATIONS = ("", "default")
_ELSEWHERE = (
    "controllers on a Kubernetes cluster make no backups: back up the cluster itself, for example with Velero or a "
    "snapshot of etcd"
)

BackupScope = Scope[ManagementBackup]


class ManagementBackupReconciler(CheckReconciler[ManagementBackup]):
    controller_name = "k0rdent-managementbackup"
    kind = ManagementBackup
    workers = 1

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup.manager)
        self._backups = setup.environment.backups

    def phases(self, scope: BackupScope) -> Sequence[Phase[BackupScope]]:
        return [self._converge]

    async def _converge(self, scope: BackupScope) -> Wait | None:
        obj, status = scope.object, scope.object.status
        status.observed_generation = obj.metadata.generation
        if self._backups is None:
            return self._fails(scope, "NotSupported", _ELSEWHERE)
        if obj.spec.storage_location not in _LOCATIONS:
            text = f'spec.storageLocation: "{obj.spec.storage_location}" is not known: leave it out; backups are in '
            return self._fails(scope, "NotSupported", f"{text}{self._backups.folder}")
        try:
            schedule = parse_schedule(obj.spec.schedule) if obj.spec.schedule else None
        except ValueError as error:
            return self._fails(scope, "InvalidSchedule", f"spec.schedule: {error}")
        return await self._due(scope, self._backups, schedule)

    async def _due(self, scope: BackupScope, backups: Backups, schedule: Schedule | None) -> Wait | None:
        obj, now = scope.object, self.clock.now()
        made = times_of(obj.metadata.name, await backups.names())
        began = parse_time(obj.metadata.creation_timestamp) if obj.metadata.creation_timestamp else now
        due = _due_at(schedule, max([began, *made.values()]), has=bool(made), began=began)
        if due is not None and due <= now:
            name = f"{obj.metadata.name}-{datetime.fromtimestamp(now, UTC):{_FORMAT}}"
            start = rfc3339(now)
            try:
                await backups.write(name)
            except BackupError as error:
                obj.status.last_backup = BackupState(phase="Failed", start_timestamp=start, failure_reason=str(error))
                return self._fails(scope, "BackupFailed", str(error), after=_RETRY_SECONDS)
            end = rfc3339(self.clock.now())
            obj.status.last_backup = BackupState(phase="Completed", start_timestamp=start, completion_timestamp=end)
            made[name] = now
            due = _due_at(schedule, now, has=True, began=began)
        await self._prune(backups, made, now)
        self._report(scope, made, due, now)
        return None

    def _report(self, scope: BackupScope, made: dict[str, float], due: float | None, now: float) -> None:
        status = scope.object.status
        status.error = ""
        if made:
            status.last_backup_name = max(made, key=lambda each: made[each])
            status.last_backup_time = rfc3339(made[status.last_backup_name])
            if status.last_backup is None or status.last_backup.phase == "Failed":
                status.last_backup = BackupState(phase="Completed")
        status.next_attempt = rfc3339(due) if due is not None else None
        if due is not None:
            scope.timer = Wait("Scheduled", after=min(max(due - now, 1.0), _LONGEST_SECONDS), quiet=True)

    async def _prune(self, backups: Backups, made: dict[str, float], now: float) -> None:
        """The newest one stays, however old it is."""
        newest = max(made.values(), default=now)
        for name in [each for each, at in made.items() if at < newest and now - at > RETENTION_SECONDS]:
            await backups.delete(name)
            del made[name]

    def _fails(self, scope: BackupScope, reason: str, text: str, after: float | None = None) -> Wait:
        scope.object.status.error = text
        return Wait(reason, text, after=after, warning=True)


def _due_at(schedule: Schedule | None, last: float, *, has: bool, began: float) -> float | None:
    """Without a schedule there is one backup, at once."""
    if schedule is None:
        return None if has else began
    return schedule.next_after(last)


def times_of(name: str, listed: Sequence[str]) -> dict[str, float]:
    """Backups of this ManagementBackup, with their times."""
    found: dict[str, float] = {}
    for each in listed:
        stem, _, stamp = each.rpartition("-")
        if stem != name:
            continue
        try:
            found[each] = datetime.strptime(stamp, _FORMAT).replace(tzinfo=UTC).timestamp()
        except ValueError:
            continue
    return found


def install(setup: Setup) -> None:
    setup.manager.add(ManagementBackupReconciler(setup).controller)
