#!/bin/sh
# The scripts' client as a command: npm run certify-client -- --command "sh load/k6/collect.sh". K6_PATH: which k6.
printed=$(mktemp) || exit 1
"${K6_PATH:-k6}" run --quiet --no-color --log-format raw --console-output "$printed" "${0%/*}/collect.ts" >&2
status=$?
# k6 notes an end before the test's time, too.
grep '^{' "$printed"
rm -f "$printed"
exit $status
