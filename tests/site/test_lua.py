"""The same jobs under Slurm's plugin `burst_buffer/lua` with `burst_buffer.lua`; and its functions as Slurm 24.05 calls
them, which no distribution of today has: it asks for the end of a staging from time to time."""

import os
import pathlib
import shutil
import signal
import subprocess

import pytest

from support.site_cluster import DW, MIB, SLOW, SiteBatch, SiteCluster, TOGETHER, chown
from support.slurm_cluster import NOBODY, Cluster, command_of, descendants, started
from support.waiting import wait_until

SCRIPT = pathlib.Path(__file__).parents[2] / "integrations" / "slurm" / "burst_buffer.lua"
DRIVER = pathlib.Path(__file__).parent / "lua_call.lua"
LUA = next(filter(None, map(shutil.which, ("lua5.1", "lua", "lua5.4", "lua5.3"))), None)
POOL = DW.replace("jobdw", "jobdw pool=flash")
IN = "#DW stage_in type=file source=%d/input destination=$DW_JOB_STRIPED/input"
OUT = "#DW stage_out type=file source=$DW_JOB_STRIPED/result destination=%d/results/%j"


class LuaCluster(SiteCluster):
    def make_files(self):
        super().make_files()
        self.script = self.top / "burst_buffer.lua"
        self.script.write_text(SCRIPT.read_text().replace('"/usr/bin/"', f'"{self.build}/bin/"'))
        (self.top / "burst_buffer.conf").write_text("Directive=DW\nStageInTimeout=15\n")
        configuration = self.top / "slurm.conf"
        configuration.write_text(configuration.read_text().replace("burst_buffer/datawarp", "burst_buffer/lua"))

    def wait_until_up(self):
        Cluster.wait_until_up(self)
        self.wait(lambda: "[0]=flash" in self.run(["scontrol", "show", "burst"], check=False).stdout, "no pool")

    def lua(self, function, *words, polls=True):
        """Starts one function as SlurmUser; its two lines are the code and the text."""
        inside = ["nsenter", "--target", str(self.leader()), "--net", "--mount", "--uts", "--pid"]
        become = ["setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups"]
        environment = {
            "PATH": f"{os.defpath}:/usr/sbin:/sbin",
            "FOREBAY_SITE": str(self.top / "site.toml"),
            "SLURM_CONF": str(self.top / "slurm.conf"),
        } | ({} if polls else {"NO_POLLS": "1"})
        driver = self.top / "lua_call.lua"
        driver.write_text(DRIVER.read_text())
        program = [LUA, driver, self.script, f"slurm_bb_{function}", *map(str, words)]
        return subprocess.Popen([*inside, *become, *program], env=environment, stdout=subprocess.PIPE, text=True)

    def called(self, function, *words, **how):
        process = self.lua(function, *words, **how)
        said = process.communicate()[0]
        assert process.returncode == 0, said
        code, _, text = said.partition("\n")
        return int(code), text.strip()


@pytest.fixture(scope="module")
def lua_site(build):
    with started(LuaCluster, build) as cluster:
        yield cluster


@pytest.fixture
def users(lua_site, request):
    batch = SiteBatch(lua_site, NOBODY, "".join(c if c.isalnum() else "-" for c in request.node.name))
    batch.results.mkdir()
    (batch.directory / "input").write_text("input\n")
    chown(batch.directory, NOBODY)
    yield batch
    batch.end()


def test_job_is_staged_in_run_on_two_nodes_and_staged_out(lua_site, users):
    users.script("(cat $DW_JOB_STRIPED/input; srun -N2 hostname) > $DW_JOB_STRIPED/result", POOL, IN, OUT)
    job = users.submit("-N2")
    assert users.wait(job) == "COMPLETED", users.log()
    assert users.arrived() == [job]
    assert sorted((users.results / job).read_text().split()) == ["input", "n1", "n2"]
    users.wait_until_freed(job)
    assert lua_site.directories() == []
    assert users.run("scontrol", "show", "bbstat", "pools").stdout.split()[:2] == ["pool", "units"]


def test_nodes_of_a_job_share_the_namespace_of_an_engine(lua_site, users):
    lua_site.cgroup("n4")
    writes = "srun -N4 --ntasks-per-node=1 bash -c 'hostname > $DW_JOB_STRIPED/$(hostname)'"
    body = f"{writes}; cd $DW_JOB_STRIPED; cat input n1 n2 n3 n4 > result"
    users.script(body, TOGETHER, IN, OUT)
    job = users.submit("-N4")
    assert users.wait(job) == "COMPLETED", users.log()
    users.wait_until_freed(job)
    assert (users.results / job).read_text().split() == ["input", "n1", "n2", "n3", "n4"]
    assert lua_site.on_nodes("together") == []


def test_wrong_directive_and_missing_source_are_named(users):
    users.script("true", POOL, "#DW nonsense")
    said = users.run("sbatch", "job.sh", check=False).stderr
    assert 'burst_buffer/lua: line 3: unknown command "nonsense"' in said
    users.script("true", POOL, IN.replace("input ", "no-such "))
    assert "slurm bb data in" in users.waits_for(users.submit(), "no-such does not exist")


def test_staging_that_the_limit_kills_does_not_start_the_job(lua_site, users):
    """The plugin takes whatever the function returns for the result."""
    (users.directory / "big").write_bytes(os.urandom(96 * MIB))  # 24 s; StageInTimeout is 15 s
    chown(users.directory / "big", users.user)
    slow = SLOW.replace("16MiB", "112MiB")
    users.script(f"touch {users.directory}/ran", slow, IN.replace("/input", "/big"))
    job = users.submit()
    users.waits_for(job, "slurm bb data in")
    assert users.show_job(job)["JobState"] == "PENDING" and not (users.directory / "ran").exists()


@pytest.mark.skipif(LUA is None, reason="no Lua interpreter is installed")
def test_newer_slurm_asks_until_the_staging_has_ended(lua_site, users):
    big = users.directory / "big"
    big.write_bytes(os.urandom(28 * MIB))
    chown(big, users.user)
    out = "#DW stage_out type=file source=$DW_JOB_STRIPED/big destination=%d/results/big"
    script = users.script_for_calls(SLOW.replace("16MiB", "32MiB"), IN.replace("/input", "/big"), out)
    of_job = (script, users.user, users.user, "nodes=n[1-2]")
    call = lua_site.called
    assert call("job_process", *of_job) == (0, "")
    assert '"id":"flash"' in call("pools")[1]
    setup = ("900100", users.user, users.user, "slow", 32 * MIB, script, "nodes=")
    assert call("setup", *setup) == (0, "")
    assert call("data_in", "900100", *of_job) == (0, "")
    answers = []
    while not answers or answers[-1] == (0, "BUSY"):
        answers.append(call("test_data_in", "900100", *of_job))
    assert answers[-1] == (0, "") and len(answers) > 1, answers
    assert call("real_size", "900100", users.user, users.user, "nodes=") == (0, str(32 * MIB))
    path = lua_site.top / "state" / "path"
    path.touch()
    shutil.chown(path, "slurm")
    assert call("paths", "900100", script, path, users.user, users.user, "nodes=") == (0, "")
    assert path.read_text().startswith("DW_JOB_STRIPED=")
    assert call("pre_run", "900100", *of_job) == (0, "")
    code, text = call("pre_run", "900100", script, users.user, users.user, "nodes=n7")
    assert code == -1 and "n7" in text
    assert call("post_run", "900100", *of_job) == (0, "")
    # A stage-out that fails is tried again between the questions, and in the end its error is the answer.
    users.results.chmod(0o555)
    answers = [call("data_out", "900100", *of_job)]
    while answers[-1] in ((0, "BUSY"), (0, "")):
        answers.append(call("test_data_out", "900100", *of_job))
    assert answers[-1][0] == -1 and "Permission denied" in answers[-1][1] and "kept in" in answers[-1][1]
    users.results.chmod(0o755)
    assert call("data_out", "900100", *of_job) == (0, "")
    answers = []
    while not answers or answers[-1] == (0, "BUSY"):
        answers.append(call("test_data_out", "900100", *of_job))
    assert answers[-1] == (0, "") and (users.results / "big").read_bytes() == big.read_bytes()
    code, text = call("get_status", users.user, users.user, "sessions")
    assert code == 0 and "900100" in text
    assert call("job_teardown", "900100", script, "false", users.user, users.user) == (0, "")
    assert lua_site.directories("slow") == []


@pytest.mark.skipif(LUA is None, reason="no Lua interpreter is installed")
@pytest.mark.parametrize("killed", ["dw_wlm_cli", "sh"])
def test_killed_stage_is_a_failure(lua_site, users, killed):
    token = {"dw_wlm_cli": "900101", "sh": "900102"}[killed]
    (users.directory / "big").write_bytes(os.urandom(40 * MIB))
    chown(users.directory / "big", users.user)
    script = users.script_for_calls(SLOW.replace("16MiB", "112MiB"), IN.replace("/input", "/big"))
    setup = (token, users.user, users.user, "slow", 112 * MIB, script)
    assert lua_site.called("setup", *setup, polls=False) == (0, "")
    process = lua_site.lua("data_in", token, script, polls=False)

    def ours(name):
        return [pid for pid in descendants(process.pid) if "".join(command_of(pid)[:1]).endswith(name)]

    wait_until(lambda: lua_site.processes("/proc/self/exe", "__site"), process=process)
    names = ("sh", "dw_wlm_cli") if killed == "sh" else ("dw_wlm_cli",)
    for pid in [pid for name in names for pid in ours(name)]:
        os.kill(pid, signal.SIGKILL)
    code, text = process.communicate()[0].split("\n", 1)
    assert lua_site.called("job_teardown", token, script, "true", polls=False) == (0, "")
    # The shell says the first, if it still can.
    assert int(code) == -1 and text.strip() == {"dw_wlm_cli": "Killed", "sh": "dw_wlm_cli was killed"}[killed]
