"""The role of an installation, for controllers that a test runs itself: they may do what the installed ones may."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from homeport.app.kubernetes.layout import NAME, SYSTEM_NAMESPACE
from homeport.app.kubernetes.plan import Plan
from homeport.app.platform import chosen
from realkube import RealKube

USER = f"system:serviceaccount:{SYSTEM_NAMESPACE}:{NAME}"


async def role_kubeconfig(kube: RealKube, others: Iterable[Mapping[str, Any]] = ()) -> Path:
    """A kubeconfig of the installed ServiceAccount. `others`: definitions of a provider that is not part of Homeport.

    Its author grants access to them with a labelled ClusterRole. The controller that adds those up does not run here.
    """
    objects = [each for each in await Plan(chosen()).objects() if each["kind"] in ("ClusterRole", "ClusterRoleBinding")]
    (role,) = [each for each in objects if each["kind"] == "ClusterRole" and each["metadata"]["name"] == NAME]
    role["rules"] += [_everything(each["spec"]) for each in others]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    done = await asyncio.to_thread(kube.kubectl, "apply", "--server-side", "-f", "-", stdin=json.dumps(listed))
    assert done.returncode == 0, done.stderr
    config = json.loads(kube.kubeconfig.read_text())
    config["users"][0]["user"]["as"] = USER
    path = kube.dir / "role.kubeconfig"
    path.touch(mode=0o600)
    path.write_text(json.dumps(config))
    return path


def _everything(spec: Mapping[str, Any]) -> dict[str, Any]:
    plural = spec["names"]["plural"]
    return {"apiGroups": [spec["group"]], "resources": [plural, f"{plural}/status"], "verbs": ["*"]}
