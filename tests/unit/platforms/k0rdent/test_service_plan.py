"""Which services a cluster gets now: steps along a chain, dependencies, what stays as it is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.api.k0rdent.v1beta1 import ServiceSet, ServiceTemplate, ServiceTemplateChain
from homeport.api.k0rdent.v1beta1.service import Service
from homeport.platforms.k0rdent.service.plan import Shelf, dependency_problems, ordered, plan
from homeport.platforms.k0rdent.service.step import choose

LINKS = {"web-1": ["web-2", "web-3"], "web-2": ["web-3"], "web-3": ["web-4"], "web-4": [], "other": []}
VERSIONS = {"web-1": "1.0.0", "web-2": "1.2.0", "web-3": "1.10.0", "web-4": "2.0.0"}


def chain(links: dict[str, list[str]]) -> ServiceTemplateChain:
    listed = [{"name": name, "availableUpgrades": [{"name": up} for up in ups]} for name, ups in links.items()]
    return msgspec.convert({"spec": {"supportedTemplates": listed}}, ServiceTemplateChain)


def service(name: str = "web", template: str = "web-1", **more: Any) -> Service:
    return msgspec.convert({"name": name, "namespace": "apps", "template": template, **more}, Service)


@pytest.mark.parametrize(
    ("stored", "deployed", "goal", "chosen", "refused"),
    [
        ("", False, "web-3", "web-3", False),  # a new service begins with what is written
        ("web-1", True, "web-1", "web-1", False),
        ("web-1", True, "web-3", "web-2", False),  # the smallest step, though a longer one is listed
        ("web-2", True, "web-4", "web-3", False),
        ("web-2", False, "web-4", "web-2", False),  # a step that is not deployed is not left behind
        ("web-2", False, "web-1", "web-1", False),  # but it can be taken back
        ("web-2", True, "web-1", "web-2", True),
        ("web-1", True, "other", "web-1", True),
        ("web-1", True, "missing", "web-1", True),
    ],
)
def test_a_chain_is_followed_step_by_step(stored: str, deployed: bool, goal: str, chosen: str, refused: bool) -> None:
    wanted = service(template=goal, templateChain="web")
    found = choose(wanted, chain(LINKS), stored, deployed=deployed, versions=VERSIONS)
    assert (found.template, bool(found.refusal)) == (chosen, refused)


def test_without_versions_to_compare_the_shortest_way_counts() -> None:
    wanted = service(template="web-4", templateChain="web")
    assert choose(wanted, chain(LINKS), "web-1", deployed=True, versions={}).template == "web-3"


def test_services_come_after_those_that_they_depend_on_and_otherwise_as_written() -> None:
    first = service("a", dependsOn=[{"name": "c", "namespace": "apps"}])
    assert [each.name for each in ordered([first, service("b"), service("c")])] == ["b", "c", "a"]
    circle = [first, service("c", dependsOn=[{"name": "a", "namespace": "apps"}])]
    assert "apps/a -> apps/c -> apps/a" in dependency_problems(circle)[0]


def held(template: str, state: str, version: str) -> ServiceSet:
    known = {"name": "db", "namespace": "apps", "template": template, "version": version}
    status = {"services": [{**known, "type": "Helm", "state": state, "lastStateTransitionTime": "t"}]}
    spec = {"cluster": "one", "provider": {}, "services": [known, {**known, "name": "web", "values": "old: 1"}]}
    return msgspec.convert({"spec": spec, "status": status}, ServiceSet)


def test_a_service_stays_as_it_is_while_what_it_depends_on_is_being_changed() -> None:
    templates = {name: msgspec.convert({"spec": {"version": each}}, ServiceTemplate) for name, each in VERSIONS.items()}
    shelf = Shelf(templates, {})
    services = [
        service("db", "web-1"),
        service("web", "web-1", values="new: 1", dependsOn=[{"name": "db", "namespace": "apps"}]),
        service("late", "web-1", dependsOn=[{"name": "web", "namespace": "apps"}]),
        service("off", "web-1", disable=True),
    ]
    waiting = plan(services, held("web-1", "Provisioning", "1.0.0"), shelf, "now")
    assert [(each.name, each.values) for each in waiting.services] == [("db", ""), ("web", "old: 1")]
    assert [(each.name, each.failure_message) for each in waiting.pending] == [
        ("late", "waits for service apps/web"),
        ("off", "disabled"),
    ]
    ready = plan(services, held("web-1", "Deployed", "1.0.0"), shelf, "now")
    assert [(each.name, each.values) for each in ready.services] == [("db", ""), ("web", "new: 1")]


def test_a_step_on_the_way_has_its_own_version() -> None:
    templates = {name: msgspec.convert({"spec": {"version": each}}, ServiceTemplate) for name, each in VERSIONS.items()}
    wanted = [service("db", "web-3", templateChain="web", version="9.9.9")]
    found = plan(wanted, held("web-1", "Deployed", "1.0.0"), Shelf(templates, {"web": chain(LINKS)}), "now")
    assert [(each.template, each.version) for each in found.services] == [("web-2", "1.2.0")]
