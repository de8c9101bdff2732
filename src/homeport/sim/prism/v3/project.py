"""Projects and people in v3."""

from __future__ import annotations

from homeport.sim.engine.call import Answer, Call
from homeport.sim.prism.entity import Project, User
from homeport.sim.prism.error import missing
from homeport.sim.prism.site import Routes, Site
from homeport.sim.prism.v3 import envelope
from homeport.sim.prism.v3.envelope import BASE, Json


def add_routes(routes: Routes) -> None:
    routes.add("POST", f"{BASE}/projects/list", list_projects, reads=True)
    routes.add("GET", f"{BASE}/projects/{{uuid}}", get_project, table="projects", param="uuid")
    routes.add("POST", f"{BASE}/users/list", list_users, reads=True)
    routes.add("GET", f"{BASE}/users/me", me)


def project_view(site: Site, project: Project) -> Json:
    limits = (
        ("VCPUS", project.vcpu_limit, site.core.usage.project_vcpus[project.ext_id]),
        ("MEMORY", project.memory_limit_bytes, site.core.usage.project_memory[project.ext_id]),
        ("STORAGE", project.storage_limit_bytes, site.core.usage.project_storage[project.ext_id]),
    )
    units = {"VCPUS": "COUNT", "MEMORY": "BYTES", "STORAGE": "BYTES"}
    domain = {
        "resources": [
            {"resource_type": kind, "limit": limit, "units": units[kind]} for kind, limit, _ in limits if limit
        ]
    }
    used = {
        "resources": [
            {"resource_type": kind, "limit": limit, "units": units[kind], "value": value}
            for kind, limit, value in limits
        ]
    }
    resources: Json = {
        "subnet_reference_list": [envelope.reference("subnet", each) for each in project.subnets],
        "cluster_reference_list": [envelope.reference("cluster", each) for each in project.clusters],
        "user_reference_list": [],
        "external_user_group_reference_list": [],
    }
    spec: Json = {"name": project.name, "resources": {**resources, "resource_domain": domain}}
    if project.description:
        spec["description"] = project.description
    status = {
        **spec,
        "state": "COMPLETE",
        "resources": {**resources, "is_default": project.default, "resource_domain": used},
    }
    return envelope.entity_view({**envelope.metadata(site, "project", project), "name": project.name}, spec, status)


def list_projects(site: Site, call: Call) -> Answer:
    return envelope.listed(
        call, "project", tuple(site.world.projects), lambda each: project_view(site, each), envelope.named
    )


def get_project(site: Site, call: Call) -> Answer:
    return Answer(200, project_view(site, site.find(site.world.projects, call.params["uuid"])))


def user_view(site: Site, user: User) -> Json:
    resources = {
        "user_type": "LOCAL",
        "display_name": user.display_name or user.name,
        "projects_reference_list": [],
        "access_control_policy_reference_list": [],
    }
    status = {"name": user.name, "state": "COMPLETE", "resources": resources}
    return envelope.entity_view(envelope.metadata(site, "user", user), {"resources": {}}, status)


def me(site: Site, call: Call) -> Answer:
    user = site.world.user(call.user)
    if user is None:
        raise missing("user", call.user)
    return Answer(200, user_view(site, user))


def list_users(site: Site, call: Call) -> Answer:
    return envelope.listed(call, "user", tuple(site.world.users), lambda each: user_view(site, each), envelope.named)
