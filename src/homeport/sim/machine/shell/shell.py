"""Enough of a shell for the commands of user data: lists, pipes, redirections, if/for/while/case, variables,
here-documents.

Programs come from a table, or are files on the disk. Of those that the machine is known to have besides, nothing is
done: they are taken to succeed, and the console says so. Any other is not found.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from homeport.sim.machine.console import Console
from homeport.sim.machine.disk import Disk
from homeport.sim.machine.shell.parse import (
    AndOr,
    Case,
    Command,
    For,
    Function,
    Group,
    If,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Sequence,
    Simple,
    parse,
)
from homeport.sim.machine.shell.token import SyntaxProblem
from homeport.sim.machine.shell.word import Expander, plain_name

NOT_FOUND = 127
NOT_EXECUTABLE = 126
_PATH = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin")
_SHELLS = ("sh", "bash", "dash", "ash")
_MOST_ROUNDS = 1000


@dataclass(slots=True)
class Ran:
    code: int = 0
    out: str = ""


@dataclass(slots=True)
class Invocation:
    """One run of a program."""

    shell: Shell
    args: list[str]  # the program's name first
    env: dict[str, str]
    stdin: str = ""

    def fail(self, text: str, code: int = 1) -> Ran:
        self.shell.console.say(text)
        return Ran(code)


Program = Callable[[Invocation], Awaitable[Ran]]


class _Exit(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class Shell:
    disk: Disk
    console: Console
    programs: Mapping[str, Program]
    env: dict[str, str] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)  # programs of this machine that change nothing here
    code: int = 0
    strict: bool = False  # set -e
    _functions: dict[str, Node] = field(default_factory=dict)

    async def script(self, text: str) -> int:
        """Runs a whole script; what it prints goes to the console."""
        ran = await self.run(text)
        self.print(ran.out)
        return ran.code

    async def run(self, text: str) -> Ran:
        """Runs a whole script; only what it reports as an error goes to the console."""
        try:
            tree = parse(text)
        except SyntaxProblem as problem:
            self.console.say(f"sh: {problem}")
            return Ran(2)
        try:
            return await self._run(tree, "")
        except _Exit as left:
            return Ran(left.code)

    def print(self, text: str) -> None:
        if text.strip():
            self.console.say(text)

    async def capture(self, text: str) -> str:
        """`$(...)`."""
        try:
            return (await self._run(parse(text), "")).out.rstrip("\n")
        except (SyntaxProblem, _Exit):
            return ""

    # -- the tree ----------------------------------------------------------------------------------------------

    async def _run(self, node: Node, stdin: str) -> Ran:
        match node:
            case Sequence(items):
                return await self._sequence(items, stdin)
            case AndOr(first, rest):
                return await self._and_or(first, rest, stdin)
            case Pipeline(commands, negated):
                ran = await self._pipeline(commands, stdin)
                return Ran(int(ran.code == 0), ran.out) if negated else ran
            case If(branches, otherwise):
                return await self._if(branches, otherwise, stdin)
            case For(name, words, body):
                return await self._for(name, words, body, stdin)
            case Loop(test, body, until):
                return await self._loop(test, body, until, stdin)
            case Case(word, branches):
                return await self._case(word, branches, stdin)
            case Function(name, body):
                self._functions[name] = body
                return Ran()
            case Group(body, redirects):
                ran = await self._run(body, stdin)
                return await self._redirect(ran, redirects)
            case Simple():
                return await self._simple(node, stdin)
        raise AssertionError(node)

    async def _sequence(self, items: list[Node], stdin: str) -> Ran:
        out, code = "", 0
        for item in items:
            ran = await self._run(item, stdin)
            out, code = out + ran.out, ran.code
            self.code = code
            if code and self.strict and not isinstance(item, AndOr):
                raise _Exit(code)
        return Ran(code, out)

    async def _and_or(self, first: Node, rest: list[tuple[str, Node]], stdin: str) -> Ran:
        total = await self._run(first, stdin)
        for operator, command in rest:
            if (operator == "&&") == (total.code == 0):
                ran = await self._run(command, stdin)
                total = Ran(ran.code, total.out + ran.out)
        return total

    async def _pipeline(self, commands: list[Command], stdin: str) -> Ran:
        ran = Ran(0, stdin)
        for command in commands:
            ran = await self._run(command, ran.out)
        return ran

    async def _if(self, branches: list[tuple[Node, Node]], otherwise: Node | None, stdin: str) -> Ran:
        out = ""
        for test, body in branches:
            strict, self.strict = self.strict, False
            tested = await self._run(test, stdin)
            self.strict = strict
            out += tested.out
            if tested.code == 0:
                ran = await self._run(body, stdin)
                return Ran(ran.code, out + ran.out)
        if otherwise is None:
            return Ran(0, out)
        ran = await self._run(otherwise, stdin)
        return Ran(ran.code, out + ran.out)

    async def _for(self, name: str, words: list[str], body: Node, stdin: str) -> Ran:
        total = Ran()
        for value in await self._expander().fields(words):
            self.env[name] = value
            ran = await self._run(body, stdin)
            total = Ran(ran.code, total.out + ran.out)
        return total

    async def _loop(self, test: Node, body: Node, until: bool, stdin: str) -> Ran:
        total = Ran()
        for _ in range(_MOST_ROUNDS):
            strict, self.strict = self.strict, False
            tested = await self._run(test, stdin)
            self.strict = strict
            if (tested.code == 0) == until:
                return total
            ran = await self._run(body, stdin)
            total = Ran(ran.code, total.out + ran.out)
        self.console.say("sh: a loop did not end")
        return Ran(1, total.out)

    async def _case(self, word: str, branches: list[tuple[list[str], Node]], stdin: str) -> Ran:
        expander = self._expander()
        text = await expander.text(word)
        for patterns, body in branches:
            for pattern in patterns:
                if fnmatchcase(text, await expander.text(pattern)):
                    return await self._run(body, stdin)
        return Ran()

    # -- one command -------------------------------------------------------------------------------------------

    def _expander(self) -> Expander:
        return Expander({**self.env, "?": str(self.code)}, self.capture)

    async def _simple(self, command: Simple, stdin: str) -> Ran:
        expander = self._expander()
        given = {name: await expander.text(value) for name, value in command.assignments}
        args = await expander.fields(command.words)
        for redirect in command.redirects:
            if redirect.operator == "<":
                stdin = self.disk.text(await expander.text(redirect.target)) or ""
            elif redirect.operator == "<<":
                stdin = await expander.document(redirect.target) if redirect.expands else redirect.target
        if not args:
            self.env.update(given)
            return await self._redirect(Ran(), command.redirects)
        ran = await self.invoke(args, given, stdin)
        return await self._redirect(ran, command.redirects)

    async def invoke(self, args: list[str], env: Mapping[str, str] = {}, stdin: str = "") -> Ran:
        """Runs a program by its arguments."""
        name = plain_name(args[0])
        if name == "exit":
            raise _Exit(int(args[1]) if len(args) > 1 and args[1].isdigit() else self.code)
        if name in self._functions:
            return await self._call(name, args, stdin)
        if name == "set":
            self.strict = self.strict or any(
                a.startswith("-") and "e" in a.lstrip("-") and "o" not in a for a in args[1:]
            )
            return Ran()
        program = self.programs.get(name)
        if program is not None:
            return await program(Invocation(self, args, {**self.env, **env}, stdin))
        path = self.find(args[0])
        if path is not None:
            return await self._execute(path, args, env)
        if name in self.known:
            return self._assume(args)
        self.console.say(f"sh: 1: {args[0]}: not found")
        return Ran(NOT_FOUND)

    def find(self, name: str) -> str | None:
        """The file that a command's name stands for."""
        paths = [name] if "/" in name else [f"{folder}/{name}" for folder in _PATH]
        return next((path for path in paths if self.disk.read(path) is not None), None)

    def _assume(self, args: list[str]) -> Ran:
        self.console.say(f"(simulated) {' '.join(args)[:160]}: assumed to succeed")
        return Ran()

    async def _execute(self, path: str, args: list[str], env: Mapping[str, str]) -> Ran:
        """Runs a shell script; other programs can't run here."""
        entry = self.disk.entry(path)
        assert entry is not None
        if not entry.mode & 0o111:
            self.console.say(f"sh: 1: {args[0]}: Permission denied")
            return Ran(NOT_EXECUTABLE)
        text = entry.content.decode("utf-8", "replace")
        first = text.partition("\n")[0]
        foreign = first.startswith("#!") and not any(plain_name(each) in _SHELLS for each in first[2:].split())
        if foreign or not text.strip():
            return self._assume(args)
        inner = Shell(self.disk, self.console, self.programs, {**self.env, **env}, self.known)
        inner.env.update({str(i): value for i, value in enumerate(args)} | {"@": " ".join(args[1:])})
        return Ran(await inner.script(text))

    async def _call(self, name: str, args: list[str], stdin: str) -> Ran:
        saved = dict(self.env)
        self.env.update({str(i): value for i, value in enumerate(args)})
        self.env["@"] = " ".join(args[1:])
        try:
            return await self._run(self._functions[name], stdin)
        finally:
            for key in [*map(str, range(len(args))), "@"]:
                if key in saved:
                    self.env[key] = saved[key]
                else:
                    self.env.pop(key, None)

    async def _redirect(self, ran: Ran, redirects: list[Redirect]) -> Ran:
        expander = self._expander()
        for redirect in redirects:
            if redirect.operator in (">", ">>", "&>") and redirect.fd in ("", "1"):
                target = await expander.text(redirect.target)
                if target.startswith("&"):
                    continue
                if target in ("/dev/stdout", "/dev/stderr", "/dev/console"):
                    self.print(ran.out)
                elif target != "/dev/null":
                    self.disk.rewrite(target, ran.out.encode(), append=redirect.operator == ">>")
                ran = Ran(ran.code)
        return ran
