"""Jobs out of the ordinary: nothing known, nothing done, very much done."""

import msgspec
import pytest
from support.report_data import advised, file_of, html, log, posix, profile_of, rich_profile

from forebay.profiles.model import File, Job, Profile, Program
from forebay.report.assembly import PROGRAMS_MAX
from forebay.report.sections.files import FILES_MAX
from forebay import quantities


@pytest.mark.parametrize("wall_s", [0.0, None])
def test_run_of_zero_length_has_a_page(wall_s):
    text = html(profile_of(file_of("/scratch/a", written=1, calls=1, seconds=5.0), wall_s=wall_s))
    assert "The source tells no run time" in text
    assert "I/O took 1.25 s on the slowest rank. The source has no run time." in text


def test_log_without_io_says_so_and_nothing_else():
    nothing = msgspec.structs.replace(profile_of(), source="darshan")
    told = advised(nothing)
    assert (told.verdict, told.paragraph) == ("No I/O was recorded.", "No I/O was recorded.")


def test_little_io_that_is_not_all_is_told_as_recorded():
    profile = profile_of(file_of("/a", written=1, calls=1, seconds=0.01))
    profile.unread = ["a part is damaged"]
    told = advised(profile)
    words = "The recorded I/O took < 1 % of the run time. How much more is not known: a part is damaged."
    assert told.verdict == words and told.paragraph.endswith(words)


def test_job_without_programs_has_a_page():
    nothing = Profile(source="forebay", path="/nowhere", job=Job(error="no such file", hint="make it"), programs=[])
    text = html(nothing)
    assert "not started: no such file" in text
    assert "no program of it was recorded" in text


def test_program_without_proper_end_is_named():
    profile = profile_of()
    profile.programs[0].finished = False
    assert "did not end properly" in html(profile)


def test_job_that_failed_says_so_first():
    assert advised(profile_of(file_of("/a", written=1, calls=1, seconds=9.0), job_status=3)).verdict.startswith(
        "The job failed with status 3."
    )


def test_job_with_several_errors_shows_each():
    error = "a.sh: line 2: no\n  hint: try b\na.sh: line 3: never\n  hint: try c"
    job = Job(id="1", kind="run", exit_code=125, error=error)
    told = advised(Profile(source="forebay", path="/nowhere", job=job, programs=[]))
    assert told.verdict.startswith("The job: not started: a.sh: line 2: no; a.sh: line 3: never. ")
    assert "(1) a.sh: line 2: no (hint: try b). (2)" in told.paragraph


def test_job_without_mpiio_has_a_page():
    text = html(log("posix_fpp"))
    assert "MPI-IO: " not in text
    assert "The source does not tell which hints were in force." in text


def test_little_io_is_no_bottleneck():
    quick = profile_of(file_of("/a", written=1, calls=1, seconds=0.01))
    assert advised(quick).verdict == "I/O took < 1 % of the run time: storage did not hold this job back."


@pytest.mark.soak
def test_ten_thousand_files_are_a_page_of_moderate_size():
    files = [file_of(f"/scratch/{'d' * 60}/{at:05}", written=at, calls=1, seconds=1.0 + at) for at in range(10_000)]
    text = html(profile_of(*files))
    assert len(text) < 2_000_000
    assert text.count('<td class="path">') == FILES_MAX
    assert f"and {quantities.count(10_000 - FILES_MAX)} more files" in text
    assert "/09999<" in text
    assert "/00001<" not in text


@pytest.mark.soak
def test_thousand_ranks_are_a_page_of_moderate_size():
    assert len(html(rich_profile())) < 2_000_000


def test_each_program_has_its_sections():
    programs = [
        Program(
            files=[File(path=f"/scratch/f{at}", ranks=1, layers={"POSIX": posix(5, 1, float(at))})],
            name=f"/bin/p{at}",
            ranks=1,
            wall_s=20.0,
        )
        for at in range(PROGRAMS_MAX + 2)
    ]
    profile = msgspec.structs.replace(profile_of(), programs=programs)
    text = html(profile)
    assert f"The job ran {PROGRAMS_MAX + 2} programs" in text
    assert text.count('<h2 id="program-') == PROGRAMS_MAX
    # Those with the least I/O are in the table of programs only.
    assert "f2<" in text
    assert "/scratch/f1<" not in text
    assert "/bin/p1<" in text


def test_like_processes_have_one_section_and_a_row_each():
    workers = [
        Program(
            files=[File(path=f"/scratch/f{at}", ranks=1, layers={"POSIX": posix(5, 1, float(at))})],
            name="/bin/worker",
            arguments=["--pipe", f"handle={at}"],
            ranks=1,
            wall_s=20.0,
            finished=False,
        )
        for at in range(3)
    ]
    profile = msgspec.structs.replace(profile_of(job_status=0), programs=workers)
    text = html(profile)
    assert text.count('<h2 id="program-') == 1 and "/scratch/f2<" in text and "/scratch/f1<" not in text
    assert "The job ran 3 programs." in text and "of like processes one" in text
    assert text.count("/bin/worker<") == 3
