"""Writes what installs Homeport with kubectl, kustomize or Helm: below config/, install, chart and kustomization.yaml.

With --check nothing is written; the exit code says whether the files are what would be.
With --file FILE one file is written that is enough for `kubectl apply --server-side -f FILE` on an empty cluster.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from homeport.app.kubernetes.chart import render_chart
from homeport.app.kubernetes.file import write, write_all
from homeport.app.kubernetes.plan import Plan
from homeport.app.platform import chosen

CONFIG = Path(__file__).resolve().parent.parent / "config"
# Folders that hold nothing but what is written here.
FOLDERS = ("install", "chart")


def definition_files(plan: Plan) -> dict[str, str]:
    """Path below config/ > content, with file names as gen_crds.py has them."""
    return {_path(each): "---\n" + write(each) for each in plan.definitions()}


def _path(crd: Mapping[str, Any]) -> str:
    spec = crd["spec"]
    return f"chart/crds/{spec['group']}_{spec['names']['plural']}.yaml"


async def render() -> tuple[dict[str, str], dict[str, str]]:
    """Path below config/ > content, and path of a link > where it leads to: a definition that nothing converts is in
    config/crds already."""
    plan = Plan(chosen())
    found = definition_files(plan)
    converted = {_path(each) for each in plan.definitions() if "conversion" in each["spec"]}
    links = {path: f"../../crds/{Path(path).name}" for path in found if path not in converted}
    files = {"install/namespaces.yaml": write_all(plan.namespaces())}
    files["install/controllers.yaml"] = write_all(await plan.objects())
    files |= {path: text for path, text in found.items() if path in converted}
    resources = ["install/namespaces.yaml", *sorted(found), "install/controllers.yaml"]
    header = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    files["kustomization.yaml"] = write({**header, "resources": resources})
    return files | {f"chart/{name}": text for name, text in (await render_chart(plan)).items()}, links


def stale(files: dict[str, str], linked: dict[str, str], config: Path = CONFIG) -> list[str]:
    """Names of files that differ, are missing, or should not be there."""
    there = [path for folder in FOLDERS for path in (config / folder).rglob("*") if path.is_symlink() or path.is_file()]
    names = {str(path.relative_to(config)) for path in there} | files.keys() | linked.keys()
    return sorted(name for name in names if not _matches(config / name, files.get(name), linked.get(name)))


def _matches(path: Path, text: str | None, link: str | None) -> bool:
    if link is not None:
        return path.is_symlink() and str(path.readlink()) == link
    return text is not None and not path.is_symlink() and path.is_file() and path.read_text() == text


def _write(name: str, text: str | None, link: str | None) -> None:
    path = CONFIG / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if link is not None:
        path.symlink_to(link)
    elif text is not None:
        path.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--file", type=Path, help="write one file for kubectl, and nothing else")
    options = parser.parse_args()
    if options.file is not None:
        options.file.write_text(write_all(asyncio.run(Plan(chosen()).everything())))
        return 0
    files, links = asyncio.run(render())
    names = stale(files, links)
    if options.check:
        said = f"config/ is not what the components need: {', '.join(names)}: run tools/gen_install.py"
        print(said if names else "config/install and config/chart are up to date")
        return 1 if names else 0
    for name in names:
        _write(name, files.get(name), links.get(name))
    print(f"wrote {len(names)} of {len(files) + len(links)} files of config/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
