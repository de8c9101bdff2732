"""prism: tasks, categories, domain managers."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.body import Body
from homeport.sim.prism.core import replace
from homeport.sim.prism.entity import Affected, Category, Task
from homeport.sim.prism.error import conflict, missing
from homeport.sim.prism.rule import refuse_used
from homeport.sim.prism.site import Routes, Site
from homeport.sim.prism.task import PREFIX, bare_id
from homeport.sim.prism.v4 import envelope
from homeport.sim.prism.v4.envelope import Dialect, Json, Listing

NS: Final = "prism.v4.config"
BASE: Final = "/api/prism/{v}/config"
TASKS: Final = envelope.listing(
    f"{NS}.Task",
    """appName batchSummary clusterExtIds completedTime completionDetails createdTime entitiesAffected
        errorMessages extId isBackgroundTask isCancelable lastUpdatedTime legacyErrorMessage numberOfEntitiesAffected
        numberOfSubtasks operation operationDescription ownedBy parentTask progressPercentage projectExtId
        resourceLinks rootTask startedTime status subSteps subTasks warnings""",
)
TASK_ENTITIES: Final = Listing(
    f"{NS}.ListTaskEntitiesApiResponse", f"{NS}.EntityReference", envelope.names("extId rel name")
)
CATEGORIES: Final = Listing(
    f"{NS}.ListCategoriesApiResponse",
    f"{NS}.Category",
    envelope.names(
        """associations description detailedAssociations extId isSharedWithAllProjects key links ownerUuid
        projectExtId sharedWithProjects tenantId type value"""
    ),
    projected=True,
)
MANAGERS: Final = Listing(
    f"{NS}.ListDomainManagerApiResponse",
    f"{NS}.DomainManager",
    envelope.names(
        """config createdTime extId hostingClusterExtId isRegisteredWithHostingCluster links network nodeExtIds
        shouldEnableHighAvailability tenantId"""
    ),
)
_RELATIONS: Final = {
    "vm": "vmm:ahv:config:vm",
    "image": "vmm:content:image",
    "subnet": "networking:config:subnet",
    "volume_group": "volumes:config:volume-group",
    "cluster": "clustermgmt:config:cluster",
    "host": "clustermgmt:config:host",
}


def add_routes(routes: Routes) -> None:
    routes.add("GET", f"{BASE}/tasks", list_tasks, TASKS.response_type)
    routes.add("GET", f"{BASE}/tasks/{{extId}}", get_task, f"{NS}.GetTaskApiResponse", table="tasks")
    entities = f"{BASE}/tasks/{{extId}}/affected-entities"
    routes.add("GET", entities, list_task_entities, TASK_ENTITIES.response_type, table="tasks")
    cancel = f"{BASE}/tasks/{{extId}}/$actions/cancel"
    routes.add("POST", cancel, cancel_task, f"{NS}.CancelTaskApiResponse", table="tasks")
    routes.add("GET", f"{BASE}/categories", list_categories, CATEGORIES.response_type)
    routes.add(
        "POST", f"{BASE}/categories", create_category, f"{NS}.CreateCategoryApiResponse", table="categories", param=""
    )
    one = f"{BASE}/categories/{{extId}}"
    routes.add("GET", one, get_category, f"{NS}.GetCategoryApiResponse", table="categories")
    routes.add("PUT", one, update_category, f"{NS}.UpdateCategoryApiResponse", table="categories")
    routes.add("DELETE", one, delete_category, f"{NS}.DeleteCategoryApiResponse", table="categories")
    routes.add("GET", f"{BASE}/domain-managers", list_managers, MANAGERS.response_type)
    routes.add("GET", f"{BASE}/domain-managers/{{extId}}", get_manager, f"{NS}.GetDomainManagerApiResponse")


# Tasks.


def task_view(site: Site, d: Dialect, kept: Task) -> Json:
    task = site.tasks.shown(kept)
    owner = site.world.user(task.owner)
    fields: dict[str, Any] = {
        "extId": f"{PREFIX}{task.ext_id}",
        "operation": task.operation,
        "operationDescription": _described(task.operation),
        "createdTime": envelope.time_text(task.created),
        "startedTime": envelope.time_text(task.started),
        "completedTime": envelope.time_text(task.completed),
        "lastUpdatedTime": envelope.time_text(task.completed or task.updated),
        "status": task.status,
        "progressPercentage": task.progress,
        "entitiesAffected": [_affected(d, each) for each in task.affected] or None,
        "subTasks": [_task_reference(d, each, "subtask") for each in task.children] or None,
        "parentTask": _task_reference(d, task.parent, "parent") if task.parent else None,
        "rootTask": _task_reference(d, task.parent, "rootTask") if task.parent else None,
        "isCancelable": False,
        "isBackgroundTask": False,
        "ownedBy": d.typed(f"{NS}.OwnerReference", {"extId": owner.ext_id if owner else None, "name": task.owner}),
        "clusterExtIds": [task.cluster] if task.cluster else None,
        "completionDetails": [_detail(d, name, value) for name, value in task.details.items()] or None,
        "numberOfSubtasks": len(task.children),
        "numberOfEntitiesAffected": len(task.affected),
    }
    if task.failure is not None:
        failure = task.failure
        fields["errorMessages"] = [envelope.app_message(d, "prism", failure.code, failure.message, failure.group)]
        fields["legacyErrorMessage"] = failure.message
    return d.typed(f"{NS}.Task", fields)


def _described(operation: str) -> str:
    words = "".join(f" {letter}" if letter.isupper() else letter for letter in operation.removeprefix("k")).split()
    return " ".join([*words[-1:], *(word if word != "Vm" else "VM" for word in words[:-1])]).strip()


def _affected(d: Dialect, each: Affected) -> Json:
    rel = _RELATIONS.get(each.kind, each.kind)
    return d.typed(f"{NS}.EntityReference", {"extId": each.ext_id, "rel": rel, "name": each.name or None})


def _task_reference(d: Dialect, ext_id: str, rel: str) -> Json:
    full = f"{PREFIX}{ext_id}"
    href = f"/api/prism/v4.{d.minor}/config/tasks/{quote(full, safe='')}"
    return d.typed(f"{NS}.TaskReferenceInternal", {"extId": full, "href": href, "rel": rel})


def _detail(d: Dialect, name: str, value: str) -> Json:
    fields = {"name": name, "$valueItemDiscriminator": "String", "value": value}
    return d.typed("common.v1.config.KVPair", fields)


def _find_task(site: Site, call: Call) -> Task:
    task = site.world.tasks.get(bare_id(call.params["extId"]))
    if task is None:
        raise missing("task", call.params["extId"])
    return task


def list_tasks(site: Site, call: Call) -> Answer:
    d = envelope.dialect_of(call)
    if site.world is site.core.world:
        for task in site.world.tasks:
            if not task.over and not task.parent:
                site.tasks.read(task)
    newest_first = tuple(site.world.tasks)[::-1]
    return envelope.listed(
        call,
        TASKS,
        newest_first,
        lambda task: task_view(site, d, task),
        quick={"extId": lambda task: f"{PREFIX}{task.ext_id}"},
        members={"entitiesAffected/extId": lambda task: [each.ext_id for each in task.affected]},
    )


def get_task(site: Site, call: Call) -> Answer:
    task = site.tasks.read(_find_task(site, call)) if site.world is site.core.world else _find_task(site, call)
    return envelope.single(
        call, f"{NS}.GetTaskApiResponse", task_view(site, envelope.dialect_of(call), task), version=task
    )


def list_task_entities(site: Site, call: Call) -> Answer:
    d = envelope.dialect_of(call)
    return envelope.listed(call, TASK_ENTITIES, _find_task(site, call).affected, lambda each: _affected(d, each))


def cancel_task(site: Site, call: Call) -> Answer:
    task = _find_task(site, call)
    site.tasks.cancel(task)
    d = envelope.dialect_of(call)
    message = d.typed("prism.v4.error.AppMessage", {"message": "The task is canceled.", "severity": "INFO"})
    return envelope.single(call, f"{NS}.CancelTaskApiResponse", message)


# Categories: no tasks, everything at once.


def category_view(site: Site, d: Dialect, category: Category, *, details: bool = False) -> Json:
    count = site.core.usage.by_category[category.ext_id]
    kind = {"categoryId": category.ext_id, "resourceType": "VM", "resourceGroup": "ENTITY"}
    fields: dict[str, Any] = {
        "extId": category.ext_id,
        "key": category.key,
        "value": category.value,
        "type": category.type,
        "description": category.description or None,
        "ownerUuid": category.owner or "00000000-0000-0000-0000-000000000000",
        "associations": [d.typed(f"{NS}.AssociationSummary", {**kind, "count": count})] if count else None,
    }
    if details:
        fields["detailedAssociations"] = [
            d.typed(f"{NS}.AssociationDetail", {**kind, "resourceId": vm.ext_id})
            for vm in site.world.vms
            if category.ext_id in vm.categories
        ] or None
    return d.typed(f"{NS}.Category", fields)


def _wants_details(call: Call) -> bool:
    return "detailedAssociations" in call.query.get("$expand", "")


def list_categories(site: Site, call: Call) -> Answer:
    d, details = envelope.dialect_of(call), _wants_details(call)
    valued = [category for category in site.world.categories if category.value]
    return envelope.listed(
        call,
        CATEGORIES,
        valued,
        lambda each: category_view(site, d, each, details=details),
        quick={"extId": lambda each: each.ext_id, "key": lambda each: each.key, "value": lambda each: each.value},
    )


def get_category(site: Site, call: Call) -> Answer:
    category = site.find(site.world.categories, call.params["extId"])
    view = category_view(site, envelope.dialect_of(call), category, details=_wants_details(call))
    return envelope.single(call, f"{NS}.GetCategoryApiResponse", view, version=category)


def create_category(site: Site, call: Call) -> Answer:
    body = Body(call.body)
    key, value = body.required_text("key"), body.required_text("value")
    if any((each.key, each.value) == (key, value) for each in site.world.categories):
        raise conflict(f"The category {key}:{value} exists.", group="CATEGORY_ALREADY_EXISTS")
    user = site.world.user(call.user)
    category = Category(
        ext_id=site.core.new_id(),
        key=key,
        value=value,
        description=body.text("description"),
        owner=user.ext_id if user else "",
    )
    category = site.core.put(site.core.world.categories, category)
    view = category_view(site, envelope.dialect_of(call), category)
    return envelope.single(call, f"{NS}.CreateCategoryApiResponse", view, version=category, status=201)


def update_category(site: Site, call: Call) -> Answer:
    category = site.find(site.world.categories, call.params["extId"])
    envelope.check_match(call, category)
    body = Body(call.body)
    after = replace(
        category,
        value=body.text("value", category.value),
        description=body.text("description", category.description),
    )
    after = site.core.put(site.core.world.categories, after)
    view = category_view(site, envelope.dialect_of(call), after)
    return envelope.single(call, f"{NS}.UpdateCategoryApiResponse", view, version=after)


def delete_category(site: Site, call: Call) -> Answer:
    category = site.find(site.world.categories, call.params["extId"])
    envelope.check_match(call, category)
    refuse_used(site, category)
    site.core.drop(site.core.world.categories, category.ext_id)
    return Answer(204)


# The Prism Central itself.


def _manager_view(site: Site, d: Dialect) -> list[Json]:
    found = []
    for cluster in site.world.clusters:
        if not cluster.central:
            continue
        config = {
            "name": cluster.name,
            "size": "SMALL",
            "buildInfo": d.typed("clustermgmt.v4.config.BuildInfo", {"version": cluster.version_aos}),
            "resourceConfig": d.typed(
                f"{NS}.DomainManagerResourceConfig", {"numVcpus": 10, "memorySizeBytes": 39728447488}
            ),
        }
        network = {"externalAddress": d.ip(cluster.address)}
        found.append(
            d.typed(
                f"{NS}.DomainManager",
                {
                    "extId": cluster.ext_id,
                    "config": d.typed(f"{NS}.DomainManagerClusterConfig", config),
                    "network": d.typed(f"{NS}.DomainManagerNetwork", network),
                    "isRegisteredWithHostingCluster": True,
                    "shouldEnableHighAvailability": False,
                },
            )
        )
    return found


def list_managers(site: Site, call: Call) -> Answer:
    return envelope.listed(call, MANAGERS, _manager_view(site, envelope.dialect_of(call)), lambda view: view)


def get_manager(site: Site, call: Call) -> Answer:
    for view in _manager_view(site, envelope.dialect_of(call)):
        if view["extId"] == call.params["extId"]:
            return envelope.single(call, f"{NS}.GetDomainManagerApiResponse", view)
    raise missing("domain manager", call.params["extId"])
