"""What one seed stands for: the job, its user and store, and when its `forebay run` is killed."""

import dataclasses
import random

# Calls of the main thread at which a kill leaves something different behind.
CALLS = (
    "mkdir",
    "openat",
    "write",
    "rename",
    "unlink",
    "unlinkat",
    "rmdir",
    "symlink",
    "clone",
    "clone3",
    "vfork",
    "execve",
    "umount2",
    "setns",
    "kill",
    "pidfd_send_signal",
    "ftruncate",
    "chmod",
    "close",
    "wait4",
    "waitid",
)


@dataclasses.dataclass(frozen=True)
class Case:
    """Drawn from a seed; the moment of a kill by time is the one thing a seed cannot repeat exactly."""

    seed: int
    ordinary_user: bool
    in_memory: bool
    emulated: bool
    # Is what is staged out made by the script, or there from stage-in on?
    makes_its_directory: bool
    leaves_a_process: bool
    files: int
    # The kill: after a share of an undisturbed run, or at one of the calls of such a run: which name
    # of those that occur, and which call with it.
    share: float | None
    call: float
    call_share: float
    # The first `forebay clean` is killed too, after this time.
    clean_killed_after_s: float | None
    discard: bool

    @classmethod
    def of(cls, seed: int) -> "Case":
        draw = random.Random(seed)
        emulated = draw.random() < 0.25
        by_call = draw.random() < 0.5
        return cls(
            seed=seed,
            ordinary_user=draw.random() < 0.5,
            in_memory=seed % 2 == 0,
            emulated=emulated,
            makes_its_directory=draw.random() < 0.5,
            leaves_a_process=draw.random() < 0.3,
            files=draw.choice([20, 60] if emulated else [50, 300, 1000]),
            share=None if by_call else draw.random() ** 2,  # most of the time goes into stage-out
            call=draw.random(),
            call_share=draw.random(),
            clean_killed_after_s=draw.random() * 0.15 if draw.random() < 0.25 else None,
            discard=draw.random() < 0.15,
        )

    def kind(self) -> tuple:
        """Cases of one kind take about as long and make about the same calls when nobody disturbs them."""
        return (self.in_memory, self.emulated, self.files)

    def script(self) -> list[str]:
        """Stages in `input`, writes as many files again, and marks in the submit directory how far it is."""
        out = "out" if self.makes_its_directory else "work"
        lines = [
            "#!/bin/bash",
            "#DW jobdw type=scratch access_mode=striped capacity=256MiB",
            "#DW stage_in type=directory source=%d/input destination=$DW_JOB_STRIPED/work",
            f"#DW stage_out type=directory source=$DW_JOB_STRIPED/{out} destination=%d/results",
            "set -e",
            f"mkdir -p ${{DW_JOB_STRIPED}}{out}/new",
            "touch began",
        ]
        if self.leaves_a_process:
            lines.append("setsid sleep 300 > /dev/null 2>&1 &")
        lines += [
            f"for ((i = 0; i < {self.files}; i++)); do printf 'result %d\\n' $i > ${{DW_JOB_STRIPED}}{out}/new/$i; done",
            "touch written",
            "sleep 0.1",
            "",
        ]
        return lines
