"""Shell scripts for the machine. Pure.

What takes long runs on the machine itself, detached from the SSH session, and leaves its progress in files there: a
controller that is restarted looks at them and goes on. All files are in one folder:

    owner          UID of the RemoteMachine that the machine belongs to
    k0s            role and binary of k0s, for the cleanup
    JOB.sh         the script of a job (`provision` or `cleanup`); holds secrets until it has succeeded
    JOB.step       how many of its steps have succeeded
    JOB.state      `done`, or `failed STEP CODE ATTEMPT`
    JOB.pid        process and boot in which it runs
    JOB.log        output of its steps

Scripts are sent through stdin: arguments of commands can be read by all users of a machine.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from homeport.providers.remote.cloudconfig import Bootstrap, File

FOLDER = "/var/lib/homeport-machine"
NOT_OURS = 97
_END = "HOMEPORT-END-OF-PART"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_BOOT = "$(cat /proc/sys/kernel/random/boot_id 2>/dev/null)"

Job = Literal["provision", "cleanup"]

_HEAD = f"""\
set -u
export PATH="$PATH:{_PATH}"
S={FOLDER}
umask 077
"""

# Whether a job runs: its process lives, since the boot that it was started in, and is our script.
_RUNNING = f"""\
running() {{
  read -r pid boot 2>/dev/null < "$S/$1.pid" || return 1
  [ "$boot" = "{_BOOT}" ] || return 1
  tr '\\0' ' ' 2>/dev/null < "/proc/$pid/cmdline" | grep -q "$S/$1.sh"
}}
"""

# A link appears with its content or not at all, and only if there was none.
_CLAIM = """\
claim() {
  mkdir -p "$S" && chmod 700 "$S" || exit 1
  if [ ! -e "$S/owner" ]; then
    printf '%s\\n' "$1" > "$S/owner.$$" && ln "$S/owner.$$" "$S/owner" 2>/dev/null
    rm -f "$S/owner.$$"
  fi
}
"""

_GUARD = """\
[ "$(cat "$S/owner" 2>/dev/null)" = {owner} ] || exit {code}
"""

_START = """\
start() {
  running "$1" && return 0
  [ "$(cat "$S/$1.state" 2>/dev/null)" != done ] && [ -f "$S/$1.sh" ] || return 0
  rm -f "$S/$1.state"
  if command -v setsid > /dev/null 2>&1; then away=setsid; else away=nohup; fi
  boot="BOOT"
  $away sh "$S/$1.sh" "$boot" < /dev/null >> "$S/$1.log" 2>&1 &
  tries=0 # until it shows that it runs: a look at the machine must not take it for interrupted
  while [ "$tries" -lt 50 ] && ! running "$1" && [ ! -e "$S/$1.state" ]; do
    sleep 0.1 2>/dev/null || sleep 1
    tries=$((tries + 1))
  done
}
""".replace("BOOT", _BOOT)

# Of a job itself. Commands must not inherit the lock: a service that they start would hold it for ever.
_STEPS = """\
S=$(cd "$(dirname "$0")" && pwd)
if command -v flock > /dev/null 2>&1; then
  exec 9> "$S/$JOB.lock"
  flock -n 9 || exit 0
fi
printf '%s %s\\n' "$$" "$1" > "$S/$JOB.pid"
finished=$(cat "$S/$JOB.step" 2>/dev/null || echo 0)
attempt=$(cat "$S/$JOB.attempt" 2>/dev/null || echo 0)
attempt=$((attempt + 1))
echo "$attempt" > "$S/$JOB.attempt"
put() { # path, mode, owner, append
  mkdir -p "$(dirname "$1")" || return 1
  if [ "$4" = yes ]; then
    base64 -d >> "$1" || return 1
    chmod "$2" "$1" || return 1
  else
    (umask 077; base64 -d > "$1.homeport") || return 1
    chmod "$2" "$1.homeport" || return 1
    mv -f "$1.homeport" "$1" || return 1
  fi
  [ -z "$3" ] || chown "$3" "$1"
}
fail() { # step, exit code
  echo "failed $1 $2 $attempt" > "$S/$JOB.state.new"
  mv -f "$S/$JOB.state.new" "$S/$JOB.state"
  exit 0
}
step() { # number, command ...
  number=$1
  shift
  [ "$number" -gt "$finished" ] || return 0
  echo "$number" > "$S/$JOB.at"
  echo "== step $number"
  (umask 022; "$@") 9>&-
  code=$?
  [ "$code" -eq 0 ] || fail "$number" "$code"
  echo "$number" > "$S/$JOB.step.new"
  mv -f "$S/$JOB.step.new" "$S/$JOB.step"
}
"""

_FINISH = """\
echo done > "$S/$JOB.state.new"
mv -f "$S/$JOB.state.new" "$S/$JOB.state"
rm -f "$S/$JOB.sh"
"""

_LOOK = """\
echo "user $(id -u)"
[ -f "$S/owner" ] || exit 0
echo "owner $(cat "$S/owner")"
[ -f "$S/k0s" ] && echo "k0s $(cat "$S/k0s")"
for job in provision cleanup; do
  [ -f "$S/$job.sh" ] && echo "$job script"
  [ -f "$S/$job.state" ] && echo "$job state $(cat "$S/$job.state")"
  [ -f "$S/$job.at" ] && echo "$job at $(cat "$S/$job.at")"
  if running "$job"; then
    now=$(date +%s)
    since=$(date -r "$S/$job.pid" +%s 2>/dev/null || echo "$now")
    echo "$job running $((now - since))"
  fi
done
exit 0
"""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job on the machine is."""

    given: bool = False  # its script is there
    done: bool = False
    failed: tuple[int, int, int] | None = None  # step, exit code, attempt
    at: int = 0
    running_seconds: int | None = None  # None: it does not run


@dataclass(frozen=True, slots=True)
class Look:
    """What a machine says about itself."""

    root: bool
    owner: str = ""
    k0s: tuple[str, ...] = ()  # role, binary, further arguments of reset
    provision: Progress = Progress()
    cleanup: Progress = Progress()


def render_look() -> str:
    return _HEAD + _RUNNING + _LOOK


def parse_look(text: str) -> Look:
    facts = [line.split() for line in text.splitlines() if line.strip()]

    def one(*names: str) -> list[str]:
        size = len(names)
        return next((words[size:] for words in facts if tuple(words[:size]) == names), [])

    def progress(job: Job) -> Progress:
        state, at, running = one(job, "state"), one(job, "at"), one(job, "running")
        failed = tuple(_number(each) for each in state[1:4]) if state[:1] == ["failed"] else ()
        return Progress(
            given=[job, "script"] in facts,
            done=state == ["done"],
            failed=(failed[0], failed[1], failed[2]) if len(failed) == 3 else None,
            at=_number(at[0]) if at else 0,
            running_seconds=_number(running[0]) if running else None,
        )

    owner = one("owner")
    return Look(
        root=one("user") == ["0"],
        owner=owner[0] if owner else "",
        k0s=tuple(one("k0s")),
        provision=progress("provision"),
        cleanup=progress("cleanup"),
    )


def _number(text: str) -> int:
    return int(text) if text.lstrip("-").isdigit() else 0


# -- jobs --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Plan:
    """The steps of a job, in order."""

    files: tuple[File, ...] = ()
    commands: tuple[str, ...] = ()
    working_dir: str = "/"
    k0s: str = ""  # see Look.k0s

    def __repr__(self) -> str:
        return f"Plan({len(self.files)} files, {len(self.commands)} commands)"

    @property
    def size(self) -> int:
        return len(self.files) + len(self.commands)


def plan_provision(bootstrap: Bootstrap, *, as_script: bool, working_dir: str) -> Plan:
    commands = bootstrap.commands
    if as_script and commands:
        path = f"{working_dir.rstrip('/')}/k0s_install.sh"
        script = File(path, ("#!/bin/sh\nset -e\n\n" + "\n".join(commands) + "\n").encode(), "0700")
        return Plan((*bootstrap.files, script), (shlex.quote(path),), working_dir, _k0s_of(commands))
    return Plan(bootstrap.files, commands, working_dir, _k0s_of(commands))


_INSTALL = re.compile(r"(?:^|[\s;&|])(?P<binary>[\w./-]*k0s) install (?P<role>worker|controller)\b")
_ROOT = re.compile(r"--kubelet-root-dir[= ](?P<path>/[\w./-]+)")


def _k0s_of(commands: Iterable[str]) -> str:
    for each in commands:
        found = _INSTALL.search(each)
        if found is not None:
            root = _ROOT.search(each)
            return f"{found['role']} {found['binary']}" + (f" --kubelet-root-dir={root['path']}" if root else "")
    return ""


def plan_cleanup(commands: Sequence[str], k0s: Sequence[str], working_dir: str) -> Plan:
    """The user's commands; without any, k0s is removed if it was installed. A member of etcd that has left before can't
    leave again, and a service may be stopped already: only the reset must succeed."""
    if commands:
        return Plan(commands=tuple(commands), working_dir=working_dir)
    if len(k0s) < 2:
        return Plan(working_dir=working_dir)
    role, binary, *arguments = k0s
    program = shlex.quote(binary)
    steps = [f"{program} etcd leave || true"] if role == "controller" else []
    stop = f"{program} stop || true"
    reset = f"{program} reset {shlex.join(arguments)}".strip()
    present = f"command -v {program} > /dev/null 2>&1 || exit 0; "
    return Plan(commands=tuple(present + each for each in (*steps, stop, reset)), working_dir=working_dir)


def render_job(job: Job, plan: Plan) -> str:
    """The script that runs on the machine until all its steps have succeeded."""
    lines = [_HEAD, f"JOB={job}\n", _STEPS]
    lines.append(f"mkdir -p {shlex.quote(plan.working_dir)} && cd {shlex.quote(plan.working_dir)} || fail 0 1\n")
    number = 0
    for file in plan.files:
        number += 1
        words = [file.path, file.mode, file.owner, "yes" if file.append else "no"]
        content = base64.encodebytes(file.content).decode()
        lines.append(f"step {number} put {shlex.join(words)} << '{_END}'\n{content}{_END}\n")
    for command in plan.commands:
        number += 1
        lines.append(f"step {number} sh -c {shlex.quote(command)} < /dev/null\n")
    return "".join([*lines, _FINISH])


def render_begin(job: Job, plan: Plan, owner: str, *, claim: bool = False) -> str:
    """Stores the job on the machine and starts it. With `claim` the machine becomes `owner`'s if it is nobody's."""
    who = shlex.quote(owner)
    text = render_job(job, plan)
    # As one encoded part: whatever commands contain, they can't end it.
    content = base64.encodebytes(text.encode()).decode()
    lines = [_HEAD, _RUNNING, _START]
    if claim:
        lines += [_CLAIM, f"claim {who}\n"]
    lines.append(_GUARD.format(owner=who, code=NOT_OURS))
    if job == "provision":
        lines.append(
            f"printf '%s\\n' {shlex.quote(plan.k0s)} > \"$S/k0s\" || exit 1\n" if plan.k0s else 'rm -f "$S/k0s"\n'
        )
    lines.append(f"base64 -d > \"$S/{job}.new\" << '{_END}' || exit 1\n{content}{_END}\n")
    # Steps that have succeeded were those of an earlier script.
    lines.append(f'rm -f "$S/{job}.step" "$S/{job}.at"\n')
    lines.append(f'mv -f "$S/{job}.new" "$S/{job}.sh" && start {job}\n')
    return "".join(lines)


def render_restart(job: Job, owner: str) -> str:
    """Goes on with a job at its first unfinished step."""
    guard = _GUARD.format(owner=shlex.quote(owner), code=NOT_OURS)
    return _HEAD + _RUNNING + _START + guard + f"start {job}\n"


_STOP = """\
if running provision; then
  kill -TERM -- "-$pid" 2>/dev/null || kill -TERM "$pid" 2>/dev/null
  for i in 1 2 3 4 5 6 7 8 9 10; do running provision || break; sleep 0.2; done
  if running provision; then kill -KILL -- "-$pid" 2>/dev/null || kill -KILL "$pid" 2>/dev/null; fi
fi
rm -f "$S/provision.sh" "$S/provision.state"
"""


def render_stop(owner: str) -> str:
    """Ends the provisioning, whose steps would race with those of the cleanup."""
    return _HEAD + _RUNNING + _GUARD.format(owner=shlex.quote(owner), code=NOT_OURS) + _STOP


_FORGET = """\
rm -f "$S/provision".* "$S/cleanup".* "$S/k0s"
rm -f "$S/owner" && { rmdir "$S" 2>/dev/null || true; }
"""


def render_forget(owner: str) -> str:
    """Removes all that Homeport keeps on the machine, the owner last: until then the machine is nobody else's."""
    return _HEAD + _GUARD.format(owner=shlex.quote(owner), code=NOT_OURS) + _FORGET
