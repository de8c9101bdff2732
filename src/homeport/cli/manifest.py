"""Manifests that commands read from files or standard input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

files = click.option(
    "-f",
    "--filename",
    "paths",
    metavar="FILE",
    multiple=True,
    required=True,
    help="Read this manifest, or all of a directory; - is stdin.",
)


def read_manifests(paths: tuple[str, ...]) -> list[dict[str, Any]]:
    """All objects of the files. Lists are taken apart."""
    from homeport.machinery.yaml import YamlError, load_all

    found: list[dict[str, Any]] = []
    for path in (file for each in paths for file in _files(each)):
        try:
            with click.open_file(path, "rb") as file:
                listed = load_all(file.read(), path if path != "-" else "stdin")
        except YamlError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            raise click.ClickException(f"-f {path}: can't be read: {error.strerror or error}") from error
        held: list[dict[str, Any]] = []
        for each in listed:
            held += each["items"] if str(each.get("kind", "")).endswith("List") and "items" in each else [each]
        _check(path, held)
        found += held
    if not found:
        raise click.ClickException(f"{', '.join(paths)}: no object found")
    return found


def _check(path: str, held: list[dict[str, Any]]) -> None:
    for number, each in enumerate(held, 1):
        if not each.get("kind") or not each.get("apiVersion") or not (each.get("metadata") or {}).get("name"):
            raise click.ClickException(f"object {number} of {path}: apiVersion, kind or metadata.name is missing")


def _files(path: str) -> list[str]:
    """The manifests of a directory, as kubectl reads them; any other path is itself."""
    folder = Path(path)
    if path == "-" or not folder.is_dir():
        return [path]
    try:
        found = [str(each) for each in sorted(folder.iterdir()) if each.suffix in (".yaml", ".yml", ".json")]
    except OSError as error:
        raise click.ClickException(f"-f {path}: can't be read: {error.strerror or error}") from error
    if not found:
        raise click.ClickException(f"-f {path}: the directory contains no .yaml, .yml or .json file")
    return found
