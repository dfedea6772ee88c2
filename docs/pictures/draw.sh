#!/usr/bin/env bash
# Draws the pictures of the documentation with the program itself, into this folder. Run it from a clone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
musls=${MUSLS:-./musls}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

python=${PYTHON:-.venv/bin/python}
"$python" docs/pictures/graphs.py
"$python" docs/pictures/draw.py "$work"
"$musls" view "$work/circle" --gif --stage circle --speed 5 --fps 8 --narrow --out docs/pictures/circle.gif --overwrite
"$musls" fly tilted_gate --out "$work/tilted_gate" --no-report
"$musls" view "$work/tilted_gate" --gif --stage min_derivative --speed 0.8 --fps 6 --narrow --camera -60,17,1.2 --out docs/pictures/tilted_gate.gif --overwrite

# The system and the scenario of tutorial 1, as they stand there.
for file in plank carry; do
    sed -n "/title=\"$file.yaml\"/,/^\`\`\`\$/p" docs/tutorials/own_system.md | sed '1d;$d' >"$work/$file.yaml"
done
"$musls" fly "$work/carry.yaml" --out "$work/carry"
"$musls" view "$work/carry" --png 2 --narrow --out docs/pictures/plank.png --overwrite

"$musls" check hexa_survives --out "$work/check"
cp "$work/check/losses.png" docs/pictures/losses.png
"$musls" check delivery --out "$work/power"
cp "$work/power/margins.png" docs/pictures/power.png

# The study of tutorial 4, as it stands there.
for file in hurry study; do
    sed -n "/title=\"$file.yaml\"/,/^\`\`\`\$/p" docs/tutorials/parameter_study.md | sed '1d;$d' >"$work/$file.yaml"
done
"$musls" sweep "$work/study.yaml" --out "$work/study"
cp "$work/study/figures/errors.png" docs/pictures/sweep.png
