"""A simulated Harvester: an embedded API server that carries the kinds of Harvester and KubeVirt, and plays their
controllers and admission.

    definition/     the kinds, as facts
    world.py        what there is at the beginning: nodes, VLANs, images, keys, classes, settings (default.yaml)
    harvester.py    `Harvester`, the whole: open it, use `client()` or `serve()`, close it
    core.py         what all controllers share
    mirror.py       the objects of the server, decoded, with indexes
    loop.py         runs one controller
    controller/     one module per kind: image, claim, volume, machine (VM), instance (VMI), launcher (Pod), keypair
    admission/      what Harvester's webhooks change and refuse
    subresource.py  start, stop and restart of VMs
    guest.py        what a VM boots from, and what its guest finds: image, cloud-init, addresses
"""
