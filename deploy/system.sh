#!/usr/bin/env bash
# Makes sure of the programs that Python's packages do not bring: system.sh [chromium] [poppler] [tesseract]
# Takes what is there; else installs it where that is possible; else says what to type.
set -uo pipefail
bin=.venv/bin

distribution() { # distribution PACKAGE…: by apt-get, as root or with a password-less sudo
  command -v apt-get >/dev/null || return 1
  local as_root=()
  if [ "$(id -u)" != 0 ]; then sudo -n true 2>/dev/null || return 1; as_root=(sudo -n); fi
  "${as_root[@]}" apt-get install -y -qq "$@" >/dev/null 2>&1 ||
    { "${as_root[@]}" apt-get update -qq >/dev/null 2>&1 && "${as_root[@]}" apt-get install -y -qq "$@" >/dev/null 2>&1; }
}

found_chromium() { $bin/python -c 'from docgen_core.render.chromium import find_chromium; find_chromium()' 2>/dev/null; }

chromium() {
  found_chromium && return
  echo "No headless Chromium here; fetching one …"
  timeout 300 $bin/playwright install --only-shell chromium >/dev/null 2>&1 && found_chromium && return
  distribution chromium-headless-shell && found_chromium && return
  distribution chromium && found_chromium && return
  echo "docgen needs a headless Chromium. As root: apt-get install chromium-headless-shell; elsewhere: $bin/playwright install chromium" >&2
  exit 2
}

poppler() {
  command -v pdftotext >/dev/null && return
  echo "No pdftotext here (the demo's extractor, the tests' outside witness); fetching it …"
  distribution poppler-utils && command -v pdftotext >/dev/null && return
  echo "The demo and the tests need poppler's pdftotext. As root: apt-get install poppler-utils; on a Mac: brew install poppler" >&2
  exit 2
}

tesseract() {
  type -P tesseract >/dev/null && return # a program: this function has its name
  echo "No tesseract here (the tests' outside witness of captured pages); fetching it …"
  distribution tesseract-ocr && type -P tesseract >/dev/null && return
  echo "The tests need tesseract. As root: apt-get install tesseract-ocr; on a Mac: brew install tesseract" >&2
  exit 2
}

for need in "$@"; do "$need"; done
