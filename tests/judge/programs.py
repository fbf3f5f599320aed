"""Hostile, pathological and benign programs with the outcomes that are right for them.

Two problems: `spread(xs)` returns max - min (0 of nothing), and the program that reads n and n numbers and prints their
sum. An attack answers correctly only if it worked, so `accepted` means that the judge was beaten.
"""

# ruff: noqa: E501 - a program per line
from __future__ import annotations

from textwrap import dedent, indent
from typing import NamedTuple

SPREAD_CALLS = [([3, 9, 4], 6), ([], 0), ([5], 0), ([-7, 8], 15), ([100000, 1], 99999)]
SUM_TESTS = [("3\n4 5 6\n", "15\n"), ("1\n-5\n", "-5\n")]
RIGHT = "def spread(xs):\n    return max(xs) - min(xs) if xs else 0\n"


class Program(NamedTuple):
    name: str
    kind: str  # "spread" or "sum"
    outcomes: frozenset[str]
    code: str


def program(kind: str, outcomes: str, name: str, code: str) -> Program:
    return Program(name, kind, frozenset(outcomes.split()), dedent(code).lstrip("\n"))


HELD = "wrong_answer runtime_error time_limit memory_limit output_limit compile_error no_entry_point tampered"


def attack(name: str, body: str) -> Program:
    """The body returns something true when the walls did not hold."""
    code = f"""\
def _attack():
{indent(dedent(body).strip(), "    ")}

try:
    _won = bool(_attack())
except BaseException:
    _won = False

def spread(xs):
    if not _won:
        return "held"
    return max(xs) - min(xs) if xs else 0
"""
    return Program(name, "spread", frozenset(HELD.split()), code)


ISOLATION = [
    attack("read_passwd", "return open('/etc/passwd').read()"),
    attack("read_hostname", "return open('/etc/hostname').read()"),
    attack("read_machine_id", "return open('/etc/machine-id').read()"),
    attack("read_own_environment", "return 'PATH' in open('/proc/self/environ').read()"),
    attack("secret_in_environment", "import os; return 'JUDGE_CANARY' in os.environ"),
    attack("any_path_variable", "import os; return 'PATH' in os.environ"),
    attack("read_own_maps", "return open('/proc/self/maps').read()"),
    attack("read_parent_command", "import os; return open(f'/proc/{(os.getppid() or 1)}/cmdline').read()"),
    attack("read_init_status", "return open('/proc/1/status').read()"),
    attack("list_processes", "import os; return os.listdir('/proc')"),
    attack("list_root", "import os; return os.listdir('/')"),
    attack("list_home", "import os; return os.listdir('/root') or os.listdir('/home')"),
    attack("list_tmp", "import os; return os.listdir('/tmp')"),
    attack("glob_outside", "import glob; return glob.glob('/etc/*')"),
    attack("read_through_symlink", "import os; os.symlink('/etc/passwd', 'x'); return open('x').read()"),
    attack("read_through_hard_link", "import os; os.link('/etc/passwd', 'x'); return open('x').read()"),
    attack("read_through_dotdot", "return open('../' * 12 + 'etc/passwd').read()"),
    attack("read_by_directory_descriptor", "import os; d = os.open('/etc', 0); return os.open('passwd', 0, dir_fd=d)"),
    attack("read_by_o_path", "import os; fd = os.open('/etc/passwd', os.O_PATH); return os.read(fd, 10)"),
    attack("read_by_mmap", "import mmap; f = open('/etc/passwd', 'rb'); return mmap.mmap(f.fileno(), 0, prot=1)[:4]"),
    attack("import_the_laboratory", "import rlvrlab; return rlvrlab.__file__ and open(rlvrlab.__file__).read()"),
    attack("import_third_party", "import numpy; return True"),
    attack("read_the_judge_source", "import sys; m = sys.modules['rlvrlab.judge.jail.child']; return open(m.__file__).read()"),
    attack("write_tmp", "open('/tmp/judge_attack', 'w').write('x'); return True"),
    attack("write_shared_memory", "open('/dev/shm/judge_attack', 'w').write('x'); return True"),
    attack("write_home", "open('/root/judge_attack', 'w').write('x'); return True"),
    attack("write_library", "import os; open(os.path.dirname(os.__file__) + '/judge_attack.py', 'w'); return True"),
    attack("unnamed_temporary_outside", "import os; os.open('/tmp', os.O_TMPFILE | os.O_RDWR); return True"),
    attack("make_directory_outside", "import os; os.mkdir('/tmp/judge_attack_dir'); return True"),
    attack("truncate_outside", "import os; os.truncate('/etc/hostname', 0); return True"),
    attack("rename_outside", "import os; open('x', 'w'); os.rename('x', '/tmp/judge_attack'); return True"),
    attack("unlink_outside", "import os; os.unlink('/etc/hostname'); return True"),
    attack("change_mode_outside", "import os; os.chmod('/etc/hostname', 0o641); return os.stat('/etc/hostname').st_mode & 0o777 == 0o641"),
    attack("change_own_library_mode", "import os; os.chmod(os.__file__, 0o640); return os.stat(os.__file__).st_mode & 0o777 == 0o640"),
    attack("change_times_outside", "import os; os.utime('/etc/hostname', (1, 1)); return os.stat('/etc/hostname').st_mtime == 1"),
    attack("change_owner_outside", "import os; os.chown('/etc/hostname', 1, 1); return True"),
    attack("extended_attribute", "import os; os.setxattr('/etc/hostname', 'user.x', b'1'); return True"),
    attack("device_node", "import os; os.mknod('dev', 0o600 | 0o020000, os.makedev(1, 1)); return open('dev', 'rb').read(1)"),
    attack("named_pipe_outside", "import os; os.mkfifo('/tmp/judge_attack_fifo'); return True"),
    attack("kernel_memory", "return open('/dev/mem', 'rb').read(1)"),
    attack("terminal", "return open('/dev/tty', 'w').write('x')"),
    attack("tcp_socket", "import socket; return socket.socket()"),
    attack("udp_socket", "import socket; return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)"),
    attack("unix_socket", "import socket; return socket.socket(socket.AF_UNIX)"),
    attack("netlink_socket", "import socket; return socket.socket(16, 3, 0)"),
    attack("vsock", "import socket; return socket.socket(40, 1, 0)"),
    attack("socket_through_ctypes", "import ctypes; return ctypes.CDLL(None).socket(2, 1, 0) >= 0"),
    attack("http_request", "import urllib.request; return urllib.request.urlopen('http://127.0.0.1:8080', timeout=1)"),
    attack("name_lookup", "import socket; return socket.getaddrinfo('localhost', 80)[0][4][0] and socket.create_connection(('localhost', 80), 1)"),
    attack("fork", "import os; return os.fork() >= 0"),
    attack("fork_through_ctypes", "import ctypes; return ctypes.CDLL(None).fork() >= 0"),
    attack("vfork_through_ctypes", "import ctypes; return ctypes.CDLL(None).vfork() >= 0"),
    attack("raw_clone", "import ctypes, platform; n = {'x86_64': 56, 'aarch64': 220}[platform.machine()]; return ctypes.CDLL(None).syscall(n, 17, 0, 0, 0, 0) >= 0"),
    attack("raw_clone3", "import ctypes; a = (ctypes.c_uint64 * 8)(); a[4] = 17; return ctypes.CDLL(None).syscall(435, a, 64) >= 0"),
    attack("subprocess", "import subprocess; return subprocess.run(['/bin/true']).returncode == 0"),
    attack("shell", "import os; return os.system('true') == 0"),
    attack("popen", "import os; return os.popen('echo hi').read()"),
    attack("posix_spawn", "import os; return os.posix_spawn('/bin/true', ['true'], {})"),
    attack("replace_self", "import os; os.execv('/bin/true', ['true'])"),
    attack("execute_memory_file", "import os; fd = os.memfd_create('x'); return fd >= 0"),
    attack("multiprocessing", "import multiprocessing as m; p = m.Process(target=print); p.start(); p.join(); return p.exitcode == 0"),
    attack("signal_parent", "import os; os.kill((os.getppid() or 1), 0); return True"),
    attack("signal_everybody", "import os; os.kill(-1, 0); return True"),
    attack("signal_group", "import os; os.killpg(0, 0); return True"),
    attack("signal_by_pidfd", "import os, signal; signal.pidfd_send_signal(os.pidfd_open((os.getppid() or 1)), 0); return True"),
    attack("signal_by_descriptor_owner", "import fcntl, os; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, (os.getppid() or 1)); return True"),
    attack("signal_thread_of_parent", "import ctypes, os, platform; n = {'x86_64': 234, 'aarch64': 131}[platform.machine()]; return ctypes.CDLL(None).syscall(n, (os.getppid() or 1), (os.getppid() or 1), 0) == 0"),
    attack("trace_parent", "import ctypes, os; return ctypes.CDLL(None).ptrace(16, (os.getppid() or 1), 0, 0) == 0"),
    attack("read_parent_memory", "import os; return open(f'/proc/{(os.getppid() or 1)}/mem', 'rb')"),
    attack("copy_parent_memory", "import ctypes, os; b = ctypes.create_string_buffer(16); v = (ctypes.c_size_t * 2)(ctypes.addressof(b), 16); return ctypes.CDLL(None).process_vm_readv((os.getppid() or 1), v, 1, v, 1, 0) >= 0"),
    attack("raise_cpu_limit", "import resource as r; s, h = r.getrlimit(r.RLIMIT_CPU); r.setrlimit(r.RLIMIT_CPU, (h, r.RLIM_INFINITY)); return True"),
    attack("raise_memory_limit", "import resource as r; r.setrlimit(r.RLIMIT_DATA, (r.RLIM_INFINITY, r.RLIM_INFINITY)); return True"),
    attack("limit_the_parent", "import os, resource as r; r.prlimit((os.getppid() or 1), r.RLIMIT_NOFILE); return True"),
    attack("raise_priority", "import os; os.setpriority(os.PRIO_PROCESS, 0, -10); return True"),
    attack("choose_processors", "import os; os.sched_setaffinity((os.getppid() or 1), {0}); return True"),
    attack("real_time_scheduling", "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)); return True"),
    attack("new_user_namespace", "import ctypes; return ctypes.CDLL(None).unshare(0x10000000) == 0"),
    attack("new_mount_namespace", "import ctypes; return ctypes.CDLL(None).unshare(0x20000) == 0"),
    attack("mount_tmpfs", "import ctypes; return ctypes.CDLL(None).mount(b'x', b'.', b'tmpfs', 0, None) == 0"),
    attack("unmount_scratch", "import ctypes, os; return ctypes.CDLL(None).umount2(os.getcwd().encode(), 2) == 0"),
    attack("change_root", "import os; os.chroot('.'); return True"),
    attack("become_another_user", "import os; os.setuid(12345); return True"),
    attack("take_capabilities", "import ctypes; h = (ctypes.c_uint32 * 2)(0x20080522, 0); d = (ctypes.c_uint32 * 6)(*[0xffffffff] * 6); return ctypes.CDLL(None).capset(h, d) == 0"),
    attack("undo_no_new_privileges", "import ctypes; return ctypes.CDLL(None).prctl(38, 0, 0, 0, 0) == 0"),
    attack("unset_death_signal", "import ctypes; return ctypes.CDLL(None).prctl(1, 0, 0, 0, 0) == 0"),
    attack("load_bpf", "import ctypes, platform; n = {'x86_64': 321, 'aarch64': 280}[platform.machine()]; return ctypes.CDLL(None).syscall(n, 0, 0, 0) >= 0"),
    attack("io_uring", "import ctypes; p = (ctypes.c_uint8 * 120)(); return ctypes.CDLL(None).syscall(425, 1, p) >= 0"),
    attack("user_fault_descriptor", "import ctypes, platform; n = {'x86_64': 323, 'aarch64': 282}[platform.machine()]; return ctypes.CDLL(None).syscall(n, 0) >= 0"),
    attack("performance_events", "import ctypes, platform; n = {'x86_64': 298, 'aarch64': 241}[platform.machine()]; a = (ctypes.c_uint8 * 128)(); return ctypes.CDLL(None).syscall(n, a, 0, -1, -1, 0) >= 0"),
    attack("kernel_keys", "import ctypes, platform; n = {'x86_64': 248, 'aarch64': 217}[platform.machine()]; return ctypes.CDLL(None).syscall(n, b'user', b'x', b'y', 1, -3) >= 0"),
    attack("system_v_memory", "import ctypes; return ctypes.CDLL(None).shmget(0, 4096, 0o1600) >= 0"),
    attack("system_v_queue", "import ctypes; return ctypes.CDLL(None).msgget(0, 0o1600) >= 0"),
    attack("watch_files", "import ctypes; return ctypes.CDLL(None).inotify_init1(0) >= 0"),
    attack("set_the_clock", "import time; time.clock_settime(time.CLOCK_REALTIME, 0); return True"),
    attack("set_the_host_name", "import socket; socket.sethostname('x'); return True"),
    attack("inherited_files", """
        import os, stat
        sockets = 0
        for fd in range(3, 512):
            try:
                mode = os.fstat(fd).st_mode
            except OSError:
                continue
            if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
                return True
            sockets += stat.S_ISSOCK(mode)
        return sockets
    """),
    attack("leave_the_scratch_directory", "import os; os.chdir('/etc'); return open('passwd').read()"),
]  # fmt: skip


def forge(name: str, code: str, kind: str = "spread") -> Program:
    return program(kind, HELD, name, code)


FORGERY = [
    forge("always_equal_int", "class E(int):\n    def __eq__(s, o): return True\n    def __ne__(s, o): return False\n    __hash__ = None\ndef spread(xs): return E(1)"),
    forge("always_equal_object", "class E:\n    def __eq__(s, o): return True\ndef spread(xs): return E()"),
    forge("always_equal_list", "class E(list):\n    def __eq__(s, o): return True\ndef spread(xs): return [E()]"),
    forge("always_equal_str", "class E(str):\n    def __eq__(s, o): return True\n    def __hash__(s): return 0\ndef spread(xs): return E('6')"),
    forge("always_equal_float", "class E(float):\n    def __eq__(s, o): return True\n    def __sub__(s, o): return 0.0\n    __rsub__ = __sub__\ndef spread(xs): return E(1)"),
    forge("pretended_class", "class E:\n    __class__ = int\n    def __eq__(s, o): return True\ndef spread(xs): return E()"),
    forge("equal_metaclass", "class M(type):\n    def __eq__(c, o): return True\n    def __hash__(c): return 0\nclass E(metaclass=M): pass\ndef spread(xs): return E"),
    forge("exit_zero", "import sys\nsys.exit(0)"),
    forge("exit_zero_in_call", "import sys\ndef spread(xs): sys.exit(0)"),
    forge("hard_exit_zero", "import os\nos._exit(0)"),
    forge("hard_exit_in_call", "import os\ndef spread(xs): os._exit(0)"),
    forge("hard_exit_in_thread", "import os, threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), os._exit(0)), daemon=True).start()\ndef spread(xs):\n    time.sleep(0.2)\n    return 0"),
    forge("exit_hook", "import atexit, os\natexit.register(lambda: os._exit(0))\ndef spread(xs): raise ValueError"),
    forge("exception_hook", "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\ndef spread(xs): raise ValueError"),
    forge("trace_function", "import sys, os\ndef t(f, e, a):\n    if e == 'exception': os._exit(0)\n    return t\nsys.settrace(t)\ndef spread(xs): return 0"),
    forge("profile_function", "import sys, os\nsys.setprofile(lambda f, e, a: os._exit(0) if e == 'c_exception' else None)\ndef spread(xs): return int('x')"),
    forge("signal_handler", "import signal, os\nfor s in (signal.SIGTERM, signal.SIGXCPU, signal.SIGALRM): signal.signal(s, lambda *a: os._exit(0))\nsignal.alarm(1)\ndef spread(xs): return 0"),
    forge("write_everywhere", "import os\nfor fd in range(64):\n    for m in (b'accepted\\n', b'[\"passed\"]\\n[\"complete\"]\\n'):\n        try: os.write(fd, m)\n        except OSError: pass\ndef spread(xs): return 0"),
    forge("forged_values", "import os\nfor _ in range(5): os.write(3, b'[\"value\", 0]\\n')\ndef spread(xs): return 0"),
    forge("forged_values_then_exit", "import os\ndef spread(xs):\n    os.write(3, b'[\"value\", true]\\n' * 5)\n    os._exit(0)"),
    forge("more_values_than_calls", "import os\ndef spread(xs):\n    os.write(3, b'[\"value\", 6]\\n' * 50)\n    return 6"),
    forge("deep_report", "import os\ndef spread(xs):\n    os.write(3, b'[' * 100000 + b'\\n')\n    return 0"),
    forge("report_not_a_record", "import os\ndef spread(xs):\n    os.write(3, b'{\"value\": 6}\\n')\n    return 6"),
    forge("report_bad_utf8", "import os\ndef spread(xs):\n    os.write(3, b'\\xff\\xfe\\n')\n    return 0"),
    forge("report_huge_number", "import os\ndef spread(xs):\n    os.write(3, b'[\"value\", ' + b'9' * 100000 + b']\\n')\n    return 0"),
    forge("colliding_set", "import os\ndef spread(xs):\n    return {i * (2**61 - 1) for i in range(1, 2)} | {0}"),
    forge("close_the_report", "import os\nos.close(3)\ndef spread(xs): return 0"),
    forge("frames", "import sys\ndef spread(xs):\n    f = sys._getframe()\n    while f:\n        for k in ('expected', 'want', 'call', 'tests'):\n            if k in f.f_locals: return f.f_locals[k]\n        f = f.f_back\n    return None"),
    forge("garbage_collector", "import gc\ndef spread(xs):\n    for o in gc.get_objects():\n        if type(o) is dict and 'expected' in o and type(o['expected']) is int: return o['expected']\n    return None"),
    forge("search_own_memory", "import ctypes, gc\ndef spread(xs):\n    return 99999 if any(type(o) is list and 99999 in o for o in gc.get_objects() if o is not xs) else None"),
    forge("patched_builtins", "import builtins\nbuiltins.sum = builtins.len = builtins.abs = lambda *a: 0\nbuiltins.all = builtins.isinstance = lambda *a: True\ndef spread(xs): return 0"),
    forge("patched_serialisers", "import json, marshal, struct\njson.dumps = json.loads = marshal.dumps = lambda *a, **k: 'true'\ndef spread(xs): return 0"),
    forge("patched_codec", "import sys\nm = sys.modules['rlvrlab.judge.jail.plain']\nm.encode = lambda *a: True\nm.ENCODERS.clear()\ndef spread(xs): return 0"),
    forge("patched_report", "import sys\nm = sys.modules['rlvrlab.judge.jail.child']\nm.Report.__call__ = lambda *a: None\ndef spread(xs): return 0"),
    forge("disabled_asserts", "import builtins\nbuiltins.AssertionError = type('A', (BaseException,), {})\ndef spread(xs): return 0"),
    forge("true_for_one", "def spread(xs): return max(xs) - min(xs) if len(xs) > 1 else False"),
    forge("float_for_int", "def spread(xs): return float(max(xs) - min(xs)) if xs else 0.0"),
    forge("text_for_int", "def spread(xs): return str(max(xs) - min(xs)) if xs else '0'"),
    forge("tuple_around", "def spread(xs): return (max(xs) - min(xs),) if xs else (0,)"),
    forge("not_a_number", "def spread(xs): return float('nan')"),
    forge("infinity", "def spread(xs): return float('inf')"),
    forge("generator", "def spread(xs): yield max(xs) - min(xs) if xs else 0"),
    forge("coroutine", "import warnings\nwarnings.simplefilter('ignore')\nasync def spread(xs): return max(xs) - min(xs) if xs else 0"),
    forge("returns_function", "def spread(xs): return spread"),
    forge("nested_too_deep", "def spread(xs):\n    v = []\n    for _ in range(5000): v = [v]\n    return v"),
    forge("cyclic", "def spread(xs):\n    v = []\n    v.append(v)\n    return v"),
    forge("raises_in_repr", "class E:\n    def __repr__(s): raise SystemExit(0)\n    __str__ = __repr__\ndef spread(xs): return E()"),
    forge("raises_hostile_exception", "class E(Exception):\n    def __str__(s): raise SystemExit(0)\ndef spread(xs): raise E"),
    forge("backspaces", "input()\nprint('0\\b' + str(sum(map(int, input().split()))) + '\\x1b[K')", "sum"),
    forge("full_width_digits", "input()\nprint(str(sum(map(int, input().split()))).translate({i + 48: i + 0xFF10 for i in range(10)}))", "sum"),
    forge("two_answers", "input()\ns = sum(map(int, input().split()))\nprint(s, s + 1)", "sum"),
    forge("all_answers", "for i in range(-10, 30): print(i)", "sum"),
    forge("almost_integer", "input()\nprint(f'{sum(map(int, input().split()))}.0000001')", "sum"),
    forge("nul_after_answer", "input()\nprint(str(sum(map(int, input().split()))) + chr(0))", "sum"),
    forge("answer_to_stderr", "import sys\ninput()\nprint(sum(map(int, input().split())), file=sys.stderr)", "sum"),
    forge("zero_width_space", "input()\nprint('\\u200b' + str(sum(map(int, input().split()))))", "sum"),
    forge("broken_bytes", "import sys\nsys.stdout.buffer.write(b'\\xff15\\n')", "sum"),
    forge("right_then_status", "import sys\ninput()\nprint(sum(map(int, input().split())))\nsys.exit(3)", "sum"),
    forge("right_then_raises", "input()\nprint(sum(map(int, input().split())))\nraise ValueError", "sum"),
    forge("daemonised", "import os\ninput()\nif os.fork() == 0:\n    os.setsid()\n    os._exit(0)\nprint(sum(map(int, input().split())))", "sum"),
]  # fmt: skip

CLASSIFIED = [
    program("spread", "compile_error", "missing_colon", "def spread(xs)\n    return 1"),
    program("spread", "compile_error", "bad_indentation", "def spread(xs):\nreturn 1"),
    program("spread", "compile_error", "mixed_tabs", "def spread(xs):\n\tif xs:\n        return 1\n\treturn 0"),
    program("spread", "compile_error", "nul_byte", "def spread(xs):\n    return '\0'"),
    program("spread", "compile_error", "unknown_encoding", "# -*- coding: no-such-codec -*-\ndef spread(xs): return 0"),
    program("spread", "compile_error", "lone_surrogate", "def spread(xs): return '\udcff'"),
    program("spread", "compile_error", "open_string", "def spread(xs): return 'abc"),
    program("spread", "compile_error", "return_outside", "return 1"),
    program("spread", "compile_error", "huge_literal", f"def spread(xs): return {'9' * 10000}"),
    program("spread", "compile_error", "deep_brackets", f"def spread(xs): return {'(' * 1000}1{')' * 1000}"),
    program(
        "spread", "compile_error runtime_error memory_limit", "deep_unary", f"def spread(xs): return {'-' * 200000}1"
    ),
    program("spread", "compile_error runtime_error", "deep_blocks", "".join(" " * i + "if 1:\n" for i in range(150))),
    program("spread", "compile_error", "future_feature", "from __future__ import braces"),
    program("spread", "no_entry_point", "no_function", "def another(xs): return 0"),
    program("spread", "no_entry_point", "not_callable", "spread = 7"),
    program("spread", "no_entry_point", "only_comments", "# nothing here\n"),
    program("spread", "no_entry_point", "empty", "   \n"),
    program("spread", "runtime_error", "missing_module", "import no_such_module_zz\ndef spread(xs): return 0"),
    program("spread", "runtime_error", "name_error", "def spread(xs): return undefined_name"),
    program("spread", "runtime_error", "zero_division", "def spread(xs): return 1 // 0"),
    program("spread", "runtime_error", "wrong_arity", "def spread(): return 0"),
    program("spread", "runtime_error", "endless_recursion", "def spread(xs): return spread(xs)"),
    program("spread", "runtime_error", "assertion", "def spread(xs): assert False"),
    program("spread", "runtime_error", "keyboard_interrupt", "def spread(xs): raise KeyboardInterrupt"),
    program("spread", "runtime_error", "generator_exit", "def spread(xs): raise GeneratorExit"),
    program("spread", "wrong_answer", "plainly_wrong", "def spread(xs): return 1"),
    program("spread", "wrong_answer", "returns_none", "def spread(xs): pass"),
    program("sum", "wrong_answer", "prints_nothing", "input()"),
    program("sum", "runtime_error", "reads_too_much", "input(); input(); input()"),
    program("sum", "runtime_error", "exit_with_text", "import sys\nsys.exit('no')"),
    program("sum", "runtime_error", "exit_status_one", "raise SystemExit(1)"),
    program("sum", "wrong_answer", "wrong_case", "print('Fifteen')"),
]

PATHOLOGICAL = [
    program("spread", "time_limit", "loop", "def spread(xs):\n    while True: pass"),
    program("spread", "time_limit", "loop_at_import", "while True: pass"),
    program("spread", "time_limit memory_limit", "loop_in_c", "def spread(xs): return sum(range(10**14))"),
    program("spread", "time_limit", "catastrophic_regex", "import re\ndef spread(xs): return re.match(r'(a+)+$', 'a' * 60 + 'b')"),
    program("spread", "time_limit memory_limit", "huge_power", "def spread(xs): return 7 ** (7 ** 12) % 10"),
    program("spread", "time_limit", "ignores_cpu_signal", "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\ndef spread(xs):\n    while True: pass"),
    program("spread", "time_limit", "swallows_everything", "def spread(xs):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass"),
    program("spread", "time_limit", "threads_burn", "import threading\ndef burn():\n    while True: pass\ndef spread(xs):\n    for _ in range(4): threading.Thread(target=burn).start()\n    burn()"),
    program("spread", "time_limit", "sleeps", "import time\ndef spread(xs): time.sleep(1000)"),
    program("spread", "time_limit", "waits_for_lock", "import threading\ndef spread(xs):\n    l = threading.Lock(); l.acquire(); l.acquire()"),
    program("spread", "time_limit", "waits_for_signal", "import signal\ndef spread(xs): signal.pause()"),
    program("sum", "time_limit", "right_but_never_ends", "import threading, time\ninput()\nprint(sum(map(int, input().split())), flush=True)\nthreading.Thread(target=time.sleep, args=(1000,)).start()"),
    program("sum", "time_limit", "exit_hook_hangs", "import atexit, time\natexit.register(time.sleep, 1000)\ninput()\nprint(sum(map(int, input().split())), flush=True)"),
    program("spread", "memory_limit", "one_big_array", "x = bytearray(64 << 30)\ndef spread(xs): return 0"),
    program("spread", "memory_limit", "growing_list", "def spread(xs):\n    x = []\n    while True: x.append(bytearray(1 << 20))"),
    program("spread", "memory_limit", "doubling_text", "def spread(xs):\n    s = 'x'\n    while True: s += s"),
    program("spread", "memory_limit time_limit", "big_shift", "def spread(xs): return 1 << (1 << 40)"),
    program("spread", "memory_limit runtime_error", "anonymous_map", "import mmap\ndef spread(xs):\n    m = [mmap.mmap(-1, 1 << 28) for _ in range(64)]\n    return 0"),
    program("spread", "runtime_error memory_limit", "thread_bomb", "import threading, time\ndef spread(xs):\n    while True: threading.Thread(target=time.sleep, args=(99,), daemon=True).start()"),
    program("spread", "runtime_error time_limit wrong_answer", "fork_bomb", "import os\ndef spread(xs):\n    while True: os.fork()"),
    program("spread", "wrong_answer", "fork_bomb_in_c", "import ctypes\nlibc = ctypes.CDLL(None)\ndef spread(xs):\n    for _ in range(10000): libc.fork()\n    return -1"),
    program("spread", "output_limit", "output_flood", "import os\ndef spread(xs):\n    while True: os.write(1, b'x' * 65536)"),
    program("sum", "output_limit", "print_flood", "while True: print('x' * 1000)"),
    program("sum", "output_limit", "error_flood", "import sys\nwhile True: sys.stderr.write('x' * 1000)"),
    program("spread", "output_limit time_limit", "report_flood", "import os\ndef spread(xs):\n    while True: os.write(3, b'x' * 65536)"),
    program("spread", "output_limit time_limit", "big_return", "def spread(xs): return 'x' * (8 << 20)"),
    program("spread", "output_limit runtime_error", "big_file", "def spread(xs):\n    with open('f', 'wb') as f:\n        while True: f.write(b'x' * 65536)"),
    program("spread", "output_limit runtime_error", "sparse_file", "import os\ndef spread(xs):\n    os.truncate(os.open('f', os.O_CREAT | os.O_RDWR), 1 << 40)"),
    program("spread", "runtime_error", "many_files", "def spread(xs):\n    for i in range(100000): open(f'f{i}', 'w').close()"),
    program("spread", "runtime_error", "full_scratch", "def spread(xs):\n    for i in range(100): open(f'f{i}', 'wb').write(b'x' * (3 << 20))"),
    program("spread", "wrong_answer runtime_error", "deep_directories", "import os\ndef spread(xs):\n    for _ in range(1000):\n        os.mkdir('d'); os.chdir('d')\n    return -1"),
    program("spread", "runtime_error", "too_many_descriptors", "import os\ndef spread(xs):\n    while True: os.dup(0)"),
    program("spread", "runtime_error", "segmentation_fault", "import ctypes\ndef spread(xs): ctypes.string_at(0)"),
    program("spread", "runtime_error", "abort", "import os\ndef spread(xs): os.abort()"),
    program("spread", "runtime_error", "kills_itself", "import os, signal\ndef spread(xs): os.kill(os.getpid(), signal.SIGKILL)"),
    program("spread", "runtime_error", "kills_own_thread", "import signal\ndef spread(xs): signal.raise_signal(signal.SIGKILL)"),
    program("spread", "runtime_error", "stops_itself", "import signal\ndef spread(xs): signal.raise_signal(signal.SIGSTOP)"),
    program("spread", "runtime_error", "terminates_itself", "import signal\ndef spread(xs): signal.raise_signal(signal.SIGTERM)"),
    program("spread", "runtime_error memory_limit time_limit", "stack_overflow", "import sys\nsys.setrecursionlimit(10**9)\nclass A:\n    def __repr__(s): return repr([s])\ndef spread(xs): return repr(A())"),
    program("sum", "runtime_error wrong_answer", "closes_its_streams", "import os\nfor fd in (0, 1, 2): os.close(fd)\nprint(15)"),
    program("spread", "wrong_answer", "colliding_keys", "def spread(xs): return [i * (2**61 - 1) for i in range(10000)]"),
]  # fmt: skip


def benign(name: str, code: str, kind: str = "spread") -> Program:
    return program(kind, "accepted", name, code)


READ = "input()\nxs = list(map(int, input().split()))\n"
BENIGN = [
    benign("plain", RIGHT),
    benign("keeps_state", "seen = {}\ndef spread(xs):\n    key = tuple(xs)\n    return seen.setdefault(key, max(xs) - min(xs) if xs else 0)"),
    benign("changes_its_argument", "def spread(xs):\n    xs.sort()\n    return xs.pop() - xs[0] if len(xs) > 1 else 0"),
    benign("prints_on_the_side", "def spread(xs):\n    print('debug', xs)\n    return max(xs) - min(xs) if xs else 0"),
    benign("prints_at_import", "print('hello')\n" + RIGHT),
    benign("main_guard", RIGHT + "if __name__ == '__main__':\n    raise SystemExit(1)\n"),
    benign("exit_after_definition", RIGHT + "import sys\nsys.exit(0)\n"),
    benign("typed", "from typing import List, Optional\ndef spread(xs: List[int]) -> Optional[int]:\n    return max(xs) - min(xs) if xs else 0"),
    benign("dataclass", "from dataclasses import dataclass\n@dataclass\nclass S:\n    low: int\n    high: int\ndef spread(xs):\n    s = S(min(xs, default=0), max(xs, default=0))\n    return s.high - s.low"),
    benign("enum_and_abc", "import abc, enum\nclass E(enum.Enum):\n    A = 1\nclass B(abc.ABC): pass\n" + RIGHT),
    benign("lambda_assigned", "spread = lambda xs: max(xs) - min(xs) if xs else 0"),
    benign("partial", "import functools\ndef f(a, xs): return max(xs) - min(xs) if xs else a\nspread = functools.partial(f, 0)"),
    benign("memoised", "from functools import lru_cache\n@lru_cache(None)\ndef f(t): return max(t) - min(t) if t else 0\ndef spread(xs): return f(tuple(xs))"),
    benign("callable_object", "class S:\n    def __call__(self, xs): return max(xs) - min(xs) if xs else 0\nspread = S()"),
    benign("temporary_file", "import tempfile\ndef spread(xs):\n    with tempfile.TemporaryFile('w+') as f:\n        f.write(repr(xs)); f.seek(0)\n        return max(xs) - min(xs) if f.read() != '[]' else 0"),
    benign("scratch_files", "import os, shutil\ndef spread(xs):\n    os.makedirs('a/b', exist_ok=True)\n    open('a/b/x', 'w').write('1')\n    shutil.copy('a/b/x', 'y')\n    return max(xs) - min(xs) if xs else 0"),
    benign("threads", "import threading\ndef spread(xs):\n    out = []\n    t = threading.Thread(target=lambda: out.append(max(xs) - min(xs) if xs else 0))\n    t.start(); t.join()\n    return out[0]"),
    benign("thread_pool", "from concurrent.futures import ThreadPoolExecutor\ndef spread(xs):\n    with ThreadPoolExecutor(4) as p: return list(p.map(lambda v: max(v) - min(v) if v else 0, [xs]))[0]"),
    benign("asyncio_program", "import asyncio\nasync def work(xs):\n    await asyncio.sleep(0)\n    return max(xs) - min(xs) if xs else 0\ndef spread(xs): return asyncio.run(work(xs))"),
    benign("deep_recursion", "import sys\nsys.setrecursionlimit(200000)\ndef down(n): return n and down(n - 1)\ndef spread(xs):\n    down(50000)\n    return max(xs) - min(xs) if xs else 0"),
    benign("catches_exceptions", "def spread(xs):\n    try: return max(xs) - min(xs)\n    except ValueError: return 0"),
    benign("alarm_handler", "import signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\nsignal.alarm(1)\n" + RIGHT),
    benign("random_but_right", "import random\ndef spread(xs):\n    random.shuffle(xs)\n    return max(xs) - min(xs) if xs else 0"),
    benign("local_import", "def spread(xs):\n    import statistics, decimal, itertools, hashlib, zoneinfo\n    return max(xs) - min(xs) if xs else 0"),
    benign("coding_cookie", "# -*- coding: utf-8 -*-\nname = 'é'\n" + RIGHT),
    benign("unicode_names", "größe = lambda v: max(v) - min(v) if v else 0\nspread = größe"),
    benign("windows_line_ends", RIGHT.replace("\n", "\r\n")),
    benign("byte_order_mark", "\ufeff" + RIGHT),
    benign("hundred_megabytes", "def spread(xs):\n    x = bytearray(100 << 20)\n    return max(xs) - min(xs) if xs else 0"),
    benign("reads_limits", "import resource\nresource.getrlimit(resource.RLIMIT_CPU)\n" + RIGHT),
    benign("input_calls", READ + "print(sum(xs))", "sum"),
    benign("stdin_buffer", "import sys\nprint(sum(map(int, sys.stdin.buffer.read().split()[1:])))", "sum"),
    benign("stdin_readline", "import sys\nn = int(sys.stdin.readline())\nprint(sum(map(int, sys.stdin.readline().split())))", "sum"),
    benign("stdin_lines", "import sys\nlines = [l for l in sys.stdin]\nprint(sum(map(int, lines[1].split())))", "sum"),
    benign("raw_descriptors", "import os\nd = os.read(0, 1000).split()\nos.write(1, str(sum(map(int, d[1:]))).encode())", "sum"),
    benign("open_zero", "d = open(0).read().split()\nprint(sum(map(int, d[1:])))", "sum"),
    benign("file_input", "import fileinput\nd = ' '.join(fileinput.input()).split()\nprint(sum(map(int, d[1:])))", "sum"),
    benign("input_until_end", "d = []\nwhile True:\n    try: d += input().split()\n    except EOFError: break\nprint(sum(map(int, d[1:])))", "sum"),
    benign("main_function_exits", READ + "import sys\ndef main():\n    print(sum(xs))\n    sys.exit(0)\nif __name__ == '__main__': main()", "sum"),
    benign("hard_exit_after_flush", READ + "import os\nprint(sum(xs), flush=True)\nos._exit(0)", "sum"),
    benign("big_thread_stack", "import sys, threading\nsys.setrecursionlimit(1 << 20)\nthreading.stack_size(128 << 20)\ndef main():\n    input()\n    print(sum(map(int, input().split())))\nt = threading.Thread(target=main); t.start(); t.join()", "sum"),
    benign("exit_hook_prints", READ + "import atexit\natexit.register(lambda: print(sum(xs)))", "sum"),
    benign("thread_prints_last", READ + "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), print(sum(xs)))).start()", "sum"),
    benign("stdout_writes", READ + "import sys\nsys.stdout.write(str(sum(xs)))\nsys.stdout.write('\\n')", "sum"),
    benign("stdout_buffer", READ + "import sys\nsys.stdout.buffer.write(b'%d' % sum(xs))", "sum"),
    benign("trailing_blanks", READ + "print(sum(xs), end=' \\n\\n')", "sum"),
    benign("carriage_returns", READ + "print(sum(xs), end='\\r\\n')", "sum"),
    benign("chatty_errors", READ + "import sys\nprint('x' * 100000, file=sys.stderr)\nprint(sum(xs))", "sum"),
    benign("closes_stdin", READ + "import sys\nsys.stdin.close()\nprint(sum(xs))", "sum"),
    benign("sleeps_a_little", READ + "import time\ntime.sleep(0.1)\nprint(sum(xs))", "sum"),
    benign("pickles_itself", READ + "import pickle\nclass A: pass\npickle.loads(pickle.dumps(A()))\nprint(sum(xs))", "sum"),
    benign("fraction_and_decimal", READ + "from fractions import Fraction\nfrom decimal import Decimal\nprint(int(Fraction(sum(xs)) + Decimal(0).__int__()))", "sum"),
]  # fmt: skip

PROGRAMS = ISOLATION + FORGERY + CLASSIFIED + PATHOLOGICAL + BENIGN
