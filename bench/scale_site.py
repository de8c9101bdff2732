"""A simulated Nutanix site with its machines, in a process of its own: `python bench/scale_site.py FOLDER`.

Prints its addresses as a line of JSON and ends with whoever started it.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

from process import end_with_parent  # noqa: E402

_LARGE = {"memory_bytes": 1 << 50, "cores": 1 << 18, "threads": 1 << 19}


async def _serve(folder: Path) -> None:
    import structlog

    from capikit.world import Site
    from homeport.app.memory import tune_garbage_collection

    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    site = Site(folder, _world())
    print(json.dumps(await site.start()), flush=True)
    tune_garbage_collection()
    running = asyncio.create_task(site.run())
    asking = asyncio.create_task(asyncio.to_thread(sys.stdin.readline))
    await asyncio.wait({asking, running}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    running.cancel()


def _world() -> Any:
    """The usual one, with addresses, hosts and disks for ten thousand machines and their replacements."""
    from msgspec.structs import replace

    from homeport.sim.prism.world import default_world

    found = default_world()
    roomy = {"cidr": "10.64.0.0/14", "gateway": "10.64.0.1", "dhcp_server": "", "pools": ("10.64.1.1-10.64.255.250",)}
    return replace(
        found,
        subnets=tuple(replace(each, **roomy) if each.name == "vm-network" else each for each in found.subnets),
        containers=tuple(replace(each, capacity_bytes=1 << 60) for each in found.containers),
        clusters=tuple(
            replace(each, hosts=tuple(replace(host, **_LARGE) for host in each.hosts)) for each in found.clusters
        ),
    )


class SiteProcess:
    """For the time of a with block."""

    def __enter__(self) -> SiteProcess:
        self._folder = tempfile.TemporaryDirectory(prefix="homeport-site-")
        self._log = Path(self._folder.name) / "log"
        with open(self._log, "wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, __file__, self._folder.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                start_new_session=True,  # Ctrl-C is for whoever started it
                preexec_fn=end_with_parent,
            )
        self.pid = self._process.pid
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the simulated site ended:\n{self._log.read_text()[-3000:]}")
        facts = json.loads(line)
        self.options = ("--proxy", facts["proxy"], "--trust", facts["authority"])
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()


if __name__ == "__main__":
    import uvloop

    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    uvloop.run(_serve(Path(sys.argv[1])))
