#!/usr/bin/env bash
# Draws the pictures of the documentation with the program itself, into this folder. Run it from a clone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
musls=${MUSLS:-./musls}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$musls" fly circle --out "$work/circle"
"$musls" view "$work/circle" --gif --stage circle --speed 4 --fps 10 --out docs/pictures/circle.gif --overwrite
"$musls" view "$work/circle" --png 30 --out docs/pictures/circle.png --overwrite

# The system and the scenario of tutorial 1, as they stand there.
for file in plank carry; do
    sed -n "/title=\"$file.yaml\"/,/^\`\`\`\$/p" docs/tutorials/own_system.md | sed '1d;$d' >"$work/$file.yaml"
done
"$musls" fly "$work/carry.yaml" --out "$work/carry"
"$musls" view "$work/carry" --png 2 --zoom 1.5 --out docs/pictures/plank.png --overwrite

"$musls" check hexa_survives --out "$work/check"
cp "$work/check/losses.png" docs/pictures/losses.png
