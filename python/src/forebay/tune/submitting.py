"""The tuner itself as one job of a batch scheduler, through PSI/J: all its runs share that allocation.

The scheduler's lines of the user's script are copied for the tuner as they are. PSI/J has no field for most
of them, and does not quote the values of its custom attributes for a directive
(docs/development/decisions/0012-psij.md). PSI/J writes the rest of the script, submits it and tells the
job's number.
"""

from __future__ import annotations

import importlib.util
import io
import math
import re
import shlex
import shutil
import signal
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

import msgspec

from forebay.deferred_signals import DeferredSignals
from forebay.tune.errors import TuneError

if TYPE_CHECKING:
    import psij

#: Executor of PSI/J -> the scheduler's command that it submits with.
COMMANDS: dict[str, str | None] = {
    "slurm": "sbatch",
    "lsf": "bsub",
    "pbs": "qsub",
    "flux": "flux",
    "local": None,
}
#: In addition to the runs, for the tuner's own start and its report.
MARGIN_S = 300
#: A job may begin elsewhere, PBS's in the user's home, and PSI/J loses a directory with blanks.
_IN_DIRECTORY = ["/bin/sh", "-c", 'cd "$0" && exec "$@"']
#: The queue is not asked what became of a job: nobody here waits for it.
_NEVER_S = 10**6
_BURST_BUFFER_LINE = re.compile(r"#(DW|BB)\b")


class Script(Protocol):
    """What is asked of a job script: see tune/job_script/script.py."""

    path: Path
    text: str
    scheduler: str | None
    name: str
    nodes: int
    ranks: int
    time_limit_s: int | None


class Submitted(msgspec.Struct, frozen=True, kw_only=True):
    """The job that the tuner is, or would be."""

    id: str | None  # the scheduler's; None: only rendered
    script: str | None  # None: this executor has none
    notes: tuple[str, ...]  # for the user: what is asked for, what is left out
    output: Path  # what the tuner prints there; next to it, .err
    exit_code: int | None = None  # of an executor that was waited for: local


class _Options(msgspec.Struct, frozen=True):
    """Options of a scheduler's lines that the tuner's job does not take over."""

    sentinel: str
    name: str  # of the option for the job's name, for a custom attribute of PSI/J
    replaced: tuple[str, ...]  # with a value; the job has its own
    left_out: tuple[str, ...]  # with a value
    flags: tuple[str, ...]  # left out, without one
    is_attached: bool  # -t10 is -t 10


_OPTIONS = {
    "slurm": _Options(
        "#SBATCH",
        "job-name",
        ("-t", "--time", "-J", "--job-name", "-o", "--output", "-e", "--error", "-D", "--chdir"),
        ("-a", "--array", "--bb", "--bbf", "-i", "--input", "--export", "--export-file"),
        ("-W", "--wait", "--parsable"),
        True,
    ),
    "lsf": _Options(
        "#BSUB",
        "J",
        ("-W", "-J", "-o", "-oo", "-e", "-eo", "-cwd"),
        ("-i", "-is", "-env", "-stage"),
        ("-K", "-I", "-Ip", "-Is"),
        False,
    ),
    "pbs": _Options(
        "#PBS", "N", ("-N", "-o", "-e", "-j", "-k", "-d", "-w"), ("-J", "-t"), ("-I", "-X"), True
    ),
}


def wall_time_s(script: Script, runs: int, budget_s: float | None) -> int:
    """How long the job may take: the budget's time, else the script's limit for each of the runs.

    Raises TuneError if neither is known.
    """
    if budget_s is not None:
        return math.ceil(budget_s) + MARGIN_S
    if script.time_limit_s is None:
        raise TuneError(
            f"{script.path}: neither a budget in minutes nor a limit of time in the script tells how long "
            "the tuner's job may take",
            "give --budget 2h, or the script a limit of time",
        )
    return runs * script.time_limit_s + MARGIN_S


def submit(
    executor: str,
    script: Script,
    command: Sequence[str],
    directory: Path,
    *,
    study: Path,
    wall_s: int,
    render_only: bool = False,
) -> Submitted:
    """Submits the command, run once in the directory, with what the script asks of the scheduler.

    `study` is the study's directory, on a file system that the nodes see: PSI/J's files go into
    `study/submitted`. `local` waits for the command's end; all others return when the job is queued. With
    `render_only` nothing is made and nothing submitted. Raises TuneError where the scheduler is missing or
    refuses the job.
    """
    files = study.absolute() / "submitted"
    _check(executor, files, render_only)
    header, notes = _header(executor, script)
    notes = [f"the job may take {wall_s / 60:.0f} min", *notes]
    spec = _spec(executor, script, command, directory.absolute(), files, wall_s)
    fields: dict[str, Any] = {"notes": tuple(notes), "output": files / "tune.out"}
    if executor in _OPTIONS and render_only:
        return Submitted(id=None, script=_rendered(executor, spec, header, files), **fields)
    if render_only:
        words = shlex.join([spec.executable, *spec.arguments])
        fields["notes"] = (*notes, f"there is no script for {executor}; it would run: {words}")
        return Submitted(id=None, script=None, **fields)
    return _submitted(executor, spec, header, files, fields)


def _check(executor: str, files: Path, render_only: bool) -> None:
    if executor not in COMMANDS:
        raise TuneError(f"--submit {executor}: there is no such scheduler", f"one of {', '.join(COMMANDS)}")
    if shlex.quote(str(files)) != str(files):
        raise TuneError(
            f"{files}: a job of PSI/J cannot write below a path with blanks or other special characters",
            "--study DIR puts the study elsewhere",
        )
    needed = COMMANDS[executor]
    if render_only or needed is None:
        return
    if shutil.which(needed) is None:
        raise TuneError(
            f"--submit {executor}: the command {needed} is not in PATH",
            "submit where the scheduler's commands are; or start forebay tune, without --submit, in a job",
        )
    if executor == "flux" and importlib.util.find_spec("flux") is None:
        raise TuneError(
            "--submit flux: Flux's bindings for Python, through which PSI/J submits, are not to be found",
            "pip install flux-python of the version of your Flux; or flux batch with forebay tune in it",
        )


def _header(executor: str, script: Script) -> tuple[list[str], list[str]]:
    """The script's lines for the tuner's job, and what the user should know."""
    notes = []
    block = list(_block(script.text))
    if any(_BURST_BUFFER_LINE.match(line) for line in block):
        notes.append("#DW and #BB lines are not repeated: the tuner makes its allocations inside of the job")
    if executor == "local":
        return [], notes
    if script.scheduler == executor and executor in _OPTIONS:
        lines, left = _taken_over(_OPTIONS[executor], block, script.path)
        return lines, notes + [f"left out of the tuner's job: {option}" for option in left]
    taken = f"{script.nodes} node(s) and {script.ranks} rank(s)"
    if executor == "flux":
        notes.append(f"PSI/J tells Flux of {taken} and the time; queue, bank and other options are left out")
    else:
        notes.append(
            f"{script.path.name} has no lines for {executor}: {taken} are asked for, but no account or queue"
        )
    return [], notes


def _block(text: str) -> Iterator[str]:
    """Lines up to the first that is neither a comment nor blank, as `forebay run` reads a header.

    A line that continues one of the burst buffer's belongs to it.
    """
    continued = False
    for line in text.splitlines():
        if line.strip() and not line.startswith("#") and not continued:
            return
        continued = line.rstrip().endswith("\\") and (continued or bool(_BURST_BUFFER_LINE.match(line)))
        yield line


def _taken_over(options: _Options, block: Iterable[str], path: Path) -> tuple[list[str], list[str]]:
    lines, left = [], []
    for line in block:
        if not re.match(rf"{options.sentinel}\s", line):
            continue
        try:
            words = shlex.split(line.removeprefix(options.sentinel), comments=True)
        except ValueError as error:
            raise TuneError(f"{path}: {line}: {error}", "close the quote") from error
        kept, gone = _sorted_out(options, words)
        left += gone
        if kept == words:
            lines.append(line)
        elif kept:
            lines.append(f"{options.sentinel} {shlex.join(kept)}")
    return lines, left


def _sorted_out(options: _Options, words: list[str]) -> tuple[list[str], list[str]]:
    """Words that are taken over, and options that are left out."""
    kept: list[str] = []
    left: list[str] = []
    rest = iter(words)
    for word in rest:
        name, is_whole = _name(options, word)
        taken = [word] if is_whole else [word, next(rest, "")]
        if name == "-l" and options.sentinel == "#PBS":
            kept += _without_wall_time(taken)
        elif name is None:
            kept.append(word)
        elif name not in options.replaced:
            left.append(" ".join(taken))
    return kept, left


def _name(options: _Options, word: str) -> tuple[str | None, bool]:
    """The option that this word is, None for all that are taken over; and whether its value is in it."""
    valued = {*options.replaced, *options.left_out, *(["-l"] if options.sentinel == "#PBS" else [])}
    base, equals, _ = word.partition("=")
    if word in options.flags:
        return word, True
    if base in valued:
        return base, bool(equals)
    if options.is_attached and not word.startswith("--") and word[:2] in valued:
        return word[:2], True
    return None, True


def _without_wall_time(words: list[str]) -> list[str]:
    """`-l select=2,walltime=1:00:00` or `-lwalltime=1:00:00`, without the limit of time."""
    asked = "".join(words).removeprefix("-l").split(",")
    kept = [resource for resource in asked if not resource.startswith("walltime=")]
    return ["-l", ",".join(kept)] if kept else []


def _spec(
    executor: str, script: Script, command: Sequence[str], directory: Path, files: Path, wall_s: int
) -> psij.JobSpec:
    import psij  # late: it starts handlers and threads, and is slow to load

    words = [*_IN_DIRECTORY, str(directory), *command]
    if executor == "flux":  # one broker on each node; the command runs once, in an instance of its own
        words = ["flux", "start", *words]
    attributes = psij.JobAttributes(duration=timedelta(seconds=wall_s))
    if executor in _OPTIONS:
        name = re.sub(r"[^\w.-]", "_", f"tune-{script.name}")[:15]  # PBS allows 15 characters
        attributes.set_custom_attribute(f"{executor}.{_OPTIONS[executor].name}", name)
    return psij.JobSpec(
        executable=words[0],
        arguments=words[1:],
        stdout_path=files / "tune.out",
        stderr_path=files / "tune.err",
        resources=_resources(executor, script),
        attributes=attributes,
    )


def _resources(executor: str, script: Script) -> psij.ResourceSpecV1 | None:
    """None where the script's own lines tell."""
    import psij

    ranks_per_node = math.ceil(script.ranks / script.nodes)
    if executor == "flux":
        return psij.ResourceSpecV1(
            node_count=script.nodes, process_count=script.nodes, cpu_cores_per_process=ranks_per_node
        )
    if executor == "local" or script.scheduler == executor:
        return None
    return psij.ResourceSpecV1(node_count=script.nodes, processes_per_node=ranks_per_node)


class _WithHeader:
    """A generator of PSI/J's scripts that puts lines behind the first: PSI/J's own follow, and count.

    To a job without resources PSI/J gives one task on one node before it comes here, against those lines.
    """

    def __init__(self, generator: Any, header: list[str], resources: psij.ResourceSpecV1 | None) -> None:
        self.generator = generator
        self.header = header
        self.resources = resources

    def generate_submit_script(self, job: psij.Job, context: dict[str, object], out: IO[str]) -> None:
        whole = io.StringIO()
        job.spec.resources = self.resources
        self.generator.generate_submit_script(job, context, whole)
        first, _, rest = whole.getvalue().partition("\n")
        out.write("\n".join([first, *self.header, rest]))


def _executor(name: str, spec: psij.JobSpec, header: list[str], files: Path) -> Any:
    import psij
    from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutorConfig

    config = BatchSchedulerExecutorConfig(work_directory=files, initial_queue_polling_delay=_NEVER_S)
    executor = psij.JobExecutor.get_instance(name, config=config)
    if name in _OPTIONS:
        executor.generator = _WithHeader(executor.generator, header, spec.resources)
    return executor


def _rendered(name: str, spec: psij.JobSpec, header: list[str], files: Path) -> str:
    """The script as it would be submitted; PSI/J's launcher, which it makes for that, goes again."""
    import psij

    with tempfile.TemporaryDirectory(prefix="forebay-") as scratch:
        executor = _executor(name, spec, header, Path(scratch))
        job = psij.Job(spec)
        text = io.StringIO()
        executor.generate_submit_script(job, executor._create_script_context(job), text)
        return text.getvalue().replace(scratch, str(files))


def _submitted(
    name: str, spec: psij.JobSpec, header: list[str], files: Path, fields: dict[str, Any]
) -> Submitted:
    import psij

    new = next((path for path in (files.parent, files) if not path.exists()), None)
    files.mkdir(parents=True, exist_ok=True)
    job = psij.Job(spec)
    written = files / name / f"{job.id}.job"
    # At Ctrl-C the local command, of the same group of processes, gets the signal, too: it is waited for.
    deferred = DeferredSignals(*([signal.SIGINT] if name == "local" else []))
    try:
        with deferred:
            _executor(name, spec, header, files).submit(job)
            status = job.wait() if name == "local" else None
        if name == "flux":  # its number comes later
            job.wait(target_states=[psij.JobState.QUEUED])
    except (psij.SubmitException, psij.InvalidJobException) as error:
        written.unlink(missing_ok=True)
        if new is not None:
            shutil.rmtree(new)
        raise TuneError(
            f"--submit {name}: the job was refused: {error.message.strip()}", _hint(name)
        ) from error
    if deferred.count:
        raise KeyboardInterrupt
    return Submitted(
        id=str(job.native_id),
        script=written.read_text() if written.exists() else None,
        exit_code=status.exit_code if status else None,
        **fields,
    )


def _hint(name: str) -> str | None:
    return "--dry-run shows the script that was submitted" if name in _OPTIONS else None
