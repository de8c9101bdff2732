"""The `homeport` command. Each verb is a module in a folder beside this one, imported when it is called."""

from __future__ import annotations

import errno
import importlib
import keyword
import sys
from typing import Any

import click

from homeport.cli.group import Group

# Section of the help > the folder of its verbs > verb > help in one line.
_SECTIONS = {
    "The plane": (
        "plane",
        {
            "up": "Start the management plane.",
            "down": "Stop the management plane.",
            "status": "Show the plane's address, its clusters and what is stuck.",
            "dashboard": "Open the dashboard in a browser, logged in as you.",
            "env": "Print shell commands that set up kubectl, curl and helm.",
            "backup": "Write the database and keys to one file, also while the plane runs.",
            "restore": "Replace the database and keys with those of a backup.",
            "support-bundle": "Write everything that helps to find a defect to one file, without secrets.",
        },
    ),
    "Clusters": (
        "cluster",
        {
            "create": "Create a cluster: choose, get a manifest, see the plan, apply it.",
            "plan": "Show what a manifest will create, replace or delete, without writing anything.",
            "preflight": "Check a manifest or a cluster at its provider, before anything is created.",
            "describe": "Show how a cluster is, why it is not ready, and all its objects.",
            "tree": "Draw the objects of clusters as trees.",
            "discover": "List images, networks, clusters and storage of a hypervisor.",
            "image": "List images of a hypervisor, and bring more there.",
            "kubeconfig": "Get a kubeconfig of a cluster.",
            "doctor": "Find out what is wrong with clusters, and how to cure it.",
            "logs": "Print what the controllers have logged about one object.",
            "console": "Print the console log of a machine.",
            "ssh": "Log in to a machine.",
            "top": "Show CPU, memory and disk of clusters and machines.",
            "upgrade": "Upgrade a cluster to another Kubernetes version, with a plan.",
            "heal": "Replace a machine now, as a health check does.",
            "rollout": "Manage rollouts: status, history, pause, resume, restart, undo.",
            "import": "Bring clusters that kubeadm created under management.",
            "move": "Move clusters to another plane or into a directory.",
            "orphans": "List, adopt or remove VMs of a cluster that belong to no object.",
        },
    ),
    "Other Kubernetes clusters": (
        "kubernetes",
        {
            "install": "Install the controllers on a Kubernetes cluster.",
            "uninstall": "Remove the controllers from a Kubernetes cluster; clusters stay.",
            "bootstrap": "Create a management cluster from nothing and move this plane into it.",
            "init": "Set up a running plane for k0rdent, as helm install kcm does.",
            "ccm": "Run the cloud controller manager of a workload cluster.",
        },
    ),
    "Charts and add-ons": (
        "charts",
        {
            "chart": "Render Helm charts and manage their releases.",
            "addons": "Show the catalogue of add-ons and fetch its charts.",
        },
    ),
    "Other": (
        "",
        {
            "sim": "Simulate infrastructure, also for your own clients.",
            "completion": "Print a script that completes commands in your shell.",
            "version": "Print the version.",
        },
    ),
}
_FOLDERS = {verb: folder for folder, verbs in _SECTIONS.values() for verb in verbs}


def _module(verb: str) -> str:
    """`homeport up` is homeport.cli.plane.up; a dash, and a word that Python keeps for itself, become underscores."""
    name = verb.replace("-", "_") + ("_" if keyword.iskeyword(verb) else "")
    return ".".join(part for part in ("homeport.cli", _FOLDERS[verb], name) if part)


class _Lazy(Group):
    """Knows the verbs without importing them: the command line stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_FOLDERS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _FOLDERS:
            return None
        command: click.Command = importlib.import_module(_module(name)).command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """What the operating system refuses is a message with a cure, for every verb."""
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.errno == errno.EPIPE:  # nobody reads any more; click ends quietly
                raise
            from homeport.cli.oserror import explain

            raise click.ClickException(explain(error)) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, (_, verbs) in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl(list(verbs.items()))


def _print_version(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked:
        from homeport.cli.version import command

        context.invoke(command)
        context.exit()


@click.command(cls=_Lazy, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version, help="Print the version."
)
def group() -> None:
    """Kubernetes clusters on the hypervisors you own."""


def main(args: list[str] | None = None) -> Any:
    from homeport.app.log import leave_rich_out
    from homeport.cli.charset import degrade

    leave_rich_out()
    for stream in (sys.stdout, sys.stderr):
        degrade(stream)
    return group(args=args, prog_name="homeport")


if __name__ == "__main__":
    main()
