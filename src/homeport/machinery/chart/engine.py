"""Templates of a chart and its subcharts, rendered together: they see each other's definitions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Final

from homeport.machinery.chart.context import ReleaseInfo
from homeport.machinery.chart.error import ChartError
from homeport.machinery.chart.function import convert, span, toml
from homeport.machinery.chart.function.chance import Chance
from homeport.machinery.chart.function.key import Keys
from homeport.machinery.chart.function.moment import moment_functions
from homeport.machinery.gotemplate.budget import Budget
from homeport.machinery.gotemplate.builtin import BUILTINS
from homeport.machinery.gotemplate.error import CallError, PlacedError, TemplateError
from homeport.machinery.gotemplate.execute import Definition, Run
from homeport.machinery.gotemplate.function import Function, functions
from homeport.machinery.gotemplate.parser import parse
from homeport.machinery.gotemplate.sprig import SPRIG
from homeport.machinery.gotemplate.tree import Tree, is_empty
from homeport.machinery.gotemplate.value import Int64

Lookup = Callable[[str, str, str, str], dict[str, Any]]

_STEPS: Final = 1_000_000
_WORK: Final = 10_000_000
_LARGEST: Final = 16 << 20
_LONGEST: Final = 5 << 20  # characters of a template: some are CRDs
_TPL: Final = "text of tpl in "
_REMEMBERED: Final = 1 << 16  # characters of a template that is kept in its parsed form
_SHALLOW: Final = frozenset(
    {
        "append", "coalesce", "compact", "concat", "default", "dict", "empty", "first", "get", "hasKey", "initial",
        "keys", "last", "list", "omit", "pick", "pluck", "prepend", "push", "rest", "reverse", "set", "slice",
        "ternary", "tuple", "unset", "values", "kindIs", "kindOf", "typeIs", "typeOf", "len", "index",
    }
)  # fmt: skip


def _cheaper(name: str, function: Function) -> Function:
    """The whole context goes through these in every other line of a chart, and they don't look into it."""
    plain = name.removeprefix("must")
    if plain[:1].lower() + plain[1:] not in _SHALLOW:
        return function
    return Function(function.call, function.params, function.rest, cheap=function.cheap, shallow=not function.cheap)


_OLDER_FUNCTIONS: Final = {
    **{name: _cheaper(name, each) for name, each in {**BUILTINS, **SPRIG}.items()},
    **convert.FUNCTIONS,
    **toml.FUNCTIONS,
}
_FUNCTIONS: Final = {3: _OLDER_FUNCTIONS, 4: {**_OLDER_FUNCTIONS, **convert.NEWER, **toml.NEWER, **span.FUNCTIONS}}


@dataclass(frozen=True, slots=True)
class Source:
    """A template file: its text, and the chart whose values it sees."""

    text: str
    context: dict[str, Any]
    base: str


def _parsed(text: str, major: int) -> Tree:
    if len(text) > _LONGEST:
        raise TemplateError(1, f"a template has at most {_LONGEST} characters")
    return _remembered(text, major) if len(text) <= _REMEMBERED else parse(text, names(major))


@functools.lru_cache(maxsize=2048)
def _remembered(text: str, major: int) -> Tree:
    return parse(text, names(major))


@functools.cache
def names(major: int) -> frozenset[str]:
    """All functions that templates may call."""
    return frozenset(Engine(major, ReleaseInfo(""), None).table)


class Engine:
    """Renders once: it counts its work."""

    def __init__(self, major: int, release: ReleaseInfo, lookup: Lookup | None) -> None:
        self._major = major
        self._lookup = lookup
        self._file = ""
        self._size = 0
        moment = release.time if release.time.tzinfo else release.time.replace(tzinfo=UTC)
        chance = Chance(release.seed, f"{release.namespace}/{release.name}", self._place)
        self.table = {
            **_FUNCTIONS[major],
            **moment_functions(moment),
            **chance.functions(),
            **Keys(chance, moment).functions(),
            **self._functions(),
        }
        self._budget = Budget(_STEPS, _WORK, _LARGEST)
        self._run = Run({}, self.table, self._budget, limit=_LARGEST, zero=True)

    def _place(self) -> str:
        """Without the line: a line more in a file must not make another password."""
        return f"{self._file}\0{self._run.place.name}"

    def render(self, sources: Mapping[str, Source]) -> dict[str, str]:
        """The texts of all templates that are not partials, by their paths. Raises ChartError."""
        names = sorted(sources, key=lambda path: (path.count("/"), path), reverse=True)
        known: dict[str, Definition] = {}
        for name in names:
            try:
                self._budget.read(sources[name].text)
            except CallError:
                raise ChartError(f"{name}: the templates of the chart have too many actions") from None
        for name in names:
            try:
                _define(known, name, name, _parsed(sources[name].text, self._major))
            except TemplateError as error:
                raise ChartError(f"{name}, {error}") from None
        self._run.templates = known
        rendered: dict[str, str] = {}
        for name in names:
            if not name.rpartition("/")[2].startswith("_"):
                rendered[name] = self._one(name, sources[name])
        return rendered

    def _one(self, name: str, source: Source) -> str:
        self._file = name
        source.context["Template"] = type(source.context)({"Name": name, "BasePath": source.base})
        try:
            text = self._run.text(self._run.templates[name], source.context)
        except PlacedError as error:
            within = "" if error.file == name else f" (rendering {name})"
            raise ChartError(f"{error.file or name}, line {error.line}: {error.message}{within}") from None
        self._size += len(text)
        if self._size > _LARGEST:
            raise ChartError(f"{name}: all texts together are larger than {_LARGEST} characters")
        return text.replace("<no value>", "")

    # -- functions that need the other templates -------------------------------------------------------------------

    def _functions(self) -> dict[str, Function]:
        return functions(
            {
                "include": ("string any", self._include),
                "tpl": ("string any", self._tpl),
                "required": ("string any", _required),
                "fail": ("string", _fail),
                "lookup": ("string string string string", self._look_up),
            },
            cheap=True,
        )

    def _include(self, name: str, data: object) -> str:
        definition = self._run.templates.get(name)
        if definition is None:
            raise CallError(f"no template {name!r} is defined in this chart or its subcharts")
        return self._run.text(definition, data)

    def _tpl(self, text: str, data: object) -> str:
        """Definitions of the text are known to everything that is called from it, and to nothing else."""
        run = self._run
        inside = run.place.file
        name = inside if inside.startswith(_TPL) else f"{_TPL}{inside}, line {run.line}"
        self._budget.read(text)
        try:
            tree = _parsed(text, self._major)
        except TemplateError as error:
            raise CallError(f"in the given text, {error}") from None
        outer = run.templates
        known = dict(outer)
        _define(known, "gotpl", name, tree)
        run.templates = known
        made = run.text(known["gotpl"], data)
        run.templates = outer
        return made.replace("<no value>", "")

    def _look_up(self, version: str, kind: str, namespace: str, name: str) -> dict[str, Any]:
        found = self._lookup(version, kind, namespace, name) if self._lookup is not None else {}
        made: dict[str, Any] = _as_read(found)
        return made


def _define(known: dict[str, Definition], name: str, file: str, tree: Tree) -> None:
    """A later definition replaces an earlier one, unless it is empty."""
    for each, body in {**tree.defined, name: tree.body}.items():
        if each == name and each in tree.defined and not is_empty(tree.defined[each]):
            body = tree.defined[each]
        if each not in known or not is_empty(body):
            known[each] = Definition(each, file, body)


def _as_read(value: Any) -> Any:
    """A copy of an object from the API server, whose whole numbers are int64 to Go."""
    if isinstance(value, dict):
        return {key: _as_read(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_as_read(below) for below in value]
    return Int64(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _required(message: str, value: object) -> object:
    if value is None or value == "":
        raise CallError(message)
    return value


def _fail(message: str) -> str:
    raise CallError(message)
