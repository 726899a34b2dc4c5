"""A pytest plugin (`-p tests.interpreted`) that runs the hot path as interpreted Python instead of compiled code."""

from __future__ import annotations

import sys

from tools import compile_hot

names = {"atoll." + name.removesuffix(".py").replace("/", ".") for name in compile_hot.HOT}
for finder in sys.meta_path:
    compiled = getattr(finder, "known_wheel_files", {})  # of the editable install
    for name in names & set(compiled):
        del compiled[name]
