"""The guide to an installation: its commands are run one after the other on a real kube-apiserver, helm's on another."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.test_clusterctl import ROOT
from homeport.app.kubernetes.layout import placements
from homeport.app.platform import chosen
from realhelm import find_programs
from realkube import RealKube

pytestmark = [pytest.mark.timeout(600)]

PAGE = ROOT / "docs" / "howto" / "real-kubernetes.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.S | re.M)


def run(script: str, kube: RealKube, folder: Path, *programs: Path) -> str:
    """In a clone with the folders that the page names."""
    (folder / "bin").mkdir(exist_ok=True)
    command = folder / "bin" / "homeport"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m homeport "$@"\n')
    command.chmod(0o755)
    for name, program in (("kubectl", kube.binaries["kubectl"]), *(("helm", each) for each in programs)):
        (folder / "bin" / name).unlink(missing_ok=True)
        (folder / "bin" / name).symlink_to(program)
    if not (folder / "config").exists():
        (folder / "config").symlink_to(ROOT / "config")
    environment = {
        "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
        "HOME": str(folder),
        "KUBECONFIG": str(kube.kubeconfig),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_commands_of_the_guide_work(kube: RealKube, tmp_path: Path) -> None:
    for script in blocks("bash"):
        run(script, kube, tmp_path)
    assert run("kubectl get deployments -A -o name", kube, tmp_path) == ""


@pytest.mark.parametrize("version", ["helm3", "helm4"])
def test_the_chart_installs_switches_its_layout_and_goes(version: str, kube: RealKube, tmp_path: Path) -> None:
    helm = find_programs()
    if isinstance(helm, str):
        pytest.skip(helm)
    (install,) = blocks("helm")
    run(install, kube, tmp_path, helm[version])
    listed = json.loads(run("kubectl get deployments -A -o json", kube, tmp_path))["items"]
    assert [each["metadata"]["namespace"] for each in listed] == ["homeport-dashboard", "homeport-system"]
    refused = f"! homeport install --kubeconfig {kube.kubeconfig} 2>&1"
    assert "was not created by 'homeport install'" in run(refused, kube, tmp_path)
    chart = "homeport config/chart --namespace homeport-system"
    values = "--set layout=split,replicas=3,image=registry.example/homeport:2 --set-json 'options=[\"--shards\"]'"
    run(f"helm upgrade {chart} {values}", kube, tmp_path, helm[version])
    listed = json.loads(run("kubectl get deployments -A -o json", kube, tmp_path))["items"]
    assert {f"{each['metadata']['namespace']}/{each['metadata']['name']}" for each in listed} == {
        "homeport-dashboard/homeport-dashboard",
        *(str(each) for each in placements(chosen().components, "split")),
    }
    for each in (each for each in listed if each["metadata"]["name"] != "homeport-dashboard"):
        container = each["spec"]["template"]["spec"]["containers"][0]
        assert (each["spec"]["replicas"], container["image"], container["args"][-1]) == (
            3,
            "registry.example/homeport:2",
            "--shards",
        )
        assert {"name": "HOMEPORT_CCM_IMAGE", "value": "registry.example/homeport:2"} in container["env"]
    uninstall = f"homeport uninstall --kubeconfig {kube.kubeconfig}"
    assert "kept: the webhooks of Service homeport-system/homeport-webhook" in run(uninstall, kube, tmp_path)
    converted = "kubectl get crd clusters.cluster.x-k8s.io -o jsonpath={.spec.conversion.strategy}"
    assert run(converted, kube, tmp_path) == "Webhook"
    run("helm uninstall homeport --namespace homeport-system", kube, tmp_path, helm[version])
    assert run("kubectl get deployments -A -o name", kube, tmp_path) == ""
    assert "clusters.cluster.x-k8s.io" in run("kubectl get crds -o name", kube, tmp_path)
    assert "CustomResourceDefinitions serve only their newest version now" in run(uninstall, kube, tmp_path)
    assert run(converted, kube, tmp_path) == "None"
