"""A machine file from what was measured."""

from __future__ import annotations

import json
import os
import time

from forebay.plan.measure import ROUNDS, Measured, Request, Sample

_RATE, _TIME = 1e6, 1e6


def text(request: Request, found: Measured, name: str) -> str:
    """The file, with the command, host, day and range in each source."""
    when = time.strftime("%Y-%m-%d")
    host = os.uname().nodename
    how = f"measured on {host}, {when}: {request.command}"
    nodes = max(1, len(request.nodes))
    limit = "a lower bound: more nodes may reach more" if found.kind != "directory" else "all processes"
    uncached = "not from the cache where it can be dropped"
    cores = os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    lines = [
        "# Written by `forebay plan machine measure`. Keys and units: docs/reference/machine-files.md.",
        f"name = {json.dumps(name)}",
        'scale = "full size"',
        "",
        "[compute]",
        f"nodes = {_figure(nodes, how + f'; {nodes} measured')}",
        f"cores_per_node = {_figure(cores, how)}",
        f"memory_per_node = {_figure(f'{memory // 1_000_000} MB', how)}",
    ]
    if nodes > 1 or found.kind != "directory":
        lines.append(f"node_bandwidth = {_rate(found.node_write, how + '; one node')}")
    lines += [
        "",
        "[storage.measured]",
        f"kind = {json.dumps(found.kind)}",
        f"servers = {_figure(found.servers, how + f'; file system {found.file_system}')}",
        f"write_bandwidth = {_rate(found.write, f'{how}; {limit}')}",
        f"read_bandwidth = {_rate(found.read, f'{how}; {limit}; {uncached}')}",
        f"capacity = {_figure(f'{found.capacity_bytes // 1_000_000} MB', how)}",
        f"request_time = {_duration(found.request_s, how + '; one read of 4 KiB')}",
        f"operation_time = {_duration(found.operation_s, how + '; creating or removing a file')}",
    ]
    return "\n".join(lines) + "\n"


def _figure(value: int | str, source: str) -> str:
    return f"{{ value = {json.dumps(value)}, source = {json.dumps(source)} }}"


def _rate(one: Sample, source: str) -> str:
    spread = f"{one.low / _RATE:.0f} to {one.high / _RATE:.0f} MB/s in {ROUNDS} runs"
    return _figure(f"{one.median / _RATE:.1f} MB/s", f"{source}; {spread}")


def _duration(one: Sample, source: str) -> str:
    spread = f"{one.low * _TIME:.1f} to {one.high * _TIME:.1f} us in {ROUNDS} runs"
    return _figure(f"{one.median * _TIME:.3f} us", f"{source}; {spread}")
