"""`forebay plan` as users call it."""

import json
import pathlib
import re

import pytest

from support.job import DW

PROJECT = pathlib.Path(__file__).resolve().parents[2]
LOGS = PROJECT / "tests" / "profiles" / "logs"
BTIO = "--access", "collective", "--size", "100GB", "--calls", "10", "--segment", "1280B", "--ranks", "1024"
ON_32 = *BTIO, "--nodes", "32"
OWN_FILES = "--access", "file-per-process", "--size", "1TB", "--ranks", "256", "--nodes", "64"


def plan_json(job, *words):
    """The JSON of a plan."""
    done = job.command("plan", *words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused(job, *words, code=1):
    done = job.command("plan", *words)
    assert done.returncode == code and not done.stdout, done.stdout
    return done.stderr


def storage(plan, name):
    return next(one for one in plan["storages"] if one["storage"] == name)


def test_plan_names_settings_band_gain_and_lines(job):
    text = job.command("plan", "--machine", "shaheen2", *ON_32).stdout
    assert "Shaheen II: 32 nodes, 1024 ranks" in text
    assert re.search(r"datawarp +\S+ s \(\S+ s to \S+ s\)", text)
    assert re.search(r"#DW jobdw type=scratch access_mode=striped capacity=\d+GiB pool=wlm_pool", text)
    assert re.search(r"export MPICH_MPIIO_HINTS='\*:cb_nodes=\d+:striping_unit=\d+'", text)
    assert re.search(r"lfs setstripe -c \d+ -S \d+ ", text)


def test_recommended_settings_obey_the_published_rules(job):
    best = storage(plan_json(job, "--machine", "shaheen2", *ON_32), "datawarp")["recommended"]
    (aggregators,) = best["aggregators"]
    assert aggregators % best["servers"] == 0 and 1024 % aggregators == 0
    assert best["low_s"] < best["io_s"] < best["high_s"]
    parts = best["open_s"] + best["synchronisation_s"] + best["exchange_s"] + best["storage_s"]
    assert parts == pytest.approx(best["io_s"])


def test_capacity_line_gives_the_recommended_nodes(job):
    found = storage(plan_json(job, "--machine", "shaheen2", *ON_32), "datawarp")
    (line,) = (line for line in found["lines"] if line.startswith("#DW"))
    granules = int(re.search(r"capacity=(\d+)GiB", line)[1]) / 368
    assert granules == found["recommended"]["servers"] == found["allocation"]["nodes"]


def test_planned_lines_are_understood_by_forebay(job):
    found = storage(plan_json(job, "--machine", "shaheen2", *ON_32), "datawarp")
    job.script("true", *(line for line in found["lines"] if line.startswith("#DW")))
    done = job.command("__request", "job.sh")
    asked = json.loads(done.stdout)
    assert asked["allocation"]["capacity_bytes"] == found["allocation"]["capacity_bytes"]
    assert asked["allocation"]["pool"] == "wlm_pool" and not asked["warnings"]


def test_script_gives_nodes_ranks_and_capacity(job):
    job.script("srun ./a.out", "#SBATCH --nodes=16", "#SBATCH --ntasks=512", DW.replace("64MiB", "2TiB"))
    text = (job.directory / "job.sh").read_text()
    (job.directory / "job.sh").write_text(re.sub(r"capacity=\S+", "capacity=2TiB", text))
    plan = plan_json(job, "job.sh", "--machine", "shaheen2", "--access", "collective", "--size", "10GB")
    assert (plan["nodes"], plan["ranks"], plan["script"]) == (16, 512, "job.sh")
    found = storage(plan, "datawarp")
    assert found["default"]["servers"] == 6 and found["recommended"]["servers"] >= 6


def test_script_may_name_sources_that_do_not_exist_here(job):
    stage = "#DW stage_in type=directory source=/no/such/place destination=$DW_JOB_STRIPED/in"
    job.script("true", "#SBATCH -N 2", "#SBATCH -n 8", DW, stage)
    plan = plan_json(job, "job.sh", "--machine", "cori1", "--access", "collective", "--size", "10GB")
    assert plan["ranks"] == 8 and any("--stage-in" in note for note in plan["notes"])


def test_problem_of_a_directive_is_told_as_forebay_run_tells_it(job):
    job.script("true", "#SBATCH -n 8", "#DW jobdw type=scratch access_mode=striped capacity=3.5XB")
    message = refused(job, "job.sh", "--machine", "cori1", "--access", "collective", "--size", "1GB")
    assert "job.sh" in message and "line" in message


def test_profile_gives_the_pattern(job):
    plan = plan_json(job, "--machine", "cori1", "--profile", LOGS / "mpiio_shared_default.darshan", "--nodes", "4")
    (pattern,) = plan["patterns"]
    assert pattern["access"] == "collective" and pattern["total_bytes"] == 22118400 and pattern["ranks"] == 4
    assert plan["profile"].endswith("mpiio_shared_default.darshan")


@pytest.mark.soak
def test_segments_of_a_profile_are_one_piece_unless_the_user_says_more(job):
    words = "--machine", "cori1", "--profile", LOGS / "mpiio_shared_default.darshan", "--storage", "lustre"
    whole, pieces = plan_json(job, *words), plan_json(job, *words, "--segment", "8B")
    assert any("--segment" in note for note in whole["notes"])
    assert not any("--segment" in note for note in pieces["notes"])
    of = [plan["storages"][0]["default"]["exchange_s"] for plan in (whole, pieces)]
    assert of[1] > 10 * of[0]


def test_profile_of_fewer_ranks_is_scaled_and_says_so(job):
    words = "--profile", LOGS / "mpiio_shared_default.darshan", "--ranks", "1024", "--nodes", "32"
    plan = plan_json(job, "--machine", "cori1", *words)
    assert plan["patterns"][0]["total_bytes"] == 256 * 22118400
    assert any("4 ranks and the job 1024" in note for note in plan["notes"])


def test_profile_without_mpi_io_has_no_aggregators_and_says_why(job):
    plan = plan_json(job, "--machine", "summit", "--profile", LOGS / "posix_fpp.darshan")
    assert {pattern["access"] for pattern in plan["patterns"]} == {"file-per-process"}
    assert any("no MPI-IO" in note for note in plan["notes"])
    for one in plan["storages"]:
        assert set(one["recommended"]["aggregators"]) == {None}
        assert not any("cb_nodes" in line for line in one["lines"])


def test_profile_without_io_is_refused_with_the_remedy(job):
    (job.directory / "idle.txt").write_text("nothing to see\n")
    assert "no log that is known" in refused(job, "--machine", "summit", "--profile", "idle.txt")


def test_own_record_of_a_run_is_a_profile(job):
    job.script("mkdir -p out; dd if=/dev/zero of=${DW_JOB_STRIPED}big bs=1M count=32 status=none", DW)
    assert job.run().returncode == 0
    plan = plan_json(job, "--machine", "summit", "--profile", "last")
    assert plan["patterns"][0]["access"] == "serial" and plan["patterns"][0]["total_bytes"] >= 32 << 20


def test_input_of_a_reading_job_is_staged_in(job):
    reads = "--access", "collective", "--read", "--size", "50GB", "--calls", "10", "--ranks", "64", "--nodes", "8"
    found = storage(plan_json(job, "--machine", "shaheen2", *reads), "datawarp")
    assert found["staging"]["stage_in_s"] > 0 and found["staging"]["stage_out_s"] == 0
    assert found["allocation"]["granted_bytes"] - found["allocation"]["lost_bytes"] == 50 * 10**9


READS = "--access", "collective", "--read", "--size", "50GB", "--calls", "10", "--ranks", "64", "--nodes", "8"


def test_stage_in_is_told_with_its_amount_and_when(job):
    text = job.command("plan", "--machine", "shaheen2", "--storage", "datawarp", *READS).stdout
    assert re.search(r"stage in 50 GB from lustre: \S+ m?s before the job starts", text)
    own = "--access", "file-per-process", "--read", "--size", "1TB", "--ranks", "64", "--nodes", "16"
    local = storage(plan_json(job, "--machine", "summit", *own), "nvme")["staging"]
    # 16 drives of 2.1 GB/s are slower than the file system and the network.
    assert local["nodes_wait"] and local["stage_in_s"] == pytest.approx(1e12 / (16 * 2.1e9))


def test_input_of_a_persistent_allocation_is_held_and_not_staged(job):
    found = storage(plan_json(job, "--machine", "shaheen2", *READS, "--stage-in", "0"), "datawarp")
    assert found["staging"]["stage_in_s"] == 0 and found["staging"]["in_bytes"] == 0
    assert found["allocation"]["granted_bytes"] - found["allocation"]["lost_bytes"] == 50 * 10**9
    assert any(line.startswith("#DW persistentdw ") for line in found["lines"])
    assert not any("jobdw" in line for line in found["lines"])


def test_script_with_a_persistent_allocation_stages_nothing_unless_it_says_so(job):
    job.script("true", "#SBATCH -N 8", "#SBATCH -n 64", "#DW persistentdw name=inputs")
    words = "job.sh", "--machine", "shaheen2", *READS[:7]
    plan = plan_json(job, *words)
    assert storage(plan, "datawarp")["staging"]["in_bytes"] == 0
    assert any("persistent allocation inputs" in note for note in plan["notes"])
    assert storage(plan_json(job, *words, "--stage-in", "1GB"), "datawarp")["staging"]["in_bytes"] == 10**9


def test_input_that_a_burst_buffer_cannot_hold_makes_it_unsuitable(job):
    own = "--access", "file-per-process", "--read", "--ranks", "64", "--nodes", "16"
    plan = plan_json(job, "--machine", "summit", *own, "--size", "30TB")
    assert "30 TB are more than its 25.3 TB" in storage(plan, "nvme")["unsuitable"]
    assert storage(plan, "alpine")["recommended"]
    large = plan_json(job, "--machine", "cori1", *own, "--size", "1PB")
    assert "1 PB are more than its 900 TB" in storage(large, "datawarp")["unsuitable"]
    only = job.command("plan", "--machine", "cori1", "--storage", "datawarp", *own, "--size", "1PB").stdout
    assert "not for this job" in only and "without hints" not in only


def test_storage_that_cannot_hold_a_shared_file_is_named_last(job):
    plan = plan_json(job, "--machine", "summit", *ON_32)
    assert [one["storage"] for one in plan["storages"]] == ["alpine", "nvme"]
    assert "one file per process" in storage(plan, "nvme")["unsuitable"]
    assert storage(plan, "nvme")["recommended"] is None


def test_node_local_storage_scales_with_nodes(job):
    few = storage(plan_json(job, "--machine", "summit", *OWN_FILES), "nvme")["recommended"]
    many = storage(plan_json(job, "--machine", "summit", *OWN_FILES, "--nodes", "128"), "nvme")["recommended"]
    assert few["servers"] == 64 and many["io_s"] == pytest.approx(few["io_s"] / 2, rel=0.05)


def test_files_of_their_own_are_spread_over_all_osts_with_one_stripe(job):
    found = storage(plan_json(job, "--machine", "xe6", *OWN_FILES), "lustre")
    assert found["recommended"]["servers"] == found["default"]["servers"] == 240
    assert found["recommended"]["stripe_counts"] == [1] and found["default"]["stripe_counts"] == [4]
    assert found["lines"] == ["lfs setstripe -c 1 -S 1048576 OUTPUT_DIRECTORY"]


@pytest.mark.parametrize(("machine", "osts"), [("cori1", 248), ("shaheen2", 144)])
@pytest.mark.parametrize("direction", [[], ["--read"]])
def test_more_files_than_osts_gain_nothing_from_stripes(job, machine, osts, direction):
    words = *OWN_FILES[:4], "--ranks", "1024", "--nodes", "32", *direction
    found = storage(plan_json(job, "--machine", machine, *words), "lustre")
    assert found["speed_up"] == 1 and found["recommended"]["servers"] == osts
    assert found["recommended"]["stripe_counts"] == [1]
    wide = storage(plan_json(job, "--machine", machine, *words, "--servers", "32"), "lustre")
    assert wide["given"]["stripe_counts"] == [32] and wide["given"]["io_s"] >= found["recommended"]["io_s"]


def test_few_files_get_as_many_stripes_as_make_them_faster(job):
    few = *OWN_FILES[:4], "--ranks", "8", "--nodes", "8"
    small = storage(plan_json(job, "--machine", "xe6", *few), "lustre")
    assert small["recommended"]["stripe_counts"] == [1] and small["recommended"]["servers"] == 8
    large = storage(plan_json(job, "--machine", "xe6", *few, "--transfer", "8MiB"), "lustre")
    assert large["recommended"]["stripe_counts"] == [2] and large["recommended"]["servers"] == 16
    (curve,) = plan_json(job, "sweep", "--machine", "xe6", *few, "--transfer", "8MiB")["curves"]
    assert [point["servers"] for point in curve["points"]] == [8, 16, 32]
    assert [point["best"]["stripe_counts"] for point in curve["points"]] == [[1], [2], [4]]


def test_stripe_count_beyond_the_file_system_is_refused_for_own_files(job):
    assert "at most 160 stripes" in refused(job, "--machine", "xe6", *OWN_FILES, "--servers", "161")


def test_fixed_settings_are_predicted_as_given(job):
    words = "--servers", "2", "--aggregators", "64", "--stripe-size", "1MiB", "--storage", "datawarp"
    (found,) = plan_json(job, "--machine", "shaheen2", *ON_32, *words)["storages"]
    given = found["given"]
    assert (given["servers"], given["aggregators"], given["stripe_bytes"]) == (2, [64], [1 << 20])
    assert found["recommended"]["servers"] == 2


def test_jobs_at_the_same_time_take_longer_and_widen_the_band(job):
    one = storage(plan_json(job, "--machine", "shaheen2", *OWN_FILES), "datawarp")
    two = storage(plan_json(job, "--machine", "shaheen2", *OWN_FILES, "--concurrent-jobs", "4"), "datawarp")
    assert two["band_factor"] > one["band_factor"] and any("4 jobs" in note for note in two["outside"])


def test_question_outside_of_the_calibration_widens_the_band_and_says_so(job):
    huge = "--access", "collective", "--size", "10PB", "--ranks", "150000", "--nodes", "6000", "--calls", "10"
    inside = storage(plan_json(job, "--machine", "shaheen2", *ON_32), "lustre")
    outside = storage(plan_json(job, "--machine", "shaheen2", *huge), "lustre")
    assert outside["band_factor"] > inside["band_factor"]
    assert any("ranks 150,000, published" in note for note in outside["outside"])
    assert "outside of the published runs" in job.command("plan", "--machine", "shaheen2", *huge).stdout


@pytest.mark.parametrize("machine", ["shaheen2", "cori1", "summit", "xe6"])
@pytest.mark.parametrize(
    "words",
    [
        OWN_FILES,
        (*OWN_FILES, "--read"),
        (*OWN_FILES[:2], "--size", "100TB", "--ranks", "51200", "--nodes", "1600"),
        ("--access", "independent", "--size", "1GB", "--ranks", "8", "--nodes", "2"),
    ],
)
def test_no_band_promises_much_more_than_the_peak_of_the_servers(job, machine, words):
    peaks = {  # bytes in a second for writes of all servers, from the machine files' sources
        ("shaheen2", "lustre"): 500e9, ("shaheen2", "datawarp"): 1.5e12, ("cori1", "lustre"): 700e9,
        ("cori1", "datawarp"): 144 * 6 * 2**30, ("summit", "alpine"): 2.5e12, ("xe6", "lustre"): 240 * 375e6,
    }  # fmt: skip
    plan = plan_json(job, "--machine", machine, *words)
    (pattern,) = plan["patterns"]
    checked = 0
    for one in plan["storages"]:
        for sized in filter(None, (one["default"], one["recommended"])):
            of_peak_s = sized["efficiency"] * sized["io_s"]
            assert sized["low_s"] >= of_peak_s / 1.1001
            if (machine, one["storage"]) in peaks:
                checked += 1
                assert sized["low_s"] >= pattern["total_bytes"] / peaks[machine, one["storage"]] / 1.1001
    assert checked


def test_capacity_below_the_data_is_noted(job):
    words = "--machine", "shaheen2", "--storage", "datawarp", *OWN_FILES
    assert any("less than the 1 TB" in note for note in plan_json(job, *words, "--capacity", "368GiB")["notes"])
    assert plan_json(job, *words, "--capacity", "1104GiB")["notes"] == []


def test_capacity_above_a_granule_takes_another_node(job):
    words = "--machine", "shaheen2", "--storage", "datawarp", *OWN_FILES[:2], "--size", "1GB", *OWN_FILES[4:]
    for capacity, nodes in ((2 * 368 << 30, 2), ((2 * 368 << 30) + 1, 3)):
        (found,) = plan_json(job, *words, "--capacity", str(capacity))["storages"]
        assert found["default"]["servers"] == nodes


def test_advice_says_nothing_of_servers_where_opening_files_takes_the_time(job):
    words = "--machine", "shaheen2", "--access", "collective", "--size", "1B", "--ranks", "1024", "--nodes", "32"
    text = job.command("plan", *words).stdout
    assert "opening files" in text and "more of them would help" not in text and " ns" not in text


def test_drain_is_hidden_by_computing(job):
    found = storage(plan_json(job, "--machine", "shaheen2", *OWN_FILES, "--compute", "2h"), "datawarp")["staging"]
    assert found["hidden_s"] == found["stage_out_s"] > 0 and found["after_s"] == 0
    without = storage(plan_json(job, "--machine", "shaheen2", *OWN_FILES), "datawarp")["staging"]
    assert without["after_s"] == without["stage_out_s"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([*BTIO, "--nodes", "32"], ["no machine is named", "machine list"]),
        (["--machine", "nowhere", *ON_32], ["nowhere", "machine list"]),
        (["--machine", "shaheen2"], ["nothing says what the job reads and writes", "--profile"]),
        (["--machine", "shaheen2", "--access", "serial"], ["needs the amount of data", "--size"]),
        (["--machine", "shaheen2", "--access", "serial", "--size", "1GB"], ["number of ranks", "--ranks"]),
        (["--machine", "shaheen2", *ON_32, "--ranks", "0"], ["0 ranks", "at least 1"]),
        (["--machine", "shaheen2", *ON_32, "--nodes", "0"], ["0 nodes", "at least 1"]),
        (["--machine", "shaheen2", *ON_32, "--nodes", "2000"], ["leave nodes empty"]),
        (["--machine", "shaheen2", *ON_32, "--ranks", "-4"], ["-4 ranks"]),
        (["--machine", "shaheen2", *ON_32, "--calls", "0"], ["0 collective calls"]),
        (["--machine", "shaheen2", *ON_32, "--servers", "0"], ["--servers is 0"]),
        (["--machine", "shaheen2", *ON_32, "--servers", "300", "--storage", "datawarp"], ["268", "300"]),
        (["--machine", "xe6", *ON_32, "--servers", "200"], ["160 stripes"]),
        (["--machine", "shaheen2", *ON_32, "--aggregators", "5000"], ["5000 aggregators for 1024 ranks"]),
        (["--machine", "shaheen2", *ON_32, "--storage", "tape"], ["no storage 'tape'", "lustre, datawarp"]),
        (["--machine", "shaheen2", *ON_32, "--capacity", "9PB"], ["268 storage nodes", "ask for less"]),
        (["--machine", "shaheen2", *BTIO, "--ranks", "8000", "--nodes", "7000"], ["6174 nodes", "7000"]),
        (["--machine", "shaheen2", *BTIO, "--ranks", "9000", "--nodes", "2"], ["4500 ranks on each node"]),
        (["--machine", "shaheen2", *ON_32, "--profile", "last"], ["--profile and --access", "one of them"]),
        (["--machine", "shaheen2", "--profile", "/no/log"], ["/no/log"]),
        (["no.sh", "--machine", "shaheen2", *ON_32], ["no.sh", "check the path"]),
        (["checkpoint", "--machine", "summit", "--size", "1TB", "--nodes", "4", "--ranks", "4"], ["--mtbf"]),
        (["machine", "show", "nowhere"], ["nowhere", "machine list"]),
    ],
)
def test_wrong_question_is_refused_with_what_and_the_remedy(job, words, said):
    message = refused(job, *words)
    for word in said:
        assert word in message, message
    assert message.startswith("error: ") and "\nhint: " in message and "Traceback" not in message


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("0", "zero"),
        ("-5", "negative"),
        ("1.2.3", "not a number"),
        ("0GB", "zero"),
        ("-1GB", "negative"),
        ("8Gb", "bits"),
        ("1e400GB", "finite"),
    ],
)
def test_wrong_quantity_is_an_error_of_the_command_line(job, value, said):
    words = "--machine", "shaheen2", "--access", "collective", "--ranks", "4", "--size", value
    assert said in refused(job, *words, code=2)


def test_time_without_unit_is_an_error_of_the_command_line(job):
    assert "unit is missing" in refused(job, "--machine", "shaheen2", *ON_32, "--compute", "100", code=2)


def test_sizes_without_unit_are_bytes_in_all_options(job):
    plain = "--size", "100000000000", "--transfer", "47008", "--segment", "1280", "--capacity", "1e12"
    with_unit = "--size", "100GB", "--transfer", "47008B", "--segment", "1280B", "--capacity", "1TB"
    more = "--stripe-size", "1048576", "--buffer-size", "16777216", "--stage-in", "1000"
    units = "--stripe-size", "1MiB", "--buffer-size", "16MiB", "--stage-in", "1kB"
    words = "--machine", "shaheen2", "--access", "collective", "--ranks", "1024", "--nodes", "32"
    assert plan_json(job, *words, *plain, *more) == plan_json(job, *words, *with_unit, *units)
    capacity = "capacity", "--machine", "shaheen2"
    assert plan_json(job, *capacity, "60000000000000", "--job", "5") == plan_json(job, *capacity, "60TB", "--job", "5B")
    study = "study", "--storage", "datawarp", "--runs", "4", "--seed", "1", "--servers", "4"
    known = [
        plan_json(job, *study, *words, "--size", "1GB", "--known", f"32:{unit}")["known"] for unit in ("65536", "64KiB")
    ]
    assert known[0] == known[1]


def test_error_is_json_with_json(job):
    done = job.command("plan", "--machine", "nowhere", "--json", *ON_32)
    assert done.returncode == 1
    assert json.loads(done.stdout)["hint"] and "nowhere" in json.loads(done.stdout)["error"]


def test_machine_file_with_wrong_units_is_named(job):
    text = (PROJECT / "machines" / "shaheen2.toml").read_text()
    (job.directory / "mine.toml").write_text(text.replace('"500 GB/s"', '"500 Gb/s"'))
    message = refused(job, "--machine", "mine.toml", *ON_32)
    assert "mine.toml: storage.lustre.write_bandwidth" in message and "bits" in message


def test_machines_are_listed_with_their_storages(job):
    listed = job.command("plan", "machine", "list").stdout
    for name in ("shaheen2", "cori1", "summit", "xe6", "lustre-small"):
        assert re.search(rf"^{name} .*/{name}\.toml", listed, re.MULTILINE)


def test_machine_is_shown_with_sources(job):
    shown = job.command("plan", "machine", "show", "summit").stdout
    assert "storage.nvme.server_write_bandwidth" in shown and "2.1 GB/s" in shown and "OLCF18" in shown


def test_sweep_has_a_point_for_each_number_and_writes_its_page(job):
    done = job.command("plan", "sweep", "--machine", "shaheen2", *ON_32, "--html", "s.html")
    assert done.returncode == 0 and "page: s.html" in done.stderr
    assert done.stdout.count("<- recommended") == 2
    page = (job.directory / "s.html").read_text()
    assert page.count("<svg") == 4 and "I/O time against DataWarp nodes" in page and "<script src" not in page


@pytest.mark.soak
def test_page_of_a_sweep_has_no_empty_heading_and_a_linear_axis_of_percent(job):
    done = job.command("plan", "sweep", "--machine", "cori1", *OWN_FILES, "--storage", "datawarp", "--html", "s.html")
    assert done.returncode == 0, done.stderr
    page = (job.directory / "s.html").read_text()
    assert "Program 1" not in page
    (efficiency,) = (svg for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL) if "efficiency against" in svg)
    numbers = [float(text) for text in re.findall(r"<text[^>]*>([0-9.]+)</text>", efficiency)]
    assert {0, 25, 50, 75, 100} <= set(numbers)


def test_sweep_names_each_feature_outside_of_the_calibration_once_with_its_range(job):
    few = "--access", "file-per-process", "--size", "1TB", "--ranks", "16", "--nodes", "8", "--transfer", "8MiB"
    (curve,) = plan_json(job, "sweep", "--machine", "xe6", *few)["curves"]
    features = [re.match(r"[a-z ]+", note)[0] for note in curve["outside"]]
    assert len(features) == len(set(features)) and len(curve["points"]) > 2
    assert any(re.match(r"writing processes for each server 0.25 to 0.5, published", note) for note in curve["outside"])
    assert any(note.endswith("published 1 to 1.05 MB") for note in curve["outside"])


def test_sweep_and_plan_recommend_the_same(job):
    plan = storage(plan_json(job, "--machine", "shaheen2", *ON_32), "datawarp")["recommended"]
    curves = plan_json(job, "sweep", "--machine", "shaheen2", *ON_32)["curves"]
    (curve,) = (one for one in curves if one["storage"] == "datawarp")
    (point,) = (one for one in curve["points"] if one["servers"] == curve["recommended_servers"])
    assert point["best"] == plan


@pytest.mark.soak
def test_page_that_cannot_be_written_is_named(job):
    message = refused_after_output(job, "plan", "sweep", "--machine", "xe6", *ON_32, "--html", "no/s.html")
    assert "no/s.html" in message and "hint: " in message


def refused_after_output(job, *words):
    done = job.command(*words)
    assert done.returncode == 1
    return done.stderr


def test_names_of_a_profile_are_shown_without_control_characters(job):
    plan = plan_json(job, "--machine", "cori1", "--profile", LOGS / "mpiio_shared_default.darshan")
    assert all(pattern["name"].isprintable() for pattern in plan["patterns"])


def test_checkpoints_go_where_fewest_node_hours_are_lost_or_held(job):
    words = "checkpoint", "--machine", "shaheen2", "--size", "2TB", "--nodes", "512", "--ranks", "4096"
    plan = plan_json(job, *words, "--mtbf", "24h")
    prices = [level["lost_node_hours_per_day"] + level["storage_node_hours_per_day"] for level in plan["levels"]]
    assert prices == sorted(prices) and plan["levels"][0]["storage"] == "lustre"
    held = next(level for level in plan["levels"] if level["storage"] == "datawarp")
    # A granule of each node is held all day, of 16 that a node of 5.82 TiB has; nodes that write count as a whole.
    assert 24 * held["servers"] / 16 < held["storage_node_hours_per_day"] < 1.1 * 24 * held["servers"] / 16
    of_nodes = plan_json(job, *words, "--node-mtbf", "512d")
    done = job.command("plan", *words, "--mtbf", "24h", "--html", "c.html")
    assert "of storage" in done.stdout and "page: c.html" in done.stderr
    assert "storage node-hours a day" in (job.directory / "c.html").read_text()
    assert of_nodes["failure_s"] == 86400 and of_nodes["levels"] == plan["levels"]


@pytest.mark.soak
@pytest.mark.xdist_group("calibration")
def test_calibration_shows_each_figure_and_what_is_not_predicted(job):
    found = plan_json(job, "calibration")
    assert len(found["rows"]) > 60 and all(row["predicted"] > 0 for row in found["rows"])
    ids = {row["id"].partition(":")[0] for row in found["rows"]}
    rows = json.loads((PROJECT / "python" / "src" / "forebay" / "plan" / "data" / "calibration.json").read_text())
    assert ids | set(found["unpredicted"]) == {row["id"] for row in rows}


def test_script_named_as_a_subcommand_is_reached_by_its_path(job):
    (job.directory / "sweep").write_text("#!/bin/bash\n#SBATCH -n 8\ntrue\n")
    plan = plan_json(job, "./sweep", "--machine", "cori1", "--access", "collective", "--size", "1GB")
    assert plan["ranks"] == 8


ONE = re.compile(r"(?<![\d.,])1 (?:\w+ )?(?:nodes|ranks|OSTs|aggregators|servers|granules|calls|stripes|files)\b")


@pytest.mark.soak
@pytest.mark.parametrize(
    "words",
    [
        ["--machine", "cori1", "--access", "collective", "--size", "1GB", "--ranks", "1", "--calls", "1"],
        ["--machine", "cori1", "--access", "collective", "--size", "1GB", "--ranks", "64", "--nodes", "1"],
        ["--machine", "shaheen2", *ON_32, "--servers", "1", "--aggregators", "1"],
        ["--machine", "summit", "--access", "file-per-process", "--size", "1GB", "--ranks", "1"],
        ["--machine", "xe6", "--access", "serial", "--size", "1GB", "--ranks", "1", "--servers", "1"],
        ["sweep", "--machine", "cori1", "--access", "serial", "--size", "1GB", "--ranks", "1", "--html", "s.html"],
        ["capacity", "1GiB", "--machine", "shaheen2", "--job", "1GiB", "--job", "1GiB"],
        ["capacity", "99000GiB", "--machine", "shaheen2"],
    ],
)
def test_one_of_anything_is_singular(job, words):
    done = job.command("plan", *words)
    assert done.returncode == 0, done.stderr
    page = job.directory / "s.html"
    text = done.stdout + (re.sub(r"<[^>]*>", " ", page.read_text()) if page.exists() else "")
    assert not ONE.findall(text), ONE.findall(text)


def test_refusals_of_one_are_singular(job):
    words = "--machine", "cori1", "--access", "serial", "--size", "1GB", "--ranks", "1", "--nodes", "2"
    assert "1 rank on 2 nodes leave nodes empty" in refused(job, *words)
