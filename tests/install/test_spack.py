"""The Spack package asks for what the Python package asks for."""

import pathlib
import re
import tomllib

PROJECT = pathlib.Path(__file__).resolve().parents[2]
RECIPE = PROJECT / "packaging" / "spack" / "spack_repo" / "forebay" / "packages" / "forebay" / "package.py"
#: Spack lacks it; without it there are no reports as PDF.
NOT_IN_SPACK = {"weasyprint"}


def test_it_needs_the_same_python_packages_from_the_same_versions_on():
    project = tomllib.loads((PROJECT / "python" / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = dict(
        re.match(r"([a-z0-9-]+)>=([\d.]+)", requirement).groups()
        for requirement in [*project["dependencies"], *extras["report"], *extras["plan"], *extras["tune"]]
        if not requirement.startswith("forebay[")
    )
    asked = dict(re.findall(r'depends_on\("py-([a-z0-9-]+)@([\d.]+):?"', RECIPE.read_text()))
    assert asked == {name: version for name, version in needed.items() if name not in NOT_IN_SPACK}


def test_it_needs_the_same_rust_and_python():
    recipe = RECIPE.read_text()
    rust = tomllib.loads((PROJECT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    python = tomllib.loads((PROJECT / "python" / "pyproject.toml").read_text())["project"]["requires-python"]
    assert f'"rust@{rust}:"' in recipe and f'"python@{python.removeprefix(">=")}:"' in recipe
