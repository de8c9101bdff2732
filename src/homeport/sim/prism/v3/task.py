"""Tasks in v3."""

from __future__ import annotations

from typing import Final

from homeport.runtime.clock import rfc3339
from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.entity import Task
from homeport.sim.prism.error import missing
from homeport.sim.prism.site import Routes, Site
from homeport.sim.prism.task import bare_id
from homeport.sim.prism.v3 import envelope
from homeport.sim.prism.v3.envelope import BASE, VERSION, Json

_TASK_STATUS: Final = {"CANCELED": "ABORTED"}


def add_routes(routes: Routes) -> None:
    routes.add("POST", f"{BASE}/tasks/list", list_tasks, reads=True)
    routes.add("GET", f"{BASE}/tasks/{{uuid}}", get_task, table="tasks", param="uuid")
    routes.add("POST", f"{BASE}/tasks/poll", poll_tasks, reads=True)


def task_view(site: Site, kept: Task) -> Json:
    task = site.tasks.shown(kept)
    found: Json = {
        "api_version": VERSION,
        "uuid": task.ext_id,
        "operation_type": task.operation,
        "status": _TASK_STATUS.get(task.status, task.status),
        "percentage_complete": task.progress,
        "progress_message": "",
        "creation_time": rfc3339(task.created),
        "creation_time_usecs": int(task.created * 1_000_000),
        "start_time": rfc3339(task.started),
        "start_time_usecs": int(task.started * 1_000_000),
        "last_update_time": rfc3339(task.completed or task.updated),
        "logical_timestamp": task.version,
        "entity_reference_list": [envelope.reference(each.kind, each.ext_id, each.name) for each in task.affected],
        "subtask_reference_list": [envelope.reference("task", each) for each in task.children],
    }
    if task.cluster:
        found["cluster_reference"] = envelope.reference("cluster", task.cluster)
    if task.parent:
        found["parent_task_reference"] = envelope.reference("task", task.parent)
    if task.completed:
        found["completion_time"] = rfc3339(task.completed)
        found["completion_time_usecs"] = int(task.completed * 1_000_000)
    if task.failure is not None:
        found["error_code"] = task.failure.group or "INTERNAL_ERROR"
        found["error_detail"] = task.failure.message
    return found


def get_task(site: Site, call: Call) -> Answer:
    task = site.world.tasks.get(bare_id(call.params["uuid"]))
    if task is None:
        raise missing("task", call.params["uuid"])
    return Answer(200, task_view(site, site.tasks.read(task)))


def list_tasks(site: Site, call: Call) -> Answer:
    def values(task: Task) -> Json:
        shown = site.tasks.shown(task)
        return {
            "status": shown.status,
            "operation_type": task.operation,
            "uuid": task.ext_id,
            "entity_reference_list": [each.ext_id for each in task.affected],
        }

    newest = tuple(site.world.tasks)[::-1]
    return envelope.listed(call, "task", newest, lambda each: task_view(site, each), values)


def poll_tasks(site: Site, call: Call) -> Answer:
    wanted = Body(call.body).texts("task_uuid_list")
    found = [site.world.tasks.get(each) for each in wanted]
    views = [task_view(site, site.tasks.read(each)) for each in found if each is not None]
    return Answer(200, {"api_version": VERSION, "is_timed_out": False, "task_list": views})
