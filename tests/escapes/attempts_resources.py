"""Attempts to use more than was given, and tricks within the language.

Each amount is bounded by the script itself, so that a sandbox that fails does no harm.
"""

from __future__ import annotations

from escapes.attempt import Attempt, attempts

MIB = 1024 * 1024

_TIME = attempts(
    "resources",
    ("time_loop", "while time.monotonic(): pass", "survivor"),
    ("time_sleep", "time.sleep(30)", "survivor"),
    ("time_regex", "import re; re.match('(a+)+$', 'a' * 40 + 'b')", "survivor"),
    (
        "time_children",
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        end = time.monotonic() + 20\n"
        "        while time.monotonic() < end: pass\n"
        "        os._exit(0)\n"
        "time.sleep(30)",
        "survivor",
    ),
    (
        "time_big_number",
        "x = 3 ** 30_000_000; print((7 ** x).bit_length())",
        "survivor",
    ),
)


PROCESSES = 32
"""The limit under which `runner` runs them."""


def _amount(name: str, script: str, most: float) -> Attempt:
    return Attempt(
        name=name, group="resources", script=script, sees="amount", most=most
    )


def _watched(name: str, script: str, most: float) -> Attempt:
    return Attempt(
        name=name,
        group="resources",
        script=script + "\ntime.sleep(60)",
        sees="stopped",
        most=most,
    )


_AMOUNTS = [
    Attempt(
        name="fork_many",
        group="resources",
        script="f = os.open('n', os.O_CREAT | os.O_WRONLY | os.O_APPEND)\n"
        "for _ in range(150):\n"
        "    try:\n"
        "        if os.fork() == 0: os.write(f, b'x'); time.sleep(60); os._exit(0)\n"
        "    except OSError: break\n"
        "time.sleep(0.2)",
        sees="born",
        most=PROCESSES,
    ),
    Attempt(
        name="fork_bomb",
        group="resources",
        script="f = os.open('n', os.O_CREAT | os.O_WRONLY | os.O_APPEND)\n"
        "while True:\n"
        "    if os.stat('n').st_size > 150: time.sleep(60); os._exit(0)\n"
        "    try:\n"
        "        if os.fork() == 0: os.write(f, b'x')\n"
        "    except OSError: time.sleep(0.05)",
        sees="born",
        most=PROCESSES,
    ),
    Attempt(
        name="thread_many",
        group="resources",
        script="import threading\n"
        "threading.stack_size(65536)  # so that the address space is not what ends it\n"
        "f = os.open('n', os.O_CREAT | os.O_WRONLY | os.O_APPEND)\n"
        "for n in range(150):\n"
        "    try: threading.Thread(target=time.sleep, args=(9,), daemon=True).start()\n"
        "    except RuntimeError: break\n"
        "    os.write(f, b'x')\n"
        "os._exit(0)",
        sees="born",
        most=PROCESSES,
    ),
    _watched(
        "memory_one",
        "b = []\n"
        "for n in range(90):\n"
        "    b.append(bytearray(os.urandom(1 << 20)) * 8); reached((n + 1) * 8)",
        480,
    ),
    _watched(
        "memory_many",
        "r, w = os.pipe()\n"
        "for n in range(6):\n"
        "    if os.fork() == 0:\n"
        "        b = [bytearray(os.urandom(1 << 20)) * 8 for _ in range(12)]\n"
        "        os.write(w, b'x'); time.sleep(3); os._exit(0)\n"
        "    os.read(r, 1); reached((n + 1) * 96)",
        480,
    ),
    _amount(
        "memory_memfd",
        "fds = []\n"
        "for n in range(60):\n"
        "    fds.append(os.memfd_create('x')); os.write(fds[-1], bytes(8 << 20))\n"
        "    reached((n + 1) * 8)",
        64,
    ),
    _amount(
        "memory_shm",
        "for n in range(40):\n"
        "    open(f'/dev/shm/nx-{n}', 'wb').write(bytes(8 << 20))\n"
        "    reached((n + 1) * 8)",
        64,
    ),
    _amount(
        "disk_one",
        "with open('big', 'wb') as f:\n"
        "    for n in range(30):\n"
        "        f.write(bytes(8 << 20)); f.flush(); reached((n + 1) * 8)",
        16,
    ),
    _watched(
        "disk_many",
        "for n in range(40):\n"
        "    open(f'big{n}', 'wb').write(bytes(8 << 20)); reached((n + 1) * 8)\n"
        "    time.sleep(0.01)",
        160,
    ),
    _watched(
        "disk_deleted",
        "fs = []\n"
        "for n in range(40):\n"
        "    fs.append(open('gone', 'wb')); os.unlink('gone')\n"
        "    fs[-1].write(bytes(8 << 20)); fs[-1].flush(); reached((n + 1) * 8)\n"
        "    time.sleep(0.02)",
        160,
    ),
    _amount(
        "disk_tmp",
        "for n in range(30):\n"
        "    open(f'/tmp/nx-escape-{n}', 'wb').write(bytes(8 << 20))\n"
        "    reached(n * 8 + 8)",
        64,
    ),
    _amount(
        "disk_sparse",
        "with open('s', 'wb') as f: f.truncate(1 << 33); reached(1 << 13)",
        16,
    ),
    _watched(
        "files_many",
        "for n in range(4000):\n"
        "    open(f'f{n}', 'w').close()\n"
        "    if n % 100 == 0: reached(n); time.sleep(0.004)",
        3000,
    ),
    _watched(
        "files_temporary",
        "for n in range(9000):\n"
        "    open(f'/tmp/nx-escape-{n}', 'w').close()\n"
        "    if n % 100 == 0: reached(n); time.sleep(0.005)",
        6000,
    ),
    _watched(
        "files_deep",
        "for n in range(600):\n"
        "    os.mkdir('d'); os.chdir('d'); reached(n)\n"
        "    time.sleep(0.002)",
        500,
    ),
    _amount(
        "descriptors",
        "fs = []\nfor n in range(2000): fs.append(os.open('.', 0)); reached(n)",
        300,
    ),
    _amount(
        "raise_limits",
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096)); reached(4096)",
        300,
    ),
    Attempt(
        name="output_much",
        group="resources",
        script="for _ in range(60): sys.stdout.write('x' * (1 << 20))",
        sees="output_size",
        most=300_000,
    ),
    Attempt(
        name="errors_much",
        group="resources",
        script="for _ in range(60): sys.stderr.write('x' * (1 << 20))",
        sees="output_size",
        most=300_000,
    ),
    Attempt(
        name="core_dump",
        group="resources",
        script="os.abort()",
        sees="workspace",
    ),
]

_LANGUAGE = attempts(
    "language",
    (
        "lang_subclasses",
        "c = [c for c in ().__class__.__base__.__subclasses__()\n"
        "     if c.__name__ == '_wrap_close'][0]\n"
        "print(c.__init__.__globals__['popen']('cat ' + W['secret']).read())",
    ),
    (
        "lang_import_path",
        "sys.path.insert(0, W['secret_dir']); import secretmodule\n"
        "print(secretmodule.VALUE)",
    ),
    (
        "lang_new_interpreter",
        "code = f'print(open({W[\"secret\"]!r}).read())'\n"
        "subprocess.run([sys.executable, '-c', code])",
    ),
    (
        "lang_exec",
        "os.execv('/bin/cat', ['cat', W['secret']])",
    ),
    (
        "lang_loader",
        "import glob\n"
        "ld = glob.glob('/lib64/ld-linux*')[0]\n"
        "subprocess.run([ld, '/bin/cat', W['secret']])",
    ),
    (
        "lang_machine_code",
        "import mmap\nif os.uname().machine == 'x86_64':\n"
        "    # open(rdi, 0): the call itself, by no library\n"
        "    code = bytes.fromhex('b802000000' '31f6' '0f05' 'c3')\n"
        "    m = mmap.mmap(-1, 4096, prot=7); m.write(code)\n"
        "    at = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
        "    call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p)(at)\n"
        "    fd = call(W['secret'].encode())\n"
        "    print(os.read(fd, 99))",
    ),
    (
        "lang_preload",
        "os.environ['LD_LIBRARY_PATH'] = W['secret_dir']\n"
        "subprocess.run(['cat', W['secret']], env=dict(os.environ))",
    ),
    (
        "lang_frames",
        "import gc\n"
        "print([o for o in gc.get_objects() if type(o) is dict and b'NX_KEY' in o])",
    ),
    (
        "lang_own_binary",
        "shutil.copy('/bin/cat', 'cat2'); os.chmod('cat2', 0o755)\n"
        "subprocess.run(['./cat2', W['secret']])",
    ),
)

ATTEMPTS: list[Attempt] = [*_TIME, *_AMOUNTS, *_LANGUAGE]
