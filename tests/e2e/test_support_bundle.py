"""The support bundle of a plane in which secrets are planted wherever they may be: none of them is in it."""

from __future__ import annotations

import base64
import json
import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apply import apply
from homeport.machinery.yaml import load_all

pytestmark = [pytest.mark.timeout(300)]

CLUSTER = Path(__file__).parents[2] / "examples" / "02-cluster" / "cluster.yaml"
IN_SECRET = "correct-horse-in-a-secret"
IN_ANNOTATION = "correct-horse-in-an-annotation"
IN_FILE = "correct-horse-in-a-file-of-cloud-init"
IN_COMMAND = "correct-horse-in-a-command"
IN_TOKEN = "correct-horse-in-a-kubeconfig"
IN_LOG = "correct-horse-in-a-log"
IN_ENVIRONMENT = "correct-horse-in-the-environment"
IN_MAP = "correct-horse-in-a-config-map"
PLANTED = [IN_SECRET, IN_ANNOTATION, IN_FILE, IN_COMMAND, IN_TOKEN, IN_LOG, IN_ENVIRONMENT, IN_MAP]
KUBECONFIG = f"""
apiVersion: v1
kind: Config
users:
- name: you
  user:
    token: {IN_TOKEN}
"""


def planted() -> list[dict[str, Any]]:
    annotation = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps({"password": IN_ANNOTATION})}
    secret = {"password": IN_SECRET, "kubeconfig": KUBECONFIG}
    return [
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "mine", "annotations": annotation},
            "stringData": secret,
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "careless", "annotations": annotation},
            # A secret that was copied to where it does not belong, a password and a token that are in no Secret.
            "data": {"copied": f"--key={IN_SECRET}", "settings": f"password={IN_MAP}", "kubeconfig": KUBECONFIG},
        },
        {
            "apiVersion": "bootstrap.cluster.x-k8s.io/v1beta2",
            "kind": "KubeadmConfigTemplate",
            "metadata": {"name": "careless"},
            "spec": {
                "template": {
                    "spec": {
                        "files": [{"path": "/etc/key", "content": IN_FILE}],
                        "preKubeadmCommands": [f"login --with {IN_COMMAND}"],
                        "users": [{"name": "you", "passwd": IN_FILE}],
                    }
                }
            },
        },
    ]


def homeport(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "homeport", *arguments, "--data", str(data)]
    environment = {**os.environ, "PRISM_PASSWORD": IN_ENVIRONMENT}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("support")
    data, archive = folder / "data", folder / "bundle.tar.gz"
    homeport(data, "up", "--listen", "127.0.0.1:0", "--sim", "prism", "--detach")
    try:
        apply(data / "kubeconfig", [*planted(), *load_all(CLUSTER.read_text())])
        with (data / "homeport.log").open("a") as log:
            log.write(f"Authorization: Bearer {IN_LOG}\nsaid {IN_SECRET} and {IN_ENVIRONMENT}\n")
        said = homeport(data, "support-bundle", str(archive)).stdout
        assert "secrets removed" in said
        assert stat.S_IMODE(archive.stat().st_mode) == 0o600
        with tarfile.open(archive) as tar:
            found = {name.removeprefix("homeport-support/"): tar.extractfile(name) for name in tar.getnames()}
            yield {name: file.read().decode() for name, file in found.items() if file is not None}
    finally:
        homeport(data, "down")


@pytest.mark.parametrize("secret", PLANTED)
def test_a_planted_secret_is_in_no_file(files: dict[str, str], secret: str) -> None:
    coded = base64.b64encode(secret.encode()).decode().rstrip("=")[:-1]
    assert [name for name, text in files.items() if secret in text or coded in text] == []


def test_keys_and_bootstrap_data_of_clusters_are_in_no_file(files: dict[str, str]) -> None:
    text = "".join(files.values())
    assert "PRIVATE KEY" not in text
    secrets = json.loads(files["objects/secrets.json"])
    assert {"mine", "harbour-prism"} <= {each["metadata"]["name"] for each in secrets}
    values = {value for each in secrets for value in (each.get("data") or {}).values()}
    assert values == {"(removed)"}


def test_what_helps_is_there(files: dict[str, str]) -> None:
    expected = {"status.json", "metrics.txt", "versions.json", "environment.json", "doctor.json", "logs/homeport.log"}
    assert expected <= files.keys()
    assert "objects/events.json" in files or "objects/events.events.k8s.io.json" in files
    assert json.loads(files["versions.json"])["homeport"]
    assert "harbour" in files["objects/clusters.cluster.x-k8s.io.json"]
    assert "homeport_" in files["metrics.txt"]
    assert json.loads(files["environment.json"])["PRISM_PASSWORD"] == "(removed)"
