"""Forebay's Python side: profiles of jobs, advice, reports. `import forebay` loads nothing heavy."""

__version__ = "0.1.0"
