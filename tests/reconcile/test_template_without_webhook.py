"""Templates keep the spec that machines were made from, on servers that ask no webhook of ours."""

from __future__ import annotations

import pytest

from homeport.api.meta import Resource
from homeport.app.platform import chosen
from homeport.capi.definition.stored import stored_alone
from homeport.client.errors import Invalid
from homeport.client.protocol import Key, MergePatch
from homeport.runtime.testing import plane

# Their change would reach some machines and not others. The configuration of kubeadm and k0s workers may change: new
# machines get it, and those that exist are not replaced.
KINDS = (
    "KamajiControlPlaneTemplate", "K0sControlPlaneTemplate", "K0smotronControlPlaneTemplate",
    "KubeadmControlPlaneTemplate", "KubevirtClusterTemplate", "KubevirtMachineTemplate", "NutanixClusterTemplate",
    "NutanixMachineTemplate", "RemoteClusterTemplate", "RemoteMachineTemplate", "StewardControlPlaneTemplate",
)  # fmt: skip
PART = "x-kubernetes-preserve-unknown-fields"


@pytest.mark.parametrize("kind", KINDS)
async def test_a_changed_template_is_refused_by_its_definition(kind: str) -> None:
    (found,) = [each for each in chosen().definitions() if each["spec"]["names"]["kind"] == kind]
    shipped = stored_alone(found)
    (version,) = shipped["spec"]["versions"]
    spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["template"]["properties"]["spec"]
    # Only the rule is of interest here: any content.
    spec.pop("required", None)
    spec.pop("properties", None)
    spec[PART] = True
    spec["x-kubernetes-validations"] = [each for each in spec["x-kubernetes-validations"] if "oldSelf" in each["rule"]]
    names = shipped["spec"]["names"]
    resource = Resource(shipped["spec"]["group"], version["name"], kind, names["plural"])
    async with plane(crds=[shipped]) as p:
        meta = {"name": "t", "namespace": "default"}
        body = {"apiVersion": resource.api_version, "kind": kind, "metadata": meta}
        await p.client.create({**body, "spec": {"template": {"spec": {"size": "1"}}}}, kind=resource)
        with pytest.raises(Invalid, match="create a template with another name"):
            await p.client.patch(
                resource, Key("default", "t"), MergePatch({"spec": {"template": {"spec": {"size": "2"}}}})
            )
        await p.client.patch(resource, Key("default", "t"), MergePatch({"metadata": {"labels": {"still": "possible"}}}))
