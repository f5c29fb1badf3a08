"""Scripts as people write them, which every sandbox must let work."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinary:
    """A script, what must be in its output, and files that stand beside it."""

    name: str
    script: str
    expected: str
    files: dict[str, str] = field(default_factory=dict[str, str])
    args: tuple[str, ...] = ()


ORDINARY: list[Ordinary] = [
    Ordinary(
        name="csv",
        script="import csv\n"
        "print(sum(int(r['n']) for r in csv.DictReader(open('d.csv'))))",
        files={"d.csv": "n,x\n1,a\n41,b\n"},
        expected="42",
    ),
    Ordinary(
        name="json",
        script="import json\njson.dump({'a': [1, 2]}, open('o.json', 'w'))\n"
        "print(json.load(open('o.json'))['a'][1])",
        expected="2",
    ),
    Ordinary(
        name="sqlite",
        script="import sqlite3\nc = sqlite3.connect('d.db')\n"
        "c.execute('pragma journal_mode=wal')\n"
        "c.execute('create table t (x)')\n"
        "c.executemany('insert into t values (?)', [(i,) for i in range(1000)])\n"
        "c.commit()\nprint(c.execute('select sum(x) from t').fetchone()[0])\nc.close()",
        expected="499500",
    ),
    Ordinary(
        name="threads",
        script="from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor(8) as p:\n"
        "    print(sum(p.map(lambda n: n * n, range(100))))",
        expected="328350",
    ),
    Ordinary(
        name="processes",
        script="from multiprocessing import Pool\n"
        "def square(n): return n * n\n"
        "if __name__ == '__main__':\n"
        "    with Pool(3) as p: print(sum(p.map(square, range(100))))",
        expected="328350",
    ),
    Ordinary(
        name="shared between processes",
        script="import multiprocessing as m\n"
        "def add(total, lock, queue):\n"
        "    for _ in range(200):\n"
        "        with lock: total.value += 1\n"
        "    queue.put(1)\n"
        "if __name__ == '__main__':\n"
        "    total, lock, queue = m.Value('i', 0, lock=False), m.Lock(), m.Queue()\n"
        "    all = [m.Process(target=add, args=(total, lock, queue)) for _ in '123']\n"
        "    for each in all: each.start()\n"
        "    ended = sum(queue.get(timeout=20) for _ in all)\n"
        "    for each in all: each.join()\n"
        "    print(ended, total.value)",
        expected="3 600",
    ),
    Ordinary(
        name="process executor",
        script="from concurrent.futures import ProcessPoolExecutor\n"
        "def square(n): return n * n\n"
        "if __name__ == '__main__':\n"
        "    with ProcessPoolExecutor(2) as p: print(sum(p.map(square, range(9))))",
        expected="204",
    ),
    Ordinary(
        name="subprocess",
        script="import subprocess, sys\n"
        "print(subprocess.run([sys.executable, '-c', 'print(6 * 7)'],\n"
        "    capture_output=True, text=True, check=True).stdout)",
        expected="42",
    ),
    Ordinary(
        name="shell",
        script="import subprocess\n"
        "print(subprocess.check_output('echo one two | wc -w', shell=True, text=True))",
        expected="2",
    ),
    Ordinary(
        name="temporary_files",
        script="import tempfile, os\n"
        "with tempfile.TemporaryDirectory() as d:\n"
        "    p = os.path.join(d, 'x'); open(p, 'w').write('temporary')\n"
        "    print(open(p).read())\n"
        "with tempfile.TemporaryFile() as f: f.write(b'ab'); print(f.tell())",
        expected="temporary\n2",
    ),
    Ordinary(
        name="computing",
        script="import math\nn = 200_000\ns = bytearray([1]) * (n + 1)\n"
        "for i in range(2, math.isqrt(n) + 1):\n"
        "    if s[i]: s[i * i :: i] = bytes(len(range(i * i, n + 1, i)))\n"
        "print(sum(s) - 2)",
        expected="17984",
    ),
    Ordinary(
        name="helper_beside",
        script="from helper import twice\nimport pack.part\n"
        "print(twice(21), pack.part.X)",
        files={
            "helper.py": "def twice(n): return 2 * n\n",
            "pack/__init__.py": "",
            "pack/part.py": "X = 'inner'\n",
        },
        expected="42 inner",
    ),
    Ordinary(
        name="unicode",
        script="print('žluťoučký 日本語 🐍')\n"
        "open('ñ.txt', 'w').write('é'); print(open('ñ.txt').read())",
        expected="žluťoučký 日本語 🐍\né",
    ),
    Ordinary(
        name="own_file",
        script="print('reads itself' in open(__file__).read())",
        expected="True",
    ),
    Ordinary(
        name="time_zones",
        script="from datetime import datetime\nfrom zoneinfo import ZoneInfo\n"
        "t = datetime(2026, 7, 1, 12, tzinfo=ZoneInfo('Europe/Prague'))\n"
        "print(t.utcoffset())",
        expected="2:00:00",
    ),
    Ordinary(
        name="arguments",
        script="import argparse\np = argparse.ArgumentParser()\n"
        "p.add_argument('word'); p.add_argument('--times', type=int)\n"
        "a = p.parse_args(); print(a.word * a.times)",
        args=("ab c", "--times", "2"),
        expected="ab cab c",
    ),
    Ordinary(
        name="copying",
        script="import shutil, os, pathlib\nos.makedirs('a/b')\n"
        "pathlib.Path('a/b/f').write_text('x'); shutil.copytree('a', 'c')\n"
        "shutil.copy2('a/b/f', 'g'); os.rename('g', 'h'); os.unlink('a/b/f')\n"
        "os.rmdir('a/b'); print(sorted(os.listdir('.'))[:2], os.path.exists('c/b/f'))",
        expected="['a', 'c'] True",
    ),
    Ordinary(
        name="archives",
        script="import zipfile, gzip, tarfile\n"
        "with zipfile.ZipFile('z.zip', 'w') as z: z.writestr('a.txt', 'hello')\n"
        "print(zipfile.ZipFile('z.zip').read('a.txt').decode())\n"
        "print(len(gzip.compress(b'x' * 1000)) < 100)",
        expected="hello\nTrue",
    ),
    Ordinary(
        name="asyncio",
        script="import asyncio\nasync def f(n): await asyncio.sleep(0.01); return n\n"
        "async def main(): print(sum(await asyncio.gather(*map(f, range(10)))))\n"
        "asyncio.run(main())",
        expected="45",
    ),
    Ordinary(
        name="randomness",
        script="import secrets, uuid, random, hashlib, ssl, decimal\n"
        "print(len(secrets.token_hex(8)), len(str(uuid.uuid4())))",
        expected="16 36",
    ),
    Ordinary(
        name="user_and_machine",
        script="import getpass, os, platform, tempfile\n"
        "print(getpass.getuser(), os.cpu_count() > 0, os.path.expanduser('~') != '~')",
        expected="sandbox True True",
    ),
]
