"""Profiles with `engine = "command"`: a directory of a file system that all nodes share, and commands that fail."""

import pytest

from support.nodes import nodes
from support.waiting import wait_until

PROFILE = """engine = "command"
mount = "{{{{ options.parent }}}}/{{{{ user }}}}-{{{{ job }}}}"
[promise]
coherence = "{coherence}"
[options]
parent = "{shared}/flash"
[[start]]
on = "first"
command = "{start}"
[[stop]]
on = "first"
command = "{stop}"
[status]
on = "every"
command = "if test -e {shared}/broken; then echo the flash is broken; exit 1; fi"
interval_s = 1
[capacity]
on = "first"
command = "echo 1073741824"
"""
MAKE = "mkdir {{ mount | quote }}"
REMOVE = "rm -rf -- {{ mount | quote }}"
JOB = "#!/bin/bash\n#DW jobdw type=scratch access_mode=striped capacity=64MiB{profile}\n{lines}\n"


@pytest.fixture(scope="module")
def bed(build):
    with nodes(2, build) as bed:
        (bed.shared / "flash").mkdir()
        yield bed


@pytest.fixture
def flash(bed):
    (bed.shared / "broken").unlink(missing_ok=True)
    yield bed.shared / "flash"
    assert not list((bed.shared / "flash").iterdir()), "the stop command removes the directory"


def profile(bed, start=MAKE, stop=REMOVE, coherence="strict"):
    file = bed.shared / "flash.toml"
    file.unlink(missing_ok=True)
    file.write_text(PROFILE.format(start=start, stop=stop, coherence=coherence, shared=bed.shared))
    return file


def run(bed, file, lines, *options, directive="", words=()):
    script = bed.shared / "job.sh"
    script.write_text(JOB.format(lines=lines, profile=directive))
    chosen = ["--engine-profile", file] if file else []
    return bed.run("n1", [*words, "forebay", "run", "--nodes", "n1,n2", *chosen, *options, script], check=False)


def test_other_nodes_see_the_directory_of_the_job(bed, flash):
    done = run(bed, profile(bed), 'cd "$DW_JOB_STRIPED" && echo one > a && ssh n2 cat "$DW_JOB_STRIPED/a" && pwd -P')
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == "one"
    assert done.stdout.splitlines()[1].startswith(f"{flash}/root-")


def test_failed_start_reports_what_the_command_printed_and_is_stopped(bed, flash):
    done = run(bed, profile(bed, start=f"{MAKE}; echo the pool is full; exit 3"), "true")
    assert done.returncode != 0
    assert "node n1: n1.start-1 did not start" in done.stderr and "the pool is full" in done.stderr


def test_failed_stop_is_named_with_its_node(bed, flash):
    fails = f"if test -e {bed.shared}/busy; then echo it is busy; exit 1; fi; {REMOVE}"
    (bed.shared / "busy").touch()
    done = run(bed, profile(bed, stop=fails), "true")
    (bed.shared / "busy").unlink()
    assert "node n1: the command that stops it failed" in done.stderr and "it is busy" in done.stderr
    cleaned = bed.run("n1", ["forebay", "clean"], check=False)
    assert cleaned.returncode == 0, cleaned.stderr


def test_failing_status_command_is_reported_while_the_job_runs(bed, flash):
    done = run(bed, profile(bed), f"touch {bed.shared}/broken; sleep 6")
    assert "the flash is broken" in done.stderr, done.stderr


def test_clean_stops_the_profile_of_a_killed_run(bed, flash):
    script = bed.shared / "job.sh"
    script.write_text(JOB.format(lines=f"touch {bed.shared}/started; exec sleep 100", profile=""))
    file = profile(bed)
    stopped = f"echo $(hostname) >> {bed.shared}/stopped"
    file.write_text(f'{file.read_text()}\n[[stop]]\non = "every"\ncommand = "{stopped}"\n')
    started = bed.popen("n1", ["forebay", "run", "--nodes", "n[1-2]", "--engine-profile", file, script])
    wait_until((bed.shared / "started").exists, what="the job", process=started)
    bed.kill("n1", "forebay run")
    bed.kill("n1", "job.sh")
    bed.kill("n1", "sleep 100")  # they hold the pipes
    started.communicate(timeout=30)
    (directory,) = flash.iterdir()
    job = directory.name.removeprefix("root-")
    cleaned = bed.run("n1", ["forebay", "clean", job], check=False)
    assert cleaned.returncode == 0, cleaned.stderr
    assert f"job {job}: removed" in cleaned.stderr, cleaned
    assert not directory.exists()
    bed.wait_until_clean()  # an ssh server ends after its client
    assert sorted((bed.shared / "stopped").read_text().split()) == ["n1", "n2"]
    for node in ("n1", "n2"):
        assert not list(bed.path_of(node, "/tmp").glob("forebay-node-*")), node
    assert bed.run("n1", ["forebay", "status"]).stdout.count(job) == 0


@pytest.mark.parametrize("quota", [False, True])
def test_job_beyond_the_capacity_is_named_where_the_profile_sets_no_quota(bed, flash, quota):
    file = profile(bed, start=f"{MAKE} # {{{{ capacity_bytes }}}}")
    if quota:
        file.write_text(file.read_text().replace("[promise]", "quota = true\n[promise]", 1))
    done = run(bed, file, 'head -c 70M /dev/zero > "$DW_JOB_STRIPED/a"')
    assert ("where the size is enforced" not in done.stderr) == quota, done.stderr


def test_doctor_checks_the_promise_of_a_profile(bed, flash):
    checked = bed.run("n1", ["forebay", "doctor", "--engine-profile", profile(bed), "--nodes", "n1,n2"])
    assert "flash on 2 nodes started" in checked.stdout
    assert "coherence" in checked.stdout


def test_weaker_promise_is_refused_by_name(bed, flash):
    weak = profile(bed, coherence="close_to_open")
    refused = run(bed, weak, "true", "--coherence", "strict")
    assert "engine flash promises coherence close_to_open, and the job asks for strict" in refused.stderr
    assert run(bed, weak, "true", "--coherence", "close_to_open").returncode == 0


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("engine = 'command'\nmoutn = '/x'", ":2: unknown field `moutn`"),
        (PROFILE.replace("{{{{ user }}}}", "{{{{ usr }}}}"), ":2: mount: there is no variable usr; did you mean user?"),
    ],
)
def test_wrong_profile_names_file_and_line(bed, flash, text, part):
    file = bed.shared / "wrong.toml"
    file.write_text(text.format(start=MAKE, stop=REMOVE, coherence="strict", shared=bed.shared))
    refused = run(bed, file, "true")
    assert refused.returncode != 0 and f"{file}{part}" in refused.stderr


def test_profile_that_others_can_write_is_refused(bed, flash):
    file = profile(bed)
    file.chmod(0o666)
    assert "can be written by other users" in run(bed, file, "true").stderr


LAYOUT = ("placement=local", "stripe_bytes=4194304")


def test_engine_that_cannot_place_files_is_named(bed, flash):
    done = run(bed, profile(bed), "true", directive=" placement=local")
    assert done.returncode == 125 and "the engine flash does not choose the node that stores a file" in done.stderr
    assert "hint: remove placement=local, or use the engine ceph" in done.stderr


def test_what_needs_several_nodes_has_no_effect_on_one(bed, flash):
    script = bed.shared / "job.sh"
    script.write_text(
        JOB.format(lines="true", profile=" profile=beeondd redundancy=2 placement=local stripe_bytes=4MiB")
    )
    words = ["--engine", "ceph", "--redundancy", "2"]
    for nodes_of_job in ([], ["--nodes", "n1"]):
        done = bed.run("n1", ["forebay", "run", *nodes_of_job, *words, script])
        for word in ("--engine ceph", "--redundancy 2", "profile=beeondd", "redundancy=2", *LAYOUT):
            assert f"warning: {word} has no effect on one node" in done.stderr, done.stderr


def test_directive_names_a_profile_and_the_command_line_another(bed, flash):
    missing = run(bed, None, "true", directive=" profile=beeondd")
    assert missing.returncode != 0
    assert "there is no profile beeondd" in missing.stderr and "did you mean beeond?" in missing.stderr
    assert run(bed, profile(bed), "true", directive=" profile=beeondd").returncode == 0
    lacks = run(bed, None, "true", directive=" profile=lod")
    assert "engine lod: node n1 lacks lod" in lacks.stderr


def test_configured_profile_overrides_the_directive_with_a_warning(bed, flash):
    words = ["env", f"FOREBAY_ENGINE_PROFILE={profile(bed)}"]
    done = run(bed, None, "pwd -P", directive=" profile=lod", words=words)
    assert done.returncode == 0, done.stderr
    warning = (
        f"profile=lod of the script has no effect: engine-profile is {bed.shared}/flash.toml (FOREBAY_ENGINE_PROFILE)"
    )
    assert warning in done.stderr
    chosen = run(bed, profile(bed), "true", directive=" profile=lod")
    assert chosen.returncode == 0 and "has no effect" not in chosen.stderr
    assert run(bed, None, "true", "--engine", "cephh", words=words).returncode != 0, "an option overrides the variable"
