"""What Prism Central records about machines that do not come up: tasks, and quotas of projects."""

from __future__ import annotations

from collections.abc import Collection

from homeport.infra.error import ProviderError
from homeport.infra.vendor.task import Task
from homeport.infra.vendor.trouble import OVERDUE_SECONDS, RECENT_SECONDS, Trouble, judge
from homeport.providers.nutanix.connection import PrismSession

_CURE = "raise the limits of the project, or use fewer or smaller machines"


async def troubles(session: PrismSession, machines: Collection[str], projects: Collection[str]) -> list[Trouble]:
    """`machines`: names of VMs that are not up. `projects`: names or ids of projects of the cluster.

    What the account may not read is left out.
    """
    newest: dict[tuple[str, str], Trouble] = {}  # of a machine: creation is tried again, and tasks have parts
    for task in await _tasks(session) if machines else ():
        one = _of_task(task, machines, session.clock.now())
        if one is not None:
            newest.setdefault((one.about, one.reason), one)
    found = [*newest.values()]
    for project in await session.prism.projects() if projects else ():
        if {project.id, project.name} & set(projects):
            found += judge(f"project {project.name}", project.quotas, _CURE)
    return found


async def _tasks(session: PrismSession) -> list[Task]:
    try:
        return await session.prism.recent_tasks()
    except ProviderError:
        return []


def _of_task(task: Task, machines: Collection[str], now: float) -> Trouble | None:
    about = next((name for name in task.names if name in machines), "")
    age = now - task.created
    if not about:
        return None
    what = f"task {task.id.rpartition(':')[2]} ({task.operation or 'operation not known'}) of VM {about}"
    if task.status == "failed" and age < RECENT_SECONDS:
        return Trouble("TaskFailed", about, f"{what} failed: {task.error or 'Prism Central does not say why'}")
    if task.unfinished and age > OVERDUE_SECONDS:
        text = f"{what} has run for {age / 60:.0f} minutes: see in Prism Central what it waits for, and cancel it there"
        return Trouble("TaskOverdue", about, text)
    return None
