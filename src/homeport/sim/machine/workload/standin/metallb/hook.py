"""What MetalLB's validating webhook refuses."""

from __future__ import annotations

from homeport.sim.machine.workload.kind import Json
from homeport.sim.machine.workload.standin.metallb.kind import POOL
from homeport.sim.machine.workload.standin.metallb.pool import PoolProblem, check_overlap, parse_pool
from homeport.sim.machine.workload.standin.review import Store, objects


def check_review(store: Store, request: Json) -> str:
    """Why the request is refused; '' if it is not."""
    if (request.get("kind") or {}).get("kind") != POOL.kind or request.get("operation") not in ("CREATE", "UPDATE"):
        return ""
    new = request["object"]
    own = (new["metadata"].get("namespace"), new["metadata"].get("name"))
    try:
        pool = parse_pool(new)
        others = [
            parse_pool(each)
            for each in objects(store, POOL.qualified)
            if (each["metadata"].get("namespace"), each["metadata"]["name"]) != own
        ]
        check_overlap([*others, pool])
    except PoolProblem as problem:
        return str(problem)
    return ""
