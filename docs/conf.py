"""Settings of Sphinx for the documentation: make docs."""

import os
import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]

project = "Forebay"
author = "the Forebay developers"
project_copyright = author
version = release = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.graphviz", "sphinx_copybutton"]
myst_heading_anchors = 4
myst_enable_extensions = ["deflist", "colon_fence", "attrs_inline"]
exclude_patterns = ["**/README.md", "_templates"]
source_suffix = {".md": "markdown"}

graphviz_output_format = "svg"

html_theme = "furo"
html_title = f"Forebay {version}"
html_static_path = ["_static"]
html_css_files = ["forebay.css"]
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True

# Each page has a list of the versions when tools/site.sh builds all of them.
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "versions.html",
        "sidebar/scroll-end.html",
    ]
}
html_context = {
    "current_version": os.environ.get("SITE_VERSION"),
    "versions": os.environ.get("SITE_VERSIONS", "").split(),
}
