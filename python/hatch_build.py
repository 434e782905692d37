"""Adds the program and its libraries to the wheel.

FOREBAY_TREE is an installation without Python: `bin`, `lib/forebay`, `share`. Without it the wheel holds the
Python package only, for `make install`, which installs the rest itself. FOREBAY_WHEEL_TAG is the platform.
"""

import os
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    """Puts the tree below the environment's own `bin`, `lib` and `share`, where the program finds it."""

    def initialize(self, version, build_data):
        """Hatchling calls this before it writes the wheel."""
        tree = os.environ.get("FOREBAY_TREE")
        if not tree or version == "editable":
            return
        tree = Path(tree)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{os.environ['FOREBAY_WHEEL_TAG']}"
        build_data["shared_scripts"][str(tree / "bin" / "forebay")] = "forebay"
        build_data["shared_data"][str(tree / "lib" / "forebay")] = "lib/forebay"
        build_data["shared_data"][str(tree / "share")] = "share"
