#!/bin/bash
# Builds the documentation of main and of each release below DIRECTORY, one folder each, from what is committed.
# The first page leads to the newest release. A version that is built already is kept, main is built again.
# Usage: tools/site.sh SPHINX-BUILD DIRECTORY
set -euo pipefail
sphinx_build=$1 site=$2
mapfile -t versions < <(echo main && git tag --list 'v*' --sort=-version:refname)
newest=${versions[1]:-main}
export SITE_VERSIONS="${versions[*]}" SITE_VERSION
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$site"
for SITE_VERSION in "${versions[@]}"; do
    if [ "$SITE_VERSION" != main ] && [ "$(cat "$site/$SITE_VERSION/.versions" 2>/dev/null)" = "$SITE_VERSIONS" ]; then continue; fi
    rm -rf "$work/tree" "$work/html"
    mkdir "$work/tree"
    git archive "$SITE_VERSION" | tar -x -C "$work/tree"
    [ -e "$work/tree/docs/conf.py" ] || continue
    echo "building the pages of $SITE_VERSION"
    "$sphinx_build" --quiet --fail-on-warning -b html "$work/tree/docs" "$work/html"
    echo "$SITE_VERSIONS" >"$work/html/.versions"
    rm -rf "${site:?}/$SITE_VERSION"
    mv "$work/html" "$site/$SITE_VERSION"
done
cat >"$site/index.html" <<PAGE
<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url=$newest/index.html">
<title>Forebay</title>
<p><a href="$newest/index.html">Documentation of Forebay, $newest</a></p>
PAGE
echo "open $site/index.html"
