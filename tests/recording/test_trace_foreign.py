"""Traces that another user may have made: they end in an error that names them, and touch no other file."""

import os
import random
import struct
import subprocess

import pytest

from support.mpi import PROGRAMS
from support.mpi_trace import replay_program, replayed

MAGIC = b"FBTRACE\n"
MUTANTS = 40


@pytest.fixture
def trace(mpi, tmp_path):
    directory = tmp_path / "trace"
    run = mpi.run(
        1, mpi.compiled("traced", PROGRAMS / "traced.c"), "types", tmp_path / "f", FOREBAY_MPI_TRACE=directory
    )
    assert run.returncode == 0, run.stderr
    return directory


def rank(trace):
    return trace / "rank-000000.trace"


def checksum(content: bytes) -> int:
    hash = 0xCBF29CE484222325
    for byte in content:
        hash = (hash ^ byte) * 0x100000001B3 % 2**64
    return (hash ^ hash >> 32) % 2**32


def blocks(path) -> list[bytes]:
    whole = path.read_bytes()
    found, at = [], len(MAGIC)
    while at < len(whole):
        (length,) = struct.unpack_from("<I", whole, at)
        found.append(whole[at + 8 : at + 8 + length])
        at += 8 + length
    return found


def write(path, contents: list[bytes]) -> None:
    path.write_bytes(MAGIC + b"".join(struct.pack("<II", len(c), checksum(c)) + c for c in contents))


def print_trace(mpi, trace) -> subprocess.CompletedProcess:
    command = [replay_program(mpi), "--print", trace]
    return subprocess.run(command, capture_output=True, timeout=300)


def test_trace_that_is_no_regular_file_is_refused_without_waiting(mpi, trace):
    for make in (os.mkfifo, os.mkdir):
        path = rank(trace)
        path.unlink()
        make(path)
        said = print_trace(mpi, trace)
        assert said.returncode == 1 and f"{path}: this is no regular file".encode() in said.stderr
        run = mpi.run(1, replay_program(mpi), "--directory", trace.parent / "new", trace)
        assert run.returncode == 2 and "this is no regular file" in run.stderr
        if make is os.mkfifo:
            path.unlink()
            path.touch()


def test_path_that_leads_out_of_the_directory_is_refused(mpi, trace, tmp_path):
    path, old = rank(trace), f"{tmp_path}/f".encode()
    new = b"/../../x".ljust(len(old), b"x")
    write(path, [block.replace(old, new) for block in blocks(path)])
    for place in (["--directory", tmp_path / "new"], ["--map", f"/={tmp_path}/new/"]):
        run = mpi.run(1, replay_program(mpi), *place, trace)
        assert run.returncode == 2 and 'or ".." leads out of it' in run.stderr, run.stderr


def test_control_characters_of_a_trace_do_not_reach_the_terminal(mpi, trace, tmp_path):
    path, old = rank(trace), f"{tmp_path}/f".encode()
    write(path, [block.replace(old, b"\x1b]0;x\x07".ljust(len(old), b"x")) for block in blocks(path)])
    said = print_trace(mpi, trace)
    assert said.returncode == 0 and b"\\x1b]0;x\\x07" in said.stdout
    assert b"\x1b" not in said.stdout and b"\x07" not in said.stdout


def test_forged_trace_does_not_crash_a_reader(mpi, trace, tmp_path):
    path, chance = rank(trace), random.Random(7)
    whole = blocks(path)
    _, summary, _ = replayed(mpi, 1, trace, "--directory", tmp_path / "true")
    assert summary["differences"] == 0
    for number in range(MUTANTS):
        forged = [bytearray(block) for block in whole]
        for _ in range(chance.randint(1, 4)):
            block = chance.choice(forged)
            block[chance.randrange(len(block))] = chance.choice((0, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        write(path, [bytes(block) for block in forged])
        said = print_trace(mpi, trace)
        assert said.returncode in (0, 1), (number, said.returncode)
        assert said.returncode == 0 or str(trace).encode() in said.stderr
