#!/usr/bin/env bash
# Makes the virtual environment from the lock: venv.sh PYTHON FOLDER UV_VERSION
set -euo pipefail
python=$1 venv=$2 uv_version=$3

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  { echo "docgen needs Python 3.11 or newer; $python is $("$python" -V 2>&1). Say: make PYTHON=python3.12 …" >&2; exit 2; }
if [ ! -x "$venv/bin/python" ]; then
  "$python" -m venv "$venv" ||
    { echo "Python cannot make a virtual environment here; on Debian: apt-get install python3-venv" >&2; exit 2; }
fi
echo "Installing the locked packages into $venv …"
"$venv/bin/python" -m pip install -q --disable-pip-version-check "uv==$uv_version"
"$venv/bin/uv" pip install -q --python "$venv/bin/python" --require-hashes -r requirements.lock
"$venv/bin/uv" pip install -q --python "$venv/bin/python" --no-deps --no-build-isolation -e .
