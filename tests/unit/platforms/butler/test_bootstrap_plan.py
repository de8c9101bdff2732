"""Plans of a management cluster: machines, Talos configuration, where etcd starts, add-ons, phases."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from homeport.api.butler.v1alpha1 import ClusterBootstrap, ProviderConfig
from homeport.machinery import yaml
from homeport.machinery.talos.config import MachineShape, render_config
from homeport.platforms.butler.bootstrap.addon import bootstrap_addons
from homeport.platforms.butler.bootstrap.plan import PlaneSeen, Start, plan_cluster, plan_etcd, plan_machines
from homeport.platforms.butler.bootstrap.scope import BootstrapScope, Children
from homeport.platforms.butler.bootstrap.secret import machine_config
from homeport.platforms.butler.bootstrap.state import phase_of
from homeport.platforms.butler.normal.bootstrap import BootstrapModel, normal_cluster_bootstrap
from homeport.platforms.butler.normal.provider import normal_provider_config
from homeport.platforms.butler.tenant.provider import Provider
from homeport.providers.harvester.platform import PLATFORM
from homeport.runtime.outcome import Wait
from homeport.sim.machine.talos.check import check_config
from present import present
from unit.machinery.talos.talos_kit import bundle, needs_reference, schema_errors

VIP = "10.0.0.9"


def model(**spec: Any) -> BootstrapModel:
    body = {
        "metadata": {"name": "mgmt", "namespace": "butler-system"},
        "spec": {"providerRef": {"name": "site"}, "network": {"vip": VIP}, **spec},
    }
    return present(normal_cluster_bootstrap(msgspec.convert(body, ClusterBootstrap, strict=False)).model)


def single(**cluster: Any) -> BootstrapModel:
    return model(cluster={"topology": "single-node", **cluster}, network={})


# -- machines ------------------------------------------------------------------------------------------------------


def test_control_planes_come_first_and_no_workers_are_no_machines() -> None:
    assert [each.name for each in plan_machines(model())] == ["mgmt-cp-0", "mgmt-cp-1", "mgmt-cp-2"]
    assert [each.name for each in plan_machines(single())] == ["mgmt-cp-0"]
    several = plan_machines(model(cluster={"workers": {"replicas": 2}}))
    assert [each.name for each in several[3:]] == ["mgmt-worker-0", "mgmt-worker-1"]
    assert (several[3].size.cpu, several[3].size.memory_mib, several[3].size.disk_gib) == (8, 32768, 200)
    assert plan_machines(model(cluster={"workers": {"replicas": 0}})) == plan_machines(model())


# -- Talos -----------------------------------------------------------------------------------------------------------


def rendered(found: BootstrapModel, endpoint: str = VIP, worker: bool = False) -> dict[str, Any]:
    shape = plan_cluster(found, endpoint, "ens3")
    text = render_config("worker" if worker else "controlplane", shape, MachineShape("a", {}), bundle())
    check_config(text.encode())
    made: dict[str, Any] = yaml.load(text)
    return made


def test_kube_vip_holds_the_virtual_address_on_the_interface_of_the_provider() -> None:
    made = rendered(model())
    assert made["cluster"]["controlPlane"]["endpoint"] == f"https://{VIP}:6443"
    (manifest,) = made["cluster"]["inlineManifests"]
    assert "ens3" in manifest["contents"]
    named = model(network={"vip": VIP, "vipInterface": "eth7"}, addons={"controlPlaneHA": {"version": "v0.8.7"}})
    contents = rendered(named)["cluster"]["inlineManifests"][0]["contents"]
    assert "eth7" in contents
    assert "kube-vip:v0.8.7" in contents
    outside = rendered(model(addons={"controlPlaneHA": {"type": "none"}}))
    assert "inlineManifests" not in outside["cluster"]
    assert outside["cluster"]["controlPlane"]["endpoint"] == f"https://{VIP}:6443"


def test_pods_run_on_control_planes_if_there_are_no_workers() -> None:
    assert rendered(single(), "10.0.0.30")["cluster"]["allowSchedulingOnControlPlanes"] is True
    assert "allowSchedulingOnControlPlanes" not in rendered(model(cluster={"workers": {"replicas": 1}}))["cluster"]


def test_cilium_takes_the_place_of_kube_proxy_and_another_network_does_not() -> None:
    assert rendered(model())["cluster"]["proxy"] == {"disabled": True}
    assert "image" in rendered(model(addons={"cni": {"type": "none"}}))["cluster"]["proxy"]


def test_longhorn_shares_its_folder_with_kubelets_and_patches_of_users_come_last() -> None:
    patches = [{"op": "add", "path": "/machine/kubelet/extraMounts/0/type", "value": "none"}]
    made = rendered(model(talos={"version": "v1.9.3", "configPatches": patches}), worker=True)
    (mount,) = made["machine"]["kubelet"]["extraMounts"]
    assert (mount["destination"], mount["type"]) == ("/var/lib/longhorn", "none")
    assert "extraMounts" not in rendered(model(addons={"storage": {"type": "none"}}))["machine"]["kubelet"]


def test_the_schematic_chooses_the_installer() -> None:
    made = rendered(model(talos={"version": "v1.10.1", "schematic": "abc"}))
    assert made["machine"]["install"]["image"] == "factory.talos.dev/installer/abc:v1.10.1"
    assert made["machine"]["kubelet"]["image"].endswith(":v1.33.6")


SPECS: list[dict[str, Any]] = [
    {"cluster": {"workers": {"replicas": 1, "labels": {"zone": "a"}}}},
    {"cluster": {"topology": "single-node"}, "network": {}},
    {
        "network": {"vip": VIP, "podCIDR": "10.200.0.0/16"},
        "addons": {"cni": {"type": "none"}, "storage": {"type": "none"}, "controlPlaneHA": {"type": "none"}},
        "talos": {
            "version": "v1.9.6",
            "schematic": "abc",
            "installDisk": "/dev/sda",
            "configPatches": [{"op": "add", "path": "/machine/sysctls", "value": "{net.core.somaxconn: '65535'}"}],
        },
    },
]


@needs_reference
@pytest.mark.parametrize("spec", SPECS)
def test_talos_own_schema_accepts_the_configuration_of_every_machine(spec: dict[str, Any]) -> None:
    """The very text that machines boot with or are sent."""
    body = {"metadata": {"name": "mgmt", "namespace": "butler-system"}, "spec": {"network": {"vip": VIP}, **spec}}
    obj = msgspec.convert(body, ClusterBootstrap, strict=False)
    site = {"type": "harvester", "harvester": {"credentialsRef": {"name": "site"}}}
    config = msgspec.convert({"metadata": {"name": "site"}, "spec": site}, ProviderConfig)
    scope = BootstrapScope(obj, Children())
    scope.model = present(normal_cluster_bootstrap(obj).model)
    scope.bundle, scope.endpoint = bundle(), scope.model.vip or "10.0.0.30"
    scope.provider = Provider(config, present(normal_provider_config(config).model), PLATFORM, None)
    for plan in plan_machines(scope.model):
        made = yaml.load(machine_config(scope, plan))
        assert made["machine"]["network"]["hostname"] == plan.name
        assert schema_errors("v1.9", made) == []


# -- etcd ------------------------------------------------------------------------------------------------------------

A, B, C = (PlaneSeen(f"mgmt-cp-{n}", f"uid-{n}") for n in range(3))
SILENT = PlaneSeen("mgmt-cp-2", "uid-2", trouble="no answer")
RUNS = PlaneSeen("mgmt-cp-1", "uid-1", etcd=True)


@pytest.mark.parametrize(
    ("seen", "mark", "initialized", "expected"),
    [
        ((A, B, C), "", False, A),
        ((A, B, C), B.mark, False, B),  # whoever was asked first is asked again
        ((A, B, SILENT), "", False, "WaitingForTalos"),  # it may run etcd
        ((A, B, SILENT), A.mark, False, "WaitingForTalos"),
        ((A, RUNS, C), "", False, None),
        ((A, RUNS, SILENT), A.mark, False, None),
        ((A, B, C), "mgmt-cp-0/another-uid", False, "EtcdMachineLost"),
        ((A, B, C), "mgmt-cp-9/uid-9", False, "EtcdMachineLost"),
        ((A, B, C), "", True, None),  # its API server has answered before
        ((SILENT, SILENT, SILENT), A.mark, True, None),
    ],
)
def test_etcd_is_started_once_and_only_where_nothing_speaks_against_it(
    seen: tuple[PlaneSeen, ...], mark: str, initialized: bool, expected: Any
) -> None:
    step = plan_etcd(seen, mark, initialized=initialized)
    if isinstance(expected, PlaneSeen):
        assert step == Start(expected)
    elif expected is None:
        assert step is None
    else:
        assert isinstance(step, Wait)
        assert step.reason == expected


# -- add-ons -------------------------------------------------------------------------------------------------------


def names(found: BootstrapModel) -> list[str]:
    return [each.addon for each in bootstrap_addons(found)]


def test_what_is_not_mentioned_is_installed_and_what_is_turned_off_is_not() -> None:
    pool = {"platform": {"metalLBPool": "10.0.0.20-10.0.0.30"}}
    assert names(model(**pool)) == ["cilium", "metallb", "cert-manager", "longhorn", "traefik", "flux"]
    assert "metallb" not in names(model())
    off = {
        "cni": {"type": "none"},
        "storage": {"type": "none"},
        "loadBalancer": {"type": "none"},
        "certManager": {"enabled": False},
        "ingress": {"enabled": False},
        "gitOps": {"type": "none"},
    }
    assert names(model(**pool, addons=off)) == []


def test_add_ons_fit_talos_and_the_number_of_machines() -> None:
    made = {each.addon: each for each in bootstrap_addons(model())}
    assert made["cilium"].values["k8sServicePort"] == 7445
    assert made["cilium"].values["cgroup"]["autoMount"] == {"enabled": False}
    assert made["cilium"].parameters == {"kubeProxyReplacement": True, "hubble": True}
    assert made["longhorn"].parameters == {"replicas": 3}
    assert {each.addon: each for each in bootstrap_addons(single())}["longhorn"].parameters == {"replicas": 1}


# -- phases ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("true", "more", "phase"),
    [
        ((), {}, "Pending"),
        (("ProviderReady", "ImageReady"), {}, "ProvisioningMachines"),
        (("ProviderReady", "ImageReady", "MachinesReady"), {}, "ConfiguringTalos"),
        (("ProviderReady", "ImageReady", "MachinesReady", "TalosConfigured"), {}, "BootstrappingCluster"),
        (
            ("ProviderReady", "ImageReady", "MachinesReady", "TalosConfigured", "ControlPlaneReady"),
            {},
            "InstallingAddons",
        ),
        (("Ready",), {}, "Ready"),
        ((), {"failed": True}, "Failed"),
        ((), {"before": "Ready"}, "InstallingAddons"),
        (("Ready",), {"deleting": True}, "Deleting"),
        ((), {"pivoting": True}, "Pivoting"),
        (("Pivoted",), {"pivoting": True}, "Ready"),
    ],
)
def test_the_phase_follows_from_the_conditions(true: tuple[str, ...], more: dict[str, Any], phase: str) -> None:
    given = {"deleting": False, "failed": False, "pivoting": False, "before": "", **more}
    assert phase_of(dict.fromkeys(true, True), **given) == phase
