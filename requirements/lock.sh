#!/usr/bin/env bash
# Writes the lock files of this folder anew, from the ranges in pyproject.toml. Run it by: make lock
# One resolution holds for all files, for Python 3.11 and later. The versions that are locked now stay where the ranges
# still allow them; LOCK=--upgrade takes the newest, LOCK='--upgrade-package NAME' those of one package.
set -euo pipefail
cd "$(dirname "$0")/.."
all=requirements/all.txt
trap 'rm -f "$all"' EXIT

# The table of the demo is installed alone: what it depends on is not wanted.
compile() {
  UV_CUSTOM_COMPILE_COMMAND="make lock" uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
    --no-annotate --no-emit-index-url "$@" >/dev/null
}

base=(pyproject.toml --extra server --extra arrow --extra sql --extra oidc --extra postgres --extra console --group build)
engines=(--extra spark --extra snowflake --extra bigquery --extra databricks --extra trino)
groups=(test browser lint protos hooks)

cat requirements/{base,test,browser,lint,protos,hooks,engines}.txt 2>/dev/null | sed '/^ /d; s/ *\\$//' | sort -u > "$all" || true
# shellcheck disable=SC2086  # LOCK holds several words
compile "${base[@]}" "${engines[@]}" "${groups[@]/#/--group=}" ${LOCK:-} --output-file "$all"
compile "${base[@]}" --constraint "$all" --output-file requirements/base.txt
for group in "${groups[@]}"; do
  compile --group "$group" --constraint "$all" --output-file "requirements/$group.txt"
done
compile pyproject.toml "${engines[@]}" --constraint "$all" --output-file requirements/engines.txt
compile --group demo --no-deps --output-file requirements/demo.txt
