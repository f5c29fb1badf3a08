"""Seccomp filter: the system calls a script may make, as classic BPF.

`program` returns the bytes of `struct sock_filter[]` for x86_64 or aarch64. Everything
not listed here is allowed: the filter complements namespaces or Landlock and is not a
sandbox by itself. Calls of another architecture or ABI end the process.
"""

from __future__ import annotations

import errno
import struct

from neuraxis.sandbox.process.job import CannotStart

_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NEWEST = 469
"""Highest known system call number; later calls are refused."""

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _ANY, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06
_NUMBER_AT, _ARCH_AT, _ARGS_AT = 0, 4, 16

# Numbers on x86_64 and aarch64; -1: the call does not exist there.
_REFUSED = """
ptrace 101 117  process_vm_readv 310 270  process_vm_writev 311 271  kcmp 312 272
kexec_load 246 104  kexec_file_load 320 294  init_module 175 105
finit_module 313 273  delete_module 176 106  create_module 174 -1
get_kernel_syms 177 -1  query_module 178 -1
mount 165 40  umount2 166 39  pivot_root 155 41  chroot 161 51  unshare 272 97
setns 308 268  move_mount 429 429  open_tree 428 428  fsopen 430 430
fsconfig 431 431  fsmount 432 432  fspick 433 433  mount_setattr 442 442
statmount 457 457  listmount 458 458  swapon 167 224  swapoff 168 225
reboot 169 142  sethostname 170 161  setdomainname 171 162  iopl 172 -1
ioperm 173 -1  acct 163 89  quotactl 179 60  quotactl_fd 443 443
nfsservctl 180 42  add_key 248 217  request_key 249 218  keyctl 250 219
bpf 321 280  perf_event_open 298 241  userfaultfd 323 282
io_uring_setup 425 425  io_uring_enter 426 426  io_uring_register 427 427
open_by_handle_at 304 265  name_to_handle_at 303 264
fanotify_init 300 262  fanotify_mark 301 263  lookup_dcookie 212 18
pidfd_getfd 438 438  process_madvise 440 440  process_mrelease 448 448
settimeofday 164 170  clock_settime 227 112  clock_adjtime 305 266
adjtimex 159 171  syslog 103 116  modify_ldt 154 -1  uselib 134 -1
vhangup 153 58  _sysctl 156 -1  sysfs 139 -1  ustat 136 -1
shmget 29 194  shmat 30 196  shmctl 31 195  msgget 68 186  semget 64 190
mq_open 240 180  mq_unlink 241 181  migrate_pages 256 238  move_pages 279 239
mbind 237 235  set_mempolicy 238 237  set_mempolicy_home_node 450 450
vmsplice 278 75  pkey_alloc 330 289  remap_file_pages 216 234  io_setup 206 0
afs_syscall 183 -1  tuxcall 184 -1  security 185 -1  putpmsg 182 -1
getpmsg 181 -1  lsm_set_self_attr 460 460  lsm_get_self_attr 459 459
lsm_list_modules 461 461
"""
# Reported as missing, so that libraries fall back to older calls.
_ABSENT = "clone3 435 435  openat2 437 437  memfd_create 319 279  memfd_secret 447 447"
# Without its own namespaces, a script must not touch other programs' files. The
# filter cannot see which file is meant, so these calls do nothing and report success:
# copying a file with its mode and times is common, and needs neither.
_FAKED = """
chmod 90 -1  fchmod 91 52  fchmodat 268 53  fchmodat2 452 452  chown 92 -1
fchown 93 55  lchown 94 -1  fchownat 260 54  setxattr 188 5  lsetxattr 189 6
fsetxattr 190 7  removexattr 197 14  lremovexattr 198 15  fremovexattr 199 16
setxattrat 463 463  removexattrat 466 466  utime 132 -1  utimes 235 -1
futimesat 261 -1  utimensat 280 88
"""
# Landlock does not cover them: they would reveal changes to files outside.
_WATCHING = """
inotify_init 253 -1  inotify_init1 294 26  inotify_add_watch 254 27
inotify_rm_watch 255 28
"""
# Leaving the process group, and settings of other processes.
_GROUP = "setsid 112 157  setpgid 109 154  setpriority 141 140  ioprio_set 251 30"
_OF_OTHERS = """
prlimit64 302 261  sched_setaffinity 203 122  sched_setscheduler 144 119
sched_setattr 314 274  sched_setparam 142 118
"""
_SIGNALS = """
kill 62 129  tkill 200 130  tgkill 234 131  rt_sigqueueinfo 129 138
rt_tgsigqueueinfo 297 240  pidfd_send_signal 424 424
"""
_NEW_NAMESPACE = 0x7E020000
_SET_ID = 0o6000
_O_CREATES = 0o20000000 | 0o100  # O_TMPFILE's own bit, O_CREAT
_FAMILIES = {"unix": 1, "inet": 2, "inet6": 10}
_STREAM = 1
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX

Code = list[tuple[int, int, int, int]]


def _table(text: str, machine: str) -> list[int]:
    words = text.split()
    column = 1 if machine == "x86_64" else 2
    return [int(number) for number in words[column::3] if int(number) >= 0]


def _number(name: str, machine: str) -> int:
    x86, arm = {
        "personality": (135, 92),
        "clone": (56, 220),
        "mknod": (133, -1),
        "mknodat": (259, 33),
        "socket": (41, 198),
        "socketpair": (53, 199),
        "ioctl": (16, 29),
        "open": (2, -1),
        "creat": (85, -1),
        "openat": (257, 56),
        "chmod": (90, -1),
        "fchmod": (91, 52),
        "fchmodat": (268, 53),
        "fchmodat2": (452, 452),
        "truncate": (76, 45),
    }[name]
    return x86 if machine == "x86_64" else arm


def _give(value: int) -> Code:
    return [(_RETURN, 0, 0, value)]


def _refuse(number: int = errno.EPERM) -> Code:
    return _give(_ERRNO | number)


def _argument(index: int) -> Code:
    # The kernel reads these arguments as 32 bits: the lower half comes first in memory.
    return [(_LOAD, 0, 0, _ARGS_AT + 8 * index)]


def _for(number: int, body: Code) -> Code:
    """Apply `body` to this call only; reload the number afterwards."""
    if number < 0:
        return []
    body_ = [*body, (_LOAD, 0, 0, _NUMBER_AT)]
    return [(_EQUAL, 0, len(body_), number), *body_]


def _when(kind: int, values: tuple[int, ...], then: Code) -> Code:
    """Run `then` (which returns) if the loaded value matches any of `values`."""
    code: Code = []
    for value in values:
        code += [(kind, 0, len(then), value), *then]
    return code


def _family(machine: str, families: list[int]) -> Code:
    """Allow only these socket families, and connected socket pairs."""
    allowed = _when(_EQUAL, tuple(families), _give(_ALLOW))
    code = _for(
        _number("socket", machine),
        [*_argument(0), *allowed, *_refuse(errno.EAFNOSUPPORT)],
    )
    unix = _FAMILIES["unix"]
    if unix in families:
        kind: Code = _give(_ALLOW)
    else:
        # One half of a pair of datagram sockets can send to any socket of the host.
        stream = _when(_EQUAL, (_STREAM,), _give(_ALLOW))
        kind = [*_argument(1), (_AND, 0, 0, 0xF), *stream, *_refuse()]
    refusal = _refuse(errno.EAFNOSUPPORT)
    return code + _for(
        _number("socketpair", machine),
        [*_argument(0), (_EQUAL, 0, len(kind), unix), *kind, *refusal],
    )


def _set_id_bits(machine: str) -> Code:
    """Refuse set-user-ID files, by chmod or by the mode at creation."""
    code: Code = []
    bits = _when(_ANY, (_SET_ID,), _refuse())
    modes = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1}
    for name, index in modes.items():
        code += _for(_number(name, machine), [*_argument(index), *bits])
    for name, index in {"open": 1, "openat": 2}.items():
        mode = [*_argument(index + 1), *bits]
        opened = [*_argument(index), (_ANY, 0, len(mode), _O_CREATES), *mode]
        code += _for(_number(name, machine), opened)
    devices = _when(_EQUAL, (0o020000, 0o060000), _refuse())
    for name, index in {"mknod": 1, "mknodat": 2}.items():
        kind = [*_argument(index), (_AND, 0, 0, 0o170000), *devices, *bits]
        code += _for(_number(name, machine), kind)
    return code


def program(
    machine: str,
    *,
    private: bool,
    network: bool = False,
    sockets: bool = True,
    signals: bool = True,
    truncate: bool = True,
) -> bytes:
    """Return the BPF program of the filter.

    Args:
        machine: value of `os.uname().machine`.
        private: whether the script has its own namespaces (bubblewrap).
        network: whether internet sockets are allowed without such namespaces.
        sockets: UNIX sockets may be made, where `private`.
        signals: sending signals is safe, since something else keeps them inside.
        truncate: cutting a file by its name is safe, for the same reason.

    Raises:
        CannotStart: the list is not known for this machine.
    """
    if machine not in _ARCH:
        raise CannotStart(f"no system call filter is known for {machine!r} machines")
    code: Code = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, _ARCH[machine]),
        *_give(_KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
        (_AT_LEAST, 0, 1, 0x40000000),  # the x32 ABI
        *_give(_KILL),
        (_AT_LEAST, 0, 1, _NEWEST + 1),
        *_refuse(errno.ENOSYS),
    ]
    refused = _table(_REFUSED, machine)
    faked: list[int] = []
    if not private:
        refused += _table(_GROUP, machine) + _table(_WATCHING, machine)
        faked = _table(_FAKED, machine)
        for number in _table(_OF_OTHERS, machine):
            own_process = _when(_EQUAL, (0,), _give(_ALLOW))
            code += _for(number, [*_argument(0), *own_process, *_refuse()])
    if not signals:
        refused += _table(_SIGNALS, machine)
    if not truncate:
        refused.append(_number("truncate", machine))
    families = [_FAMILIES["inet"], _FAMILIES["inet6"]] if private or network else []
    if private and sockets:
        families.append(_FAMILIES["unix"])
    code += _family(machine, families)
    code += _set_id_bits(machine)
    code += _by_argument(machine)
    code += _when(_EQUAL, tuple(refused), _refuse())
    code += _when(_EQUAL, tuple(_table(_ABSENT, machine)), _refuse(errno.ENOSYS))
    code += _when(_EQUAL, tuple(faked), _give(_ERRNO | 0))
    code += _give(_ALLOW)
    return b"".join(struct.pack("=HBBI", *step) for step in code)


def _by_argument(machine: str) -> Code:
    """Refuse calls that are dangerous with some arguments only."""
    clone = _when(_ANY, (_NEW_NAMESPACE,), _refuse())
    plain = _when(_EQUAL, (0, 0xFFFFFFFF), _give(_ALLOW))
    input_ = _when(_EQUAL, _TERMINAL_INPUT, _refuse())
    return [
        *_for(_number("clone", machine), [*_argument(0), *clone]),
        *_for(_number("personality", machine), [*_argument(0), *plain, *_refuse()]),
        *_for(_number("ioctl", machine), [*_argument(1), *input_]),
    ]
