"""The objects of an installation: which Deployments run what, with which rights, and how."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from homeport.app.kubernetes.access import cluster_rules
from homeport.app.kubernetes.dashboard.object import DashboardOptions
from homeport.app.kubernetes.layout import COMBINED, LayoutError, find_placement, placements
from homeport.app.kubernetes.plan import Plan
from homeport.app.kubernetes.rollout import progress
from homeport.app.kubernetes.workload import INSTALLED, ImageError, PodOptions, check_image
from homeport.app.platform import chosen
from homeport.capi.component import Setup
from homeport.capi.environment import Environment
from homeport.capi.rule import Rule, merged
from homeport.client.config import Config
from homeport.client.http import HttpClient
from homeport.machinery.chart import ReleaseInfo, load_chart, render
from homeport.runtime.manager import Manager

ROOT = Path(__file__).resolve().parents[3]
SEEDS = ("capi-system/capi-controller-manager", "capx-system/capx-controller-manager")
MORE_SEEDS = ("k0smotron-system/k0smotron-controller-manager", "butler-system/butler-provider-harvester")


def _of(objects: Iterable[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    return [each for each in objects if each["kind"] == kind]


async def test_each_controller_runs_under_exactly_one_lease() -> None:
    platform = chosen()
    client = HttpClient(Config("https://localhost"))
    manager = Manager(client)
    setup = Setup(manager, Environment(client), platform.components)
    for component in platform.components:
        before = len(manager.controllers)
        component.install(setup)
        for controller in manager.controllers[before:]:
            runs = [p for p in placements(platform.components, "split") if p.runs(component, controller.name)]
            assert len({each.lease for each in runs}) == 1, (component.name, controller.name, runs)
            assert COMBINED.runs(component, controller.name)


@pytest.mark.parametrize("name", [*SEEDS, *MORE_SEEDS])
async def test_deployments_have_the_names_of_upstreams_releases_and_run_something(name: str) -> None:
    platform = chosen()
    placement = find_placement(platform.components, name)
    client = HttpClient(Config("https://localhost"))
    manager = Manager(client)
    setup = Setup(manager, Environment(client), platform.components)
    for component in platform.components:
        if placement.has(component):
            component.install(setup)
    assert any(
        placement.runs(component, controller.name)
        for component in platform.components
        if placement.has(component)
        for controller in manager.controllers
    )


def test_an_unknown_deployment_is_refused_with_the_known_names() -> None:
    with pytest.raises(LayoutError, match="capx-system/capx-controller-manager"):
        find_placement(chosen().components, "capx-system/capx")


async def test_roles_hold_what_their_components_need_and_no_more() -> None:
    platform = chosen()
    bootstrap = "capi-kubeadm-bootstrap-system/capi-kubeadm-bootstrap-controller-manager"
    rules = await cluster_rules(platform, find_placement(platform.components, bootstrap))
    writable = {
        f"{rule.group}/{resource}"
        for rule in rules
        for resource in rule.resources
        if {"create", "patch", "update", "delete"} & set(rule.verbs)
    }
    kinds = ("kubeadmconfigs", "kubeadmconfigs/status", "kubeadmconfigtemplates")  # templates report no status
    own = {f"bootstrap.cluster.x-k8s.io/{kind}" for kind in kinds}
    assert writable == {*own, "/configmaps", "/secrets", "/events", "events.k8s.io/events"}
    deletable = [resource for rule in rules if "delete" in rule.verbs for resource in rule.resources]
    assert deletable == ["configmaps"]


async def test_no_role_has_all_verbs_or_may_widen_itself() -> None:
    platform = chosen()
    for placement in [COMBINED, *placements(platform.components, "split")]:
        for rule in await cluster_rules(platform, placement):
            assert not {"*", "escalate", "bind", "impersonate"} & set(rule.verbs), rule
            assert rule.group != "*"


@pytest.mark.parametrize("layout", ["combined", "split"])
async def test_pods_are_restricted_and_spread(layout: Any) -> None:
    objects = await Plan(chosen(), layout).objects()
    deployments = _of(objects, "Deployment")
    names = Counter((each["metadata"]["namespace"], each["metadata"]["name"]) for each in deployments)
    assert set(names.values()) == {1}
    for kind in ("ServiceAccount", "Service", "PodDisruptionBudget", "NetworkPolicy"):
        there = {(each["metadata"]["namespace"], each["metadata"]["name"]) for each in _of(objects, kind)}
        assert names.keys() <= there, kind
    for each in deployments:
        pod = each["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert each["spec"]["replicas"] == (1 if each["metadata"]["name"] == "homeport-dashboard" else 2)
        assert pod["affinity"]["podAntiAffinity"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"livenessProbe", "readinessProbe", "startupProbe"} <= container.keys()
        assert container["resources"]["requests"]
    assert all(each["metadata"]["labels"][INSTALLED] == "true" for each in objects)


async def test_the_dashboard_may_do_nothing_and_has_no_token() -> None:
    objects = await Plan(chosen(), dashboard=DashboardOptions(("clusters.example.com", "10.0.0.5:8443"))).objects()
    named = {each["kind"]: each for each in objects if each["metadata"]["name"] == "homeport-dashboard"}
    assert {"Deployment", "Service", "ServiceAccount", "ConfigMap", "NetworkPolicy"} <= named.keys()
    pod = named["Deployment"]["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "homeport-dashboard"
    assert pod["automountServiceAccountToken"] is False
    assert not [each for each in pod["volumes"] if "projected" in each]
    subjects = [
        subject
        for each in (*_of(objects, "RoleBinding"), *_of(objects, "ClusterRoleBinding"))
        for subject in each["subjects"]
    ]
    assert not [each for each in subjects if each["name"] == "homeport-dashboard"]
    assert pod["containers"][0]["args"][-2:] == ["--host=clusters.example.com", "--host=10.0.0.5:8443"]
    assert named["ConfigMap"]["data"] == {"hosts": "clusters.example.com 10.0.0.5:8443"}
    without = await Plan(chosen(), dashboard=None).objects()
    assert not [each for each in without if "dashboard" in each["metadata"]["name"]]


async def test_a_deployment_of_the_split_layout_says_which_controllers_it_runs() -> None:
    objects = await Plan(chosen(), "split", PodOptions(arguments=("--shards",))).objects()
    found = {each["metadata"]["name"]: each for each in _of(objects, "Deployment")}
    arguments = found["capx-controller-manager"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--deployment=capx-system/capx-controller-manager" in arguments
    assert arguments[-1] == "--shards"


@pytest.mark.parametrize("layout", ["combined", "split"])
async def test_webhooks_are_served_by_the_replicas_of_one_deployment(layout: Any) -> None:
    plan = Plan(chosen(), layout)
    objects = await plan.objects()
    (service,) = [each for each in _of(objects, "Service") if each["metadata"]["name"] == "homeport-webhook"]
    selected = service["spec"]["selector"].items()
    serving = [
        each
        for each in _of(objects, "Deployment")
        if selected <= each["spec"]["template"]["metadata"]["labels"].items()
    ]
    (deployment,) = serving
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert "--webhook-listen=*:9443" in container["args"]
    assert {"name": "webhook", "containerPort": 9443, "protocol": "TCP"} in container["ports"]
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "webhook", "scheme": "HTTPS"}
    assert container["readinessProbe"]["periodSeconds"]
    (policy,) = [
        each for each in _of(objects, "NetworkPolicy") if each["metadata"]["name"] == deployment["metadata"]["name"]
    ]
    assert {"port": "webhook", "protocol": "TCP"} in policy["spec"]["ingress"][0]["ports"]
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"):
        (asking,) = _of(objects, kind)
        order = [each["kind"] for each in objects]
        assert order.index(kind) > order.index("Deployment")  # a replica can start without them
        for each in asking["webhooks"]:
            assert each["failurePolicy"] == "Fail"
            assert each["clientConfig"]["service"]["name"] == service["metadata"]["name"]
    converted = [each for each in plan.definitions() if "conversion" in each["spec"]]
    assert {"clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io"} <= {
        each["metadata"]["name"] for each in converted
    }
    (role,) = [
        each for each in _of(objects, "ClusterRole") if each["metadata"]["name"] == deployment["metadata"]["name"]
    ]
    (patch,) = [r for r in role["rules"] if r["resources"] == ["customresourcedefinitions"] and "patch" in r["verbs"]]
    assert set(patch["resourceNames"]) == {each["metadata"]["name"] for each in converted}


DIGEST = "sha256:" + "0123456789abcdef" * 4


@pytest.mark.parametrize(
    "image",
    [f"registry.example:5000/team/homeport@{DIGEST}", f"ghcr.io/homeport-dev/homeport:0.1.0@{DIGEST}", "homeport"],
)
async def test_an_image_may_be_named_by_digest(image: str) -> None:
    objects = await Plan(chosen(), pod=PodOptions(check_image(image))).objects()
    images = [each["spec"]["template"]["spec"]["containers"][0]["image"] for each in _of(objects, "Deployment")]
    assert images == [image, image]
    (container,) = _of(objects, "Deployment")[0]["spec"]["template"]["spec"]["containers"]
    assert {"name": "HOMEPORT_CCM_IMAGE", "value": image} in container["env"]


@pytest.mark.parametrize(
    "image", ["homeport@sha256:12", "Homeport:1", "homeport:1 ", "https://ghcr.io/homeport", "a:b:c"]
)
def test_what_is_no_image_is_refused_with_an_example(image: str) -> None:
    with pytest.raises(ImageError, match=r"REPOSITORY@sha256:DIGEST.*for example ghcr.io/"):
        check_image(image)


async def test_only_management_addons_bind_to_cluster_admin() -> None:
    for wanted in (False, True):
        objects = await Plan(chosen(), management_addons=wanted).objects()
        roles = [each["roleRef"]["name"] for each in _of(objects, "ClusterRoleBinding")]
        assert ("cluster-admin" in roles) is wanted


def test_equal_rights_share_a_rule_and_a_named_object_needs_none_that_all_have() -> None:
    rules = [
        Rule("", ("secrets",), ("get",)),
        Rule("", ("configmaps",), ("get",)),
        Rule("", ("secrets",), ("create",)),
        Rule("", ("configmaps",), ("create", "get")),
        Rule("", ("secrets",), ("get",), ("one",)),
        Rule("", ("secrets",), ("delete",), ("one",)),
    ]
    both = Rule("", ("configmaps", "secrets"), ("get", "create"))
    assert merged(rules) == [both, Rule("", ("secrets",), ("delete",), ("one",))]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ({}, "waiting for the Deployment controller"),
        ({"observedGeneration": 2}, "0 of 2 replicas updated"),
        ({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 3}, "1 old replicas remaining"),
        ({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2}, "0 of 2 replicas available"),
        ({"observedGeneration": 2, "updatedReplicas": 2, "replicas": 2, "availableReplicas": 2}, ""),
        (
            {"observedGeneration": 2, "conditions": [{"type": "ReplicaFailure", "status": "True", "message": "quota"}]},
            "Pods can't be created: quota",
        ),
    ],
)
def test_progress_says_what_is_missing(status: dict[str, Any], said: str) -> None:
    assert progress({"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status}) == said


def test_the_files_below_config_are_what_the_components_need() -> None:
    done = subprocess.run(
        [sys.executable, "tools/gen_install.py", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("layout", ["combined", "split"])
async def test_the_chart_has_the_same_objects_as_an_installation(layout: Any) -> None:
    folder = ROOT / "config" / "chart"
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    rendered = render(load_chart(files), {"layout": layout}, ReleaseInfo("homeport", "homeport-system"))
    plan = Plan(chosen(), layout)
    namespaces = [each for each in plan.namespaces() if each["metadata"]["name"] != "homeport-system"]  # of the release
    found = [yaml.load(each.text, yaml.CSafeLoader) for each in (*rendered.manifests, *rendered.crds)]
    wanted = {_shown(each) for each in [*namespaces, *plan.definitions(), *await plan.objects()]}
    assert {_shown(each) for each in found} ^ wanted == set()


def _shown(obj: Mapping[str, Any]) -> str:
    """Without what says who installed it, and without an empty list."""
    shown = json.loads(json.dumps(obj))
    shown["metadata"].pop("labels", None)
    annotations = shown["metadata"].pop("annotations", {})
    shown["annotations"] = {name: value for name, value in annotations.items() if not name.startswith("helm.sh/")}
    if obj["kind"] == "Deployment" and not shown["spec"]["template"]["spec"].get("imagePullSecrets"):
        shown["spec"]["template"]["spec"].pop("imagePullSecrets", None)
    return json.dumps(shown, sort_keys=True)
