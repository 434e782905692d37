"""Settings of Sphinx for the documentation: make docs."""

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
exclude_patterns = ["**/README.md"]
source_suffix = {".md": "markdown"}

graphviz_output_format = "svg"

html_theme = "furo"
html_title = f"Forebay {version}"
html_static_path = ["_static"]
html_css_files = ["forebay.css"]
copybutton_prompt_text = r"\$ "
copybutton_prompt_is_regexp = True
