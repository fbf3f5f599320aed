"""What holds the foreign code: levels, refusals, and the tables behind them."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from filter_machine import decide
from slow_cases import some_slow

from rlvrlab.errors import UserError
from rlvrlab.judge import isolation
from rlvrlab.judge.isolation import Isolation, chosen_level, probe
from rlvrlab.judge.jail import bpf, kernel, landlock, seccomp
from rlvrlab.judge.jail.limits import Limits
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import Call, CallsTask, StdioTask, TestsTask
from rlvrlab.judge.workers.worker import PACKAGE_ROOT
from rlvrlab.types import ErrorKind

NONE = Isolation(landlock_version=0, seccomp=False, bwrap=None, linux=False)
Programs = tuple[list[bpf.Instruction], list[bpf.Instruction]]
SHELL = "import subprocess\nprint(subprocess.run(['/bin/echo', 'hi'], capture_output=True, text=True).stdout, end='')"
HI = StdioTask((("", "hi\n"),))


def test_weak_isolation_is_refused_unless_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "probe", lambda: NONE)
    with pytest.raises(UserError, match="refusing weak isolation"):
        chosen_level(None, allow_weak=False)
    assert chosen_level(None, allow_weak=True) == "weak"
    with pytest.raises(UserError, match="cannot isolate"):
        chosen_level("landlock", allow_weak=True)
    with pytest.raises(UserError, match="apt install"):
        chosen_level("bwrap", allow_weak=False)
    with pytest.raises(UserError, match="allowed: landlock"):
        chosen_level("strong", allow_weak=False)


def test_remarks_say_what_is_missing() -> None:
    assert any("Linux container" in remark for remark in NONE.remarks)
    old = Isolation(landlock_version=3, seccomp=True, bwrap="/usr/bin/bwrap", linux=True)
    assert old.best == "landlock" and "6.12" in " ".join(old.remarks)
    assert Isolation(landlock_version=7, seccomp=True, bwrap="x", linux=True).remarks == []
    assert probe().best in ("landlock", "weak")


def test_weak_results_are_stamped() -> None:
    with Judge(isolation="weak", allow_weak=True, workers=1) as judge:
        verdict = judge.verify(HI, "print('hi')")
        assert (verdict.correct, verdict.isolation) == (True, "weak")
        loop = CallsTask("f", (Call((), 1),), limits=Limits(cpu_s=0.2, job_cpu_s=0.2))
        assert judge.verify(loop, "def f():\n    while True: pass").error is ErrorKind.TIMEOUT


def test_processes_only_where_a_container_bounds_them(judge: Judge) -> None:
    refused = judge.verify(HI, SHELL)
    assert refused.correct is False and refused.flags == ("blocked_syscall",)


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="needs bubblewrap")
def test_bubblewrap_allows_processes_and_keeps_none() -> None:
    daemon = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\n    os._exit(0)\nprint('hi')"
    with Judge(isolation="bwrap", workers=1) as judge:
        verdict = judge.verify(HI, SHELL)
        assert (verdict.correct, verdict.isolation, verdict.detail) == (True, "bwrap", "accepted")
        before = below(next(iter(judge.pools["code"]._workers)).process.pid)
        assert judge.verify(HI, daemon).correct is True
        deadline = time.monotonic() + 60  # a killed process takes a moment to be gone
        while below(next(iter(judge.pools["code"]._workers)).process.pid) - before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert below(next(iter(judge.pools["code"]._workers)).process.pid) - before == set()
        for attack in ("open('/etc/passwd')", "import socket; socket.socket()", "import os; os.kill(-1, 9)"):
            assert judge.verify(HI, f"{attack}\nprint('bye')").correct is False
        assert judge.verify(HI, "print('hi')  # the worker is alive").correct is True


def below(pid: int) -> set[int]:
    """A process's descendants; one that ends while it is looked at has none."""
    try:
        children = {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return children.union(*(below(child) for child in children))


def test_preloaded_packages_can_be_imported() -> None:
    code = "import numpy\ndef f(): return numpy.arange(4).sum().item()"
    task = CallsTask("f", (Call((), 6),), limits=Limits(memory_mb=1024))
    with Judge(workers=1, packages=("numpy",)) as judge:
        assert judge.verify(task, code).detail == "accepted"
        assert judge.verify(task, "import numpy\ndef f(): return numpy.int64(6)").correct is True
        assert judge.verify(task, "def f(): return open('/etc/passwd').read()").error is ErrorKind.RUNTIME


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("processes", [False, True])
def test_the_filter_decides_every_call_as_listed(
    monkeypatch: pytest.MonkeyPatch, machine: str, processes: bool
) -> None:
    """Run the BPF program by hand for every number of both machines."""
    numbers = kernel.numbers_on(machine)
    monkeypatch.setattr(kernel, "MACHINE", machine)
    monkeypatch.setattr(kernel, "NUMBERS", numbers)
    program = seccomp.programs(processes)
    listed = (seccomp.ALLOWED + (seccomp.PROCESSES if processes else "")).split()
    allowed = {numbers[name] for name in listed if name in numbers}
    pretending = seccomp.PRETENDED + ("" if processes else seccomp.ALONE)
    pretended = {numbers[name] for name in pretending.split() if name in numbers}
    by_command = {**seccomp.COMMANDS, **seccomp.PROCESS_COMMANDS, **seccomp.SOCKET_OPTIONS}
    by_argument = [
        "open",
        "openat",
        "close_range",
        "fcntl",
        "kill",
        "setpriority",
        "futex",
        "clone",
        "prlimit64",
        "tgkill",
        "sendto",
        "clock_gettime",
        "clock_getres",
        "clock_nanosleep",
    ]
    by_pid = ["getpgid", "getsid", "sched_getaffinity", "getpriority"]
    special = {numbers[name] for name in (*by_command, *by_argument, *by_pid) if name in numbers}
    missing = {numbers[name]: bpf.RET_ERRNO | code for name, code in seccomp.MISSING.items()}
    arch = kernel.AUDIT_ARCH[machine]
    for number in set(range(500)) - special:
        wanted = bpf.RET_ALLOW if number in allowed else bpf.RET_ERRNO if number in pretended else bpf.DENY
        assert decide(program, arch, number) == missing.get(number, wanted), number
    assert decide(program, arch ^ 1, 0) == bpf.RET_KILL
    assert decide(program, arch, numbers["prlimit64"], 0) == bpf.RET_ALLOW
    assert decide(program, arch, numbers["prlimit64"], 1234) == bpf.DENY
    assert decide(program, arch, numbers["tgkill"], seccomp.PID_PLACEHOLDER, 1, 6) == bpf.RET_ALLOW
    assert decide(program, arch, numbers["tgkill"], seccomp.PID_PLACEHOLDER, 1, 9) == bpf.DENY
    assert decide(program, arch, numbers["tgkill"], 1, 1, 6) == bpf.DENY
    for niceness, answer in ((0, bpf.RET_ERRNO), (5, bpf.RET_ERRNO), (-5 & 0xFFFFFFFF, bpf.DENY)):
        assert decide(program, arch, numbers["setpriority"], 0, 0, niceness) == answer
    for signal, answer in ((0, bpf.RET_ALLOW), (10, bpf.RET_ALLOW), (9, bpf.DENY), (19, bpf.DENY)):
        given = decide(program, arch, numbers["kill"], seccomp.PID_PLACEHOLDER, signal)
        assert given == (bpf.RET_ALLOW if processes else answer), signal
    assert decide(program, arch, numbers["kill"], 1, 10) == (bpf.RET_ALLOW if processes else bpf.DENY)
    for call, before in (("open", (0,)), ("openat", (0, 0))):
        if call in numbers:
            assert decide(program, arch, numbers[call], *before, os.O_CREAT | os.O_RDWR) == bpf.RET_ALLOW
            nameless = decide(program, arch, numbers[call], *before, os.O_TMPFILE | os.O_RDWR)
            assert nameless == bpf.RET_ERRNO | errno.EOPNOTSUPP
            assert decide(program, arch, numbers[call], *before, os.O_PATH | os.O_CLOEXEC) == bpf.DENY
            direct = seccomp.DIRECT[machine]
            assert decide(program, arch, numbers[call], *before, direct) == bpf.RET_ERRNO | errno.EINVAL
    woken = bpf.RET_ALLOW if processes else bpf.RET_ERRNO | errno.EINVAL
    for operation in range(16):
        for realtime in (0, 256):
            ours = decide(program, arch, numbers["futex"], 0, operation | realtime | 128)
            shared = decide(program, arch, numbers["futex"], 0, operation | realtime)
            assert ours == bpf.RET_ALLOW
            assert shared == (bpf.RET_ALLOW if operation in (0, 9) else woken), operation


STARTS = {
    "glibc": 0x3D0F00, "musl": 0x7D0F00, "go": 0x50F00,
}  # fmt: skip
"""The flags with which libraries start threads."""


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("processes", [False, True])
def test_threads_start_as_libraries_start_them_and_in_no_other_way(
    monkeypatch: pytest.MonkeyPatch, machine: str, processes: bool
) -> None:
    program, arch = filter_on(monkeypatch, machine, processes)
    number = kernel.NUMBERS["clone"]
    for flags in STARTS.values():
        assert decide(program, arch, number, flags) == bpf.RET_ALLOW
        for bit in range(8, 32):
            changed = decide(program, arch, number, flags ^ 1 << bit)
            harmless = 0x780000 | (0x1054F00 if processes else 0)  # TLS and numbers of threads; of forks the rest
            assert changed == (bpf.RET_ALLOW if harmless >> bit & 1 else bpf.DENY), (hex(flags), bit)
    fork, spawn = decide(program, arch, number, 0x1200011), decide(program, arch, number, 0x4111)
    assert fork == spawn == (bpf.RET_ALLOW if processes else bpf.DENY)
    for bit in (12, 13, 15, 17, 23, 25, 26, 27, 28, 29, 30, 31):  # a pidfd, a tracer, another parent, namespaces
        assert decide(program, arch, number, 17 | 1 << bit) == bpf.DENY, bit


NUMBERS_BY_HAND = {
    "x86_64": {
        "kill": 62, "tkill": 200, "pidfd_send_signal": 424, "fork": 57, "vfork": 58, "execve": 59, "execveat": 322,
        "socket": 41, "connect": 42, "accept": 43, "bind": 49, "listen": 50, "ptrace": 101, "process_vm_readv": 310,
        "process_vm_writev": 311, "pidfd_open": 434, "pidfd_getfd": 438, "mount": 165, "umount2": 166, "chroot": 161,
        "pivot_root": 155, "unshare": 272, "setns": 308, "setuid": 105, "setgid": 106, "setgroups": 116, "capset": 126,
        "mknod": 133, "personality": 135, "setrlimit": 160, "bpf": 321, "perf_event_open": 298, "userfaultfd": 323,
        "io_uring_setup": 425, "keyctl": 250, "add_key": 248, "shmget": 29, "semget": 64, "msgget": 68, "mq_open": 240,
        "inotify_init": 253, "fanotify_init": 300, "open_by_handle_at": 304, "init_module": 175, "kexec_load": 246,
        "reboot": 169, "settimeofday": 164, "sethostname": 170, "syslog": 103, "sched_setaffinity": 203,
    },
    "aarch64": {
        "kill": 129, "tkill": 130, "execve": 221, "execveat": 281, "socket": 198, "connect": 203, "accept": 202,
        "bind": 200, "listen": 201, "ptrace": 117, "process_vm_readv": 270, "mount": 40, "umount2": 39, "chroot": 51,
        "unshare": 97, "setns": 268, "setuid": 146, "setgid": 144, "bpf": 280, "perf_event_open": 241,
        "io_uring_setup": 425, "keyctl": 219, "shmget": 194, "mknodat": 33, "personality": 92,
    },
}  # fmt: skip
"""What no answer may call where it may start no process: the kernel's own numbers, not those of the list it checks."""
OF_PROCESSES = {"kill", "fork", "vfork", "execve"}
"""Allowed where a pid namespace bounds them."""


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("processes", [False, True])
def test_what_must_be_refused_is_refused_by_its_number(
    monkeypatch: pytest.MonkeyPatch, machine: str, processes: bool
) -> None:
    program, arch = filter_on(monkeypatch, machine, processes)
    answers = {name: decide(program, arch, number) for name, number in NUMBERS_BY_HAND[machine].items()}
    refused = {name for name, answer in answers.items() if answer & 0xFFFF0000 == bpf.RET_ERRNO and answer & 0xFFFF}
    assert answers.keys() - refused == (OF_PROCESSES & answers.keys() if processes else set())
    allowed = {"x86_64": (0, 1, 9, 60, 231, 318), "aarch64": (63, 64, 222, 93, 94, 278)}[machine]
    assert {decide(program, arch, number) for number in allowed} == {bpf.RET_ALLOW}  # read, write, mmap, exit …


@pytest.mark.parametrize("machine", some_slow(["x86_64", "aarch64"], {"x86_64"}))
@pytest.mark.parametrize("processes", [False, True])
def test_the_filter_decides_every_command_as_listed(
    monkeypatch: pytest.MonkeyPatch, machine: str, processes: bool
) -> None:
    numbers = kernel.numbers_on(machine)
    monkeypatch.setattr(kernel, "MACHINE", machine)
    monkeypatch.setattr(kernel, "NUMBERS", numbers)
    program = seccomp.programs(processes)

    def decided(call: str, *arguments: int) -> int:
        return decide(program, kernel.AUDIT_ARCH[machine], numbers[call], *arguments)

    advice = dict.fromkeys(seccomp.SEQUENTIALLY, bpf.RET_ERRNO)
    locks = dict.fromkeys(seccomp.LOCKS, bpf.RET_ALLOW if processes else bpf.RET_ERRNO)
    unchanged = {"fcntl": locks, "madvise": advice, "setsockopt": dict.fromkeys(seccomp.BUFFER_SIZES, bpf.RET_ERRNO)}
    listed = seccomp.COMMANDS | seccomp.SOCKET_OPTIONS | (seccomp.PROCESS_COMMANDS if processes else {})
    for call in listed.keys() & numbers.keys():
        argument, refusal, allowed = listed[call]
        answers = dict.fromkeys(allowed, bpf.RET_ALLOW) | unchanged.get(call, {})
        for command in (*range(2000), *range(0x5400, 0x5500), *range(0x8900, 0x8A00), 0x40086602, 0x53564D41):
            given = [seccomp.SOL_SOCKET] * argument + [command]
            assert decided(call, *given) == answers.get(command, bpf.RET_ERRNO | refusal), (call, command)
            # The kernel reads 32 bits of a command: what stands above them changes nothing.
            given[argument] |= 1 << 32
            assert decided(call, *given) == answers.get(command, bpf.RET_ERRNO | refusal), (call, command)
    assert decided("getsockopt", 3, 6, 4) == bpf.RET_ERRNO | errno.ENOPROTOOPT  # SO_ERROR's number, of TCP
    if not processes:
        assert decided("prctl", 15) == bpf.DENY
    for clock in (0, 3, 11, ~1 << 3 | 6):  # real time, this thread's, TAI, thread 1's
        assert decided("clock_gettime", clock & 0xFFFFFFFF) == bpf.RET_ALLOW
    for clock in (~1 << 3 | 2, ~1 << 3 | 3):  # process 1's, descriptor 1's
        assert decided("clock_gettime", clock & 0xFFFFFFFF) == bpf.RET_ERRNO | errno.EINVAL
    for call, before in (("getpgid", ()), ("getsid", ()), ("sched_getaffinity", ()), ("getpriority", (0,))):
        assert decided(call, *before, 0) == decided(call, *before, seccomp.PID_PLACEHOLDER) == bpf.RET_ALLOW
        assert decided(call, *before, 1) == (bpf.RET_ALLOW if processes else bpf.DENY)


def filter_on(monkeypatch: pytest.MonkeyPatch, machine: str, processes: bool) -> tuple[Programs, int]:
    """The filters as they are made on a machine of this kind, and the kernel's number of that kind."""
    monkeypatch.setattr(kernel, "MACHINE", machine)
    monkeypatch.setattr(kernel, "NUMBERS", kernel.numbers_on(machine))
    return seccomp.programs(processes), kernel.AUDIT_ARCH[machine]


def test_the_environment_of_a_program_is_empty_of_ours(judge: Judge) -> None:
    os.environ["HF_TOKEN"] = "secret"
    try:
        code = "import os\ndef f(): return sorted(k for k in os.environ if k not in ('HOME', 'TMPDIR', 'LC_ALL'))"
        with Judge(workers=1) as fresh:
            task = CallsTask("f", (Call((), ["PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED"]),))
            assert fresh.verify(task, code).detail == "accepted"
    finally:
        del os.environ["HF_TOKEN"]


JUDGE_AS_ASKED = """
import os
from rlvrlab.judge.judge import Judge
from rlvrlab.judge.tasks import StdioTask
write = "import colorsys\\nopen('x', 'w').write('a')\\nprint(open('x').read(), len(__import__('os').listdir('.')))"
who = "import os\\nprint(os.getuid() != 0)"
with Judge(workers=1) as judge:
    task = StdioTask((("", "a 1"),))
    print([judge.verify(task, f"{write}  # {i}").detail for i in range(3)])
    print(judge.verify(StdioTask((("", "True"),)), who).correct)
    print(judge.verify(task, "print(open('/etc/passwd').read())").flags, judge.pools["code"].restarts)
    folder = next(iter(judge.pools["code"]._workers)).scratch
print(os.listdir(folder))
"""


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
@pytest.mark.parametrize(
    ("withheld", "another"),
    [("-sys_admin", "True"), ("-setuid", "False"), ("-dac_override", "False"), ("-all", "False")],
)
def test_what_a_container_withholds_from_root(tmp_path: Path, withheld: str, another: str) -> None:
    """Without a mount namespace the scratch is a plain folder; without the right to change users a job stays root."""
    command = ["setpriv", f"--bounding-set={withheld}", sys.executable, "-c", JUDGE_AS_ASKED]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": PACKAGE_ROOT}
    tmp_path.chmod(0o755)
    told = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=True).stdout
    assert told.splitlines() == ["['accepted', 'accepted', 'accepted']", another, "('blocked_syscall',) 0", "[]"]


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_the_judge_of_an_ordinary_user() -> None:
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None or subprocess.run([python, "-c", "import tomllib"], check=False).returncode:
        pytest.skip("needs a Python that everybody may read")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chown(folder, 65534, 65534)
        paths = os.pathsep.join([PACKAGE_ROOT, *(path for path in sys.path if path.endswith("site-packages"))])
        command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", python, "-c", JUDGE_AS_ASKED]
        environment = {"TMPDIR": folder, "HOME": folder, "PYTHONPATH": paths, "PATH": os.environ["PATH"]}
        told = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    if "ModuleNotFoundError" in told.stderr or "PermissionError" in told.stderr:
        pytest.skip("the packages are not for everybody to read")
    expected = ["['accepted', 'accepted', 'accepted']", "True", "('blocked_syscall',) 0", "[]"]
    assert told.stdout.splitlines() == expected, told.stderr


def walled(file: Path) -> bytes:
    """What a process finds that may write `file` alone: can it be emptied, read back, and the one beside it opened?"""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        found = b""
        try:
            kernel.no_new_privileges()
            kernel.syscall("landlock_restrict_self", landlock.ruleset([], [str(file)]), 0)
            for path in (file, file.with_name("beside")):
                try:
                    os.close(os.open(path, os.O_RDWR | os.O_TRUNC))
                    found += b"+"
                except PermissionError:
                    found += b"-"
        finally:
            os.write(writing, found)
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as told:
        return told.read()


def test_a_file_that_may_be_written_may_be_emptied_and_no_other(tmp_path: Path) -> None:
    if landlock.version() < 3:
        pytest.skip("asks the Linux kernel: Landlock 3 or later")
    for name in ("file", "beside"):
        (tmp_path / name).write_text("text")
    assert walled(tmp_path / "file") == b"+-"
    assert [(tmp_path / name).read_text() for name in ("file", "beside")] == ["", "text"]


def test_tests_beside_a_candidate_have_no_folder_to_write_to(judge: Judge) -> None:
    """What they left there, later tests of the same worker could find."""
    write = "try:\n    open('left', 'w').close()\nexcept OSError:\n    kept = False\nelse:\n    kept = True\n"
    text = f"{write}assert f(1) == 2 and not kept"
    assert judge.verify(TestsTask("f", (text,)), "def f(x):\n    return x + 1\n").correct is True
