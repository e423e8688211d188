#!/usr/bin/env bash
# The only thing that writes client/equipoise/v1. Run it inside an environment whose bin is on PATH.
set -euo pipefail
cd "$(dirname "$0")/.."
# Written beside what is there, which stays if anything fails.
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
python -m grpc_tools.protoc -I protos --python_out="$made" --mypy_out=quiet:"$made" protos/equipoise/v1/*.proto
# shellcheck disable=SC2046  # file names in this folder have no spaces
python -m grpc_tools.protoc -I protos --grpc_python_out="$made" --mypy_grpc_out=quiet:"$made" \
  $(grep -l '^service ' protos/equipoise/v1/*.proto)
mkdir -p client/equipoise/v1
rm -f client/equipoise/v1/*_pb2*.py client/equipoise/v1/*_pb2*.pyi
cp "$made"/equipoise/v1/* client/equipoise/v1/
[ -f client/equipoise/v1/__init__.py ] || printf '"""Generated from protos/equipoise/v1 by protos/generate.sh; never edited."""\n' > client/equipoise/v1/__init__.py
