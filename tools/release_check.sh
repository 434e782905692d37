#!/bin/bash
# Says whether this commit can be released: one version everywhere, a dated section of the changelog, nothing uncommitted.
# Usage: tools/release_check.sh (in the root of the project)
set -euo pipefail
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
code=0
fault() {
    echo "error: $1" >&2
    code=1
}
has_version() { # has_version FILE PATTERN: a line of the file is as the pattern
    grep -qxE "$2" "$1" || fault "$1 does not have the version $version of Cargo.toml"
}
quoted=${version//./\\.}
has_version python/pyproject.toml "version = \"$quoted\""
has_version python/src/forebay/__init__.py "__version__ = \"$quoted\""
has_version CITATION.cff "version: $quoted"
grep -qxE "## $quoted \([0-9]{4}-[0-9]{2}-[0-9]{2}\)" CHANGELOG.md ||
    fault "CHANGELOG.md has no section '## $version (YYYY-MM-DD)'"
[ -z "$(git status --porcelain)" ] || fault "there are uncommitted changes"
if git rev-parse -q --verify "refs/tags/v$version" >/dev/null; then
    [ "$(git rev-parse "v$version^{commit}")" = "$(git rev-parse HEAD)" ] || fault "the tag v$version is another commit"
fi
[ "$code" -ne 0 ] || echo "forebay $version can be released: git tag -a v$version, make dist wheel deb rpm site"
exit "$code"
