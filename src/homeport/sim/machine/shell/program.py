"""Programs that a machine has besides those of Kubernetes: what commands in user data use to prepare the ground."""

from __future__ import annotations

import asyncio
import re

from homeport.sim.machine.shell.shell import Invocation, Program, Ran
from homeport.sim.machine.shell.word import plain_name


async def _true(call: Invocation) -> Ran:
    return Ran()


async def _false(call: Invocation) -> Ran:
    return Ran(1)


async def _echo(call: Invocation) -> Ran:
    args = call.args[1:]
    newline = "\n"
    while args and args[0] in ("-n", "-e", "-ne", "-en"):
        newline = "" if "n" in args[0] else newline
        args = args[1:]
    return Ran(0, " ".join(args) + newline)


async def _printf(call: Invocation) -> Ran:
    args = call.args[1:]
    if not args:
        return Ran(1)
    text = args[0].replace("\\n", "\n").replace("\\t", "\t")
    values = iter(args[1:])
    return Ran(0, re.sub(r"%[sd]", lambda _: next(values, ""), text))


async def _cat(call: Invocation) -> Ran:
    names = [name for name in call.args[1:] if not name.startswith("-")]
    if not names:
        return Ran(0, call.stdin)
    out = ""
    for name in names:
        content = call.shell.disk.text(name)
        if content is None:
            return call.fail(f"cat: {name}: No such file or directory")
        out += content
    return Ran(0, out)


async def _tee(call: Invocation) -> Ran:
    append = "-a" in call.args
    for name in call.args[1:]:
        if not name.startswith("-"):
            call.shell.disk.rewrite(name, call.stdin.encode(), append=append)
    return Ran(0, call.stdin)


async def _mkdir(call: Invocation) -> Ran:
    for name in call.args[1:]:
        if not name.startswith("-"):
            call.shell.disk.make_folder(name)
    return Ran()


async def _touch(call: Invocation) -> Ran:
    for name in call.args[1:]:
        if not name.startswith("-") and call.shell.disk.read(name) is None:
            call.shell.disk.write(name, b"")
    return Ran()


async def _rm(call: Invocation) -> Ran:
    flags = "".join(a for a in call.args[1:] if a.startswith("-"))
    for name in (a for a in call.args[1:] if not a.startswith("-")):
        if not call.shell.disk.remove(name, recursive="r" in flags or "R" in flags) and "f" not in flags:
            return call.fail(f"rm: cannot remove '{name}': No such file or directory")
    return Ran()


async def _copy(call: Invocation) -> Ran:
    names = [a for a in call.args[1:] if not a.startswith("-")]
    disk = call.shell.disk
    if len(names) < 2:
        return call.fail(f"{call.args[0]}: missing file operand")
    *sources, target = names
    for source in sources:
        entry = disk.entry(source)
        if entry is None:
            return call.fail(f"{plain_name(call.args[0])}: cannot stat '{source}': No such file or directory")
        into = f"{target}/{plain_name(source)}" if target.endswith("/") or disk.is_folder(target) else target
        disk.write(into, entry.content, mode=entry.mode, owner=entry.owner)
        if plain_name(call.args[0]) == "mv":
            disk.remove(source)
    return Ran()


async def _chmod(call: Invocation) -> Ran:
    names = [a for a in call.args[1:] if not a.startswith("-") or a == "-x"]
    for name in names[1:]:
        entry = call.shell.disk.entry(name)
        if entry is not None and re.fullmatch(r"[0-7]{3,4}", names[0]):
            entry.mode = int(names[0], 8)
        elif entry is not None and re.fullmatch(r"[ugoa]*[+-][rwx]*x[rwx]*", names[0]):
            entry.mode = entry.mode | 0o111 if "+" in names[0] else entry.mode & ~0o111
    return Ran()


async def _source(call: Invocation) -> Ran:
    """`. FILE`: its variables and functions are ours from here on."""
    text = call.shell.disk.text(call.args[1]) if len(call.args) > 1 else None
    if text is None:
        return call.fail(f"sh: 1: .: cannot open {' '.join(call.args[1:])}: No such file", 2)
    return Ran(await call.shell.script(text))


async def _fetch(call: Invocation) -> Ran:
    """Nothing is fetched: the simulated network ends at its own hosts. A file that is asked for is there, and empty."""
    args = call.args[1:]
    for at, word in enumerate(args[:-1]):
        if word in ("--output", "--output-document") or re.fullmatch(r"-[A-Za-z]*[oO]", word):
            if not args[at + 1].startswith(("-", "http")):
                call.shell.disk.write(args[at + 1], b"")
    return Ran()


async def _sed(call: Invocation) -> Ran:
    """s/// alone, in place or as a filter. Other scripts leave the text as it is."""
    args = call.args[1:]
    place = any(re.fullmatch(r"-[nEr]*i.*", a) for a in args)
    extended = any(re.fullmatch(r"-[ni]*[Er].*", a) for a in args)
    rest = [a for a in args if not a.startswith("-")]
    if not rest:
        return call.fail("Usage: sed [OPTION]... {script-only-if-no-other-script} [input-file]...")
    script, names = rest[0], rest[1:]
    if not names:
        return Ran(0, _substituted(script, call.stdin, extended))
    out = ""
    for name in names:
        content = call.shell.disk.text(name)
        if content is None:
            return call.fail(f"sed: can't read {name}: No such file or directory", 2)
        changed = _substituted(script, content, extended)
        if place:
            call.shell.disk.rewrite(name, changed.encode())
        else:
            out += changed
    return Ran(0, out)


def _substituted(script: str, text: str, extended: bool) -> str:
    for command in script.split("\n") if "\n" in script else [script]:
        found = re.fullmatch(r"s(.)(.*)", command.strip(), re.DOTALL)
        if found is None:
            continue
        mark = re.escape(found.group(1))
        parts = re.split(rf"(?<!\\){mark}", found.group(2))
        if len(parts) < 3:
            continue
        pattern, replacement, flags = parts[0], parts[1], parts[2]
        pattern = pattern.replace("\\" + found.group(1), found.group(1))
        if not extended:  # in the basic syntax a backslash gives these their meaning instead of taking it
            pattern = re.sub(r"\\([(){}+?|])|([(){}+?|])", lambda m: m.group(1) or "\\" + m.group(2), pattern)
        replacement = re.sub(r"(?<!\\)&", r"\\g<0>", replacement).replace("\\" + found.group(1), found.group(1))
        try:
            compiled, most = re.compile(pattern), 0 if "g" in flags else 1
            text = "\n".join(compiled.sub(replacement, line, count=most) for line in text.split("\n"))
        except re.error:
            continue
    return text


async def _grep(call: Invocation) -> Ran:
    flags = "".join(a[1:] for a in call.args[1:] if a.startswith("-") and not a.startswith("--"))
    rest = [a for a in call.args[1:] if not a.startswith("-")]
    if not rest:
        return Ran(2)
    text = "".join(call.shell.disk.text(name) or "" for name in rest[1:]) if len(rest) > 1 else call.stdin
    try:
        pattern = re.compile(re.escape(rest[0]) if "F" in flags else rest[0], re.IGNORECASE if "i" in flags else 0)
    except re.error:
        return Ran(2)
    lines = [line for line in text.splitlines() if bool(pattern.search(line)) != ("v" in flags)]
    out = "" if "q" in flags else "".join(line + "\n" for line in lines)
    return Ran(0 if lines else 1, out)


async def _test(call: Invocation) -> Ran:
    args = call.args[1:]
    if plain_name(call.args[0]) in ("[", "[["):
        args = args[:-1]
    return Ran(0 if _holds(args, call) else 1)


def _holds(args: list[str], call: Invocation) -> bool:
    for joint, both in (("-o", False), ("||", False), ("-a", True), ("&&", True)):
        if joint in args[1:]:
            at = args.index(joint, 1)
            left, right = _holds(args[:at], call), _holds(args[at + 1 :], call)
            return (left and right) if both else (left or right)
    if args[:1] == ["!"]:
        return not _holds(args[1:], call)
    disk = call.shell.disk
    if len(args) == 3:
        return _compares(*args)
    if len(args) == 2:
        flag, name = args
        there = disk.read(name) is not None
        known = {"-n": bool(name), "-z": not name, "-d": disk.is_folder(name), "-s": bool(disk.read(name))}
        if flag in ("-e", "-f", "-r", "-x", "-w", "-L", "-h"):
            return there or (flag in ("-e", "-x") and (disk.is_folder(name) or plain_name(name) in call.shell.programs))
        return known.get(flag, False)
    return bool(args and args[0])


def _compares(left: str, operator: str, right: str) -> bool:
    if operator in ("=", "=="):
        return left == right
    if operator == "!=":
        return left != right
    try:
        a, b = int(left), int(right)
    except ValueError:
        return False
    known = {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}
    return known.get(operator, False)


async def _sleep(call: Invocation) -> Ran:
    try:
        await asyncio.sleep(sum(_seconds(each) for each in call.args[1:]))
    except ValueError:
        return call.fail(f"sleep: invalid time interval '{' '.join(call.args[1:])}'")
    return Ran()


def _seconds(text: str) -> float:
    factor = {"s": 1, "m": 60, "h": 3600}.get(text[-1:])
    return float(text[:-1]) * factor if factor else float(text)


async def _command(call: Invocation) -> Ran:
    """`command -v NAME`: is there such a program?"""
    name = call.args[-1]
    if call.args[1:2] == ["-v"] or plain_name(call.args[0]) == "which":
        shell = call.shell
        found = plain_name(name) in shell.programs or name in shell.known or shell.find(name) is not None
        return Ran(0, f"/usr/bin/{name}\n") if found else Ran(1)
    return await call.shell.invoke(call.args[1:], call.env, call.stdin)


async def _export(call: Invocation) -> Ran:
    for each in call.args[1:]:
        name, sep, value = each.partition("=")
        if sep:
            call.shell.env[name] = value
    return Ran()


async def _sh(call: Invocation) -> Ran:
    """`sh -c TEXT`, `sh FILE` and, fed by a pipe, `sh`."""
    args = call.args[1:]
    while args and args[0].startswith("-") and args[0] != "-c" and not args[0].endswith("c"):
        args = args[1:]
    if args and args[0].startswith("-"):
        text: str | None = args[1] if len(args) > 1 else ""
    elif args and args[0] != "-":
        text = call.shell.disk.text(args[0])
        if text is None:
            return call.fail(f"sh: 0: cannot open {args[0]}: No such file", 2)
    else:
        text = call.stdin
    saved = dict(call.shell.env)
    call.shell.env.update(call.env)
    try:
        return Ran(await call.shell.script(text or ""))
    finally:
        call.shell.env.clear()
        call.shell.env.update(saved)


async def _prefix(call: Invocation) -> Ran:
    """sudo, env, nohup, exec, time: what follows is what counts."""
    args, env = call.args[1:], dict(call.env)
    while args and (args[0].startswith("-") or "=" in args[0]):
        if "=" in args[0] and not args[0].startswith("-"):
            name, _, value = args[0].partition("=")
            env[name] = value
        args = args[1:]
    return await call.shell.invoke(args, env, call.stdin) if args else Ran()


async def _timeout(call: Invocation) -> Ran:
    args = [a for a in call.args[1:] if not a.startswith("-")]
    return await call.shell.invoke(args[1:], call.env, call.stdin) if len(args) > 1 else Ran()


TOOLS: dict[str, Program] = {
    "true": _true, ":": _true, "false": _false, "echo": _echo, "printf": _printf, "cat": _cat, "tee": _tee,
    "mkdir": _mkdir, "touch": _touch, "rm": _rm, "cp": _copy, "mv": _copy, "chmod": _chmod, "chown": _true,
    "sed": _sed, "grep": _grep, "egrep": _grep, "test": _test, "[": _test, "[[": _test, "sleep": _sleep,
    "command": _command, "which": _command, "type": _command, "export": _export, "sh": _sh, "bash": _sh,
    "sudo": _prefix, "env": _prefix, "nohup": _prefix, "exec": _prefix, "time": _prefix, "timeout": _timeout,
    "cd": _true, "ln": _true, "sync": _true, "swapoff": _true, "modprobe": _true, "sysctl": _true,
    "update-ca-certificates": _true, ".": _source, "source": _source, "curl": _fetch, "wget": _fetch,
}  # fmt: skip
