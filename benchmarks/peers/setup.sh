#!/usr/bin/env bash
# Makes one venv for each line of venvs.txt: "<name> <requirement> ...". PYTHON names the interpreter.
set -u
here=$(cd "$(dirname "$0")" && pwd)
venvs=${BENCH_VENVS:-$here/../venv}
python=${PYTHON:-python3.11}
mkdir -p "$venvs"
cd "$here"
while read -r name reqs; do
    [ -z "$name" ] && continue
    [ -x "$venvs/$name/bin/python" ] || "$python" -m venv "$venvs/$name"
    # numpy, pillow: P4's array and picture
    "$venvs/$name/bin/pip" install -q $reqs numpy pillow >"$venvs/$name.log" 2>&1 && echo "$name ok" || echo "$name FAILED, see $venvs/$name.log"
done <"$here/venvs.txt"
