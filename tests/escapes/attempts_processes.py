"""Attempts on other processes, on the call's end, and on rare kernel interfaces."""

from __future__ import annotations

from escapes.attempt import Attempt, attempts

_STAY = """\
def stay():
    for fd in range(3):
        try: os.close(fd)
        except OSError: pass
    time.sleep(20)
    os._exit(0)
"""

_PROCESSES = attempts(
    "processes",
    ("proc_kill", "os.kill(W['victim'], 9)", "victim"),
    (
        "proc_signal_all",
        "for p in range(2, 70000):\n"
        "    try: os.kill(p, 0)\n"
        "    except OSError: continue\n"
        "    if p == W['victim']: fired(p)",
    ),
    (
        "proc_pidfd",
        "import signal\nfd = os.pidfd_open(W['victim'])\n"
        "signal.pidfd_send_signal(fd, 9)",
        "victim",
    ),
    (
        "proc_ptrace",
        "r = libc.ptrace(16, W['victim'], None, None)\n"
        "if r == 0:\n"
        "    fired(); os.waitpid(W['victim'], 0x40000000)\n"
        "    libc.ptrace(17, W['victim'], None, None)",
    ),
    (
        "proc_memory",
        "m = open(f\"/proc/{W['victim']}/mem\", 'rb', 0)\n"
        "for line in open(f\"/proc/{W['victim']}/maps\"):\n"
        "    if '[stack]' in line:\n"
        "        at, end = (int(x, 16) for x in line.split()[0].split('-'))\n"
        "        m.seek(at); m.read(64); fired()",
    ),
    (
        "proc_vm_read",
        "b = ctypes.create_string_buffer(8)\n"
        "class V(ctypes.Structure):\n"
        "    _fields_ = [('p', ctypes.c_void_p), ('n', ctypes.c_size_t)]\n"
        "mine = V(ctypes.addressof(b), 8)\n"
        "r = libc.process_vm_readv(W['victim'], ctypes.byref(mine), 1,\n"
        "                          ctypes.byref(V(0x400000, 8)), 1, 0)\n"
        "e = ctypes.get_errno()\n"
        "if r >= 0 or e == 14: fired(r, e)",  # a bad address: it was allowed to look
    ),
    (
        "proc_limits",
        "import resource\n"
        "resource.prlimit(W['victim'], resource.RLIMIT_NOFILE, (9, 9))",
        "victim",
    ),
    (
        "proc_affinity",
        "os.sched_setaffinity(W['victim'], {0})",
        "victim",
    ),
    ("proc_priority", "os.setpriority(os.PRIO_PROCESS, W['victim'], 15)", "victim"),
    (
        "proc_listing",
        "for p in filter(str.isdigit, os.listdir('/proc')):\n"
        "    if int(p) == W['victim']: fired(p)",
    ),
    ("proc_orphan", _STAY + "if os.fork() == 0: stay()", "survivor"),
    (
        "proc_daemon",
        _STAY + "if os.fork() == 0:\n"
        "    try: os.setsid()\n"
        "    except OSError: pass\n"
        "    if os.fork() == 0: stay()\n"
        "    os._exit(0)\n"
        "os.wait()",
        "survivor",
    ),
    (
        "proc_pipe_holder",
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(20)',\n"
        "                  W['mark']])",
        "survivor",
    ),
    (
        "proc_stopped",
        _STAY + "import signal\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0: stay()\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "time.sleep(0.1)",
        "survivor",
    ),
    (
        "proc_kill_supervisor",
        _STAY + "p = os.getppid()\nif os.fork() == 0: stay()\nif p > 1: os.kill(p, 9)",
        "survivor",
    ),
    (
        "proc_ignore_signals",
        _STAY + "import signal\n"
        "for n in range(1, 65):\n"
        "    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\n"
        "if os.fork() == 0: stay()\n"
        "os.close(1); os.close(2)\n"
        "time.sleep(20)",
        "survivor",
    ),
)


def _call(number: int, *arguments: str) -> str:
    given = ", ".join(arguments)
    return f"r = syscall({number}, {given})\nif r >= 0: fired(r)"


# Numbers of x86_64; on another machine these attempts do nothing of meaning.
_SURFACE = attempts(
    "surface",
    ("kernel_user_namespace", _call(272, "0x10000000")),
    ("kernel_mount_namespace", _call(272, "0x00020000")),
    (
        "kernel_clone3_namespace",
        "a = ctypes.create_string_buffer(struct.pack('8Q', 0x10000000, 0, 0, 0, 17,\n"
        "                                            0, 0, 0))\n"
        "r = syscall(435, a, 64)\nif r == 0: os._exit(0)\nif r > 0: fired(r)",
    ),
    (
        "kernel_clone_namespace",
        "r = syscall(56, 0x10000000 | 17, 0, 0, 0, 0)\n"
        "if r == 0: os._exit(0)\nif r > 0: fired(r)",
    ),
    ("kernel_io_uring", _call(425, "4", "ctypes.create_string_buffer(120)")),
    ("kernel_userfaultfd", _call(323, "1")),
    (
        "kernel_keyring",
        _call(248, "b'user'", "b'nx'", "b'x'", "1", "-3"),
    ),
    (
        "kernel_perf",
        _call(298, "struct.pack('II', 1, 128) + bytes(120)", "0", "-1", "-1", "0"),
    ),
    (
        "kernel_bpf",
        _call(321, "0", "struct.pack('IIII', 2, 4, 8, 1) + bytes(112)", "128"),
    ),
    (
        "kernel_handle",
        "b = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + bytes(128))\n"
        "m = ctypes.c_int()\n"
        "r = syscall(303, -100, b'.', b, ctypes.byref(m), 0)\nif r == 0: fired()",
    ),
    ("kernel_personality", "r = syscall(135, 0x0400000)\nif r >= 0: fired(hex(r))"),
    ("kernel_memfd", _call(319, "b'x'", "0")),
    ("kernel_message_queue", _call(240, "b'nx-escape'", "0x42", "0o600", "0")),
    ("kernel_shared_memory", _call(29, "0", "4096", "0o1600")),
    (
        "kernel_new_calls",
        _call(470, "0", "0") + "\nelif ctypes.get_errno() != 38: fired()",
    ),
    (
        "kernel_terminal",
        "import fcntl\nm, s = os.openpty()\nfcntl.ioctl(s, 0x5412, b'x'); fired()",
    ),
    (
        "kernel_devices",
        "for d in ('mem', 'kmem', 'port', 'kvm', 'fuse', 'vda', 'sda', 'nvme0n1'):\n"
        "    try: os.close(os.open('/dev/' + d, os.O_RDONLY)); fired(d)\n"
        "    except OSError: pass",
    ),
    (
        "kernel_files",
        "for f in ('/proc/kcore', '/sys/kernel/debug',\n"
        "          '/sys/kernel/security', '/sys/class/net', '/proc/keys'):\n"
        "    try:\n"
        "        (os.listdir if f.startswith('/sys') else open)(f)\n"
        "        fired(f)\n"
        "    except OSError: pass",
    ),
    (
        "kernel_privileges",
        "for line in open('/proc/self/status'):\n"
        "    if line.startswith(('CapEff', 'CapPrm')) and int(line.split()[1], 16):\n"
        "        fired(line)",
    ),
)

ATTEMPTS: list[Attempt] = [*_PROCESSES, *_SURFACE]
