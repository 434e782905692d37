"""Layouts on CephFS: what `dw_get_stripe_configuration` reports and `dw_set_stripe_configuration` sets, on each node of
a job with the engine ceph."""

import contextlib
import errno

import pytest

from support.bed_files import BUILD
from support.node_jobs import STRIPED, node_job, on_disks
from support.nodes import nodes
from support.strace import few
from support.waiting import wait_until

INVALID = str(-errno.EINVAL)
MIB = 1 << 20
#: Without the library of this build in its path, the program takes that of the machine.
ASK = f'ask() {{ LD_LIBRARY_PATH={BUILD}/lib {BUILD}/tests/capi/ask "$@"; }}\n'
ELSEWHERE = (
    'elsewhere() { ssh n2 "FOREBAY_REQUESTS=$FOREBAY_REQUESTS DW_JOB_STRIPED=$DW_JOB_STRIPED '
    f'LD_LIBRARY_PATH={BUILD}/lib {BUILD}/tests/capi/ask $*"; }}\n'
)


@pytest.fixture(scope="module")
def some_nodes(build):
    with nodes(2, build, 1 << 30) as bed:
        yield bed


@pytest.fixture
def bed(some_nodes):
    """Nothing is left on it after the test."""
    yield some_nodes
    some_nodes.wait_until_clean()


def lines(bed, name: str, body: str, *options, directive: str = "") -> list[str]:
    """What the script of a job prints. `directive` has more words of its allocation."""
    head = f"{STRIPED} {directive}\n{ASK}{ELSEWHERE}S=$DW_JOB_STRIPED\ncd $S || exit\n"
    job = node_job(bed, head + body, *options, name=name)
    printed = job.run().stdout.splitlines()
    assert job.leftovers() == []
    return printed


def layout(unit: int) -> str:
    """What CephFS itself says of a file."""
    return f"stripe_unit={unit} stripe_count=1 object_size={unit} pool=data"


def of_unit(unit: int) -> str:
    """What the library says: no error, the size, two servers, the first."""
    return f"0 {unit} 2 0"


def test_layout_of_directory_and_file_is_set_and_reported_on_each_node(bed):
    printed = lines(
        bed,
        "set",
        f"""ask stripes $S; elsewhere stripes $S
mkdir small; ask set-stripes small 65536 2; ask stripes small; elsewhere stripes $S/small
touch small/a; getfattr --only-values -n ceph.file.layout small/a; echo
mkdir small/below; elsewhere stripes $S/small/below
touch large; elsewhere set-stripes $S/large {4 * MIB} 2; ask stripes large
dd if=/dev/urandom of=small/a bs=100000 count=5 status=none
cmp small/a <(ssh n2 cat $S/small/a) && echo equal""",
    )
    assert printed == [
        *[of_unit(MIB)] * 2,
        "0",
        *[of_unit(65536)] * 2,
        layout(65536),
        of_unit(65536),
        "0",
        of_unit(4 * MIB),
        "equal",
    ]


PROFILE = """engine = "ceph"
stripe_bytes = 131072
[[layouts]]
names = "*.h5"
stripe_bytes = 4194304
[[layouts]]
names = "*"
stripe_bytes = 65536
"""


def test_new_files_have_the_layout_of_their_name_on_each_node(bed):
    """The first pattern that matches counts. A file that exists keeps its layout."""
    profile = bed.shared / "layouts.toml"
    profile.write_text(PROFILE)
    printed = lines(
        bed,
        "names",
        """mkdir deep; head -c 5000000 /dev/urandom >deep/a.h5; ssh n2 "head -c 300000 /dev/urandom >$S/deep/b.txt"
ssh n2 truncate -s 0 $S/deep/a.h5.old; mv deep/a.h5.old deep/c.h5
(umask 333; echo 1 >deep/d.h5)
for name in a.h5 b.txt c.h5 d.h5; do getfattr --only-values -n ceph.file.layout deep/$name; echo; done
getfattr --only-values -n ceph.dir.layout $S/.. | cut -d' ' -f1
cmp deep/a.h5 <(ssh n2 cat $S/deep/a.h5) && cmp deep/b.txt <(ssh n2 cat $S/deep/b.txt) && echo equal""",
        "--engine-profile",
        profile,
    )
    # Its creator may not write the last file.
    layouts = [layout(unit) for unit in (4 * MIB, 65536, 65536, 4 * MIB)]
    assert printed == [*layouts, "stripe_unit=131072", "equal"]


LOCAL = """engine = "ceph"
[[layouts]]
names = "*.all"
stripe_bytes = 65536
[[layouts]]
names = "*.rank"
stripe_bytes = 4194304
placement = "local"
[[layouts]]
directories = "checkpoint*"
placement = "local"
"""
#: The bytes that a node has sent to others.
SENT = "awk '/eth0/ { print $10 }' /proc/net/dev"


@pytest.mark.parametrize("redundancy", [1, 2])
def test_local_files_are_on_the_node_that_creates_them_and_visible_on_each(bed, redundancy):
    profile = bed.shared / "local.toml"
    profile.write_text(LOCAL)
    printed = lines(
        bed,
        f"local-{redundancy}",
        """mkdir -p checkpoint-1/deep other
for node in n1 n2; do
ssh $node "cd $S; head -c 3000000 /dev/urandom >checkpoint-1/deep/$node; echo 1 >other/$node; echo 1 >other/$node.rank
echo 1 >checkpoint-1/$node.all"
done
mv checkpoint-1/deep/n2 other/moved
for name in checkpoint-1/deep/n1 other/moved other/n1 other/n1.rank other/n2.rank checkpoint-1/n1.all; do
getfattr --only-values -n ceph.file.layout.pool $name; echo; done
for name in checkpoint-1/deep/n1 other/moved other/n2.rank checkpoint-1 other/n1; do ask stripes $name; done
ask set-stripes other/n2.rank 65536 1
cmp other/moved <(ssh n2 cat $S/other/moved) && cmp checkpoint-1/deep/n1 <(ssh n2 cat $S/checkpoint-1/deep/n1) && echo equal""",
        "--engine-profile",
        profile,
        "--redundancy",
        redundancy,
    )
    assert printed[:6] == ["local.1", "local.2", "data", "local.1", "local.2", "data"]
    one = [f"0 {MIB} 1 0", f"0 {MIB} 1 1", f"0 {4 * MIB} 1 1", f"0 {MIB} 1 0", f"0 {MIB} 2 0"]
    assert printed[6:] == [*one, INVALID, "equal"]


def test_directive_chooses_placement_and_unit_of_all_files(bed):
    body = """for node in n1 n2; do ssh $node "mkdir $S/of-$node; echo 1 >$S/of-$node/file; echo 1 >$S/$node"; done
for name in of-n1/file of-n2/file n2; do getfattr --only-values -n ceph.file.layout $name; echo; done"""
    of = lambda pool: f"stripe_unit={4 * MIB} stripe_count=1 object_size={4 * MIB} pool={pool}"
    local = lines(bed, "directive-local", body, directive="placement=local stripe_bytes=4MiB")
    assert local == [of("local.1"), of("local.2"), of("local.2")]
    assert lines(bed, "directive-striped", body, directive="stripe_bytes=4MiB") == [of("data")] * 3


def test_directive_and_profile_together(bed):
    """Its unit is that of all files without one in the profile, and files that the profile names have its placement."""
    profile = bed.shared / "both.toml"
    profile.write_text('engine = "ceph"\nstripe_bytes = 131072\n[[layouts]]\nnames = "*.h5"\nplacement = "striped"\n')
    body = "for name in a a.h5; do touch $name; getfattr --only-values -n ceph.file.layout $name; echo; done"
    words = "placement=local stripe_bytes=64KiB redundancy=2"
    printed = lines(bed, "both", body, "--engine-profile", profile, directive=words)
    of = lambda pool: f"stripe_unit=65536 stripe_count=1 object_size=65536 pool={pool}"
    assert printed == [of("local.1"), of("data")]


def test_layout_without_a_striped_namespace_has_no_effect(bed):
    script = STRIPED.replace("striped", "private") + " placement=local stripe_bytes=64KiB"
    done = node_job(bed, script, "--engine", "ceph", name="private").run()
    for word in ("placement=local", "stripe_bytes=65536"):
        assert f"warning: {word} has no effect with access_mode=private alone" in done.stderr, done.stderr


def test_writing_a_local_file_sends_no_data_to_other_nodes(bed):
    profile = bed.shared / "local.toml"
    profile.write_text(LOCAL)
    write = f"{SENT}; dd if=/dev/zero of=$S/NAME bs=1M count=20 conv=fsync status=none; {SENT}"
    written = [f'ssh n2 "{write.replace("NAME", name).replace("$10", chr(92) + "$10")}"' for name in ("a", "a.rank")]
    printed = lines(bed, "sent", "\n".join(written), "--engine-profile", profile)
    before, striped, again, local = map(int, printed)
    # About half of a striped file is on the other node.
    assert striped - before > 5 * MIB and local - again < MIB


@pytest.mark.parametrize("store", few("memory", "disk"))
def test_status_shows_what_each_node_stores(build, store):
    """Striped files are on both nodes, local ones on theirs."""
    with nodes(2, build) as bed, on_disks(bed) if store == "disk" else contextlib.nullcontext():
        profile = bed.shared / "local.toml"
        profile.write_text(LOCAL)
        script = f"{STRIPED}\necho $DW_JOB_STRIPED >striped; touch held; until [ -e go ]; do sleep 0.1; done"
        job = node_job(bed, script, "--engine-profile", profile, name=store)
        run = job.start()

        def stored() -> list[int]:
            (listed,) = job.jobs()
            return [bytes or 0 for bytes in listed["nodes"]["stored_bytes"]] or [0, 0]

        def write(node, name) -> None:
            bed.run(
                node, ["dd", "if=/dev/urandom", f"of={job.mount() / name}", "bs=1M", "count=24", "conv=fsync"], "ada"
            )

        write("n1", "striped")
        wait_until(lambda: min(stored()) > 4 * MIB and sum(stored()) >= 24 * MIB, what="both halves")
        assert sum(stored()) < 60 * MIB, stored()
        first, second = stored()
        write("n2", "a.rank")
        wait_until(lambda: stored()[1] > second + 20 * MIB, what="the local file")
        assert stored()[0] < first + 12 * MIB, (first, stored())
        assert "stored: n1 " in job.forebay("status").stdout
        done = job.release(run)
        assert done.returncode == 0 and job.leftovers() == []


@pytest.mark.soak
def test_program_chooses_a_directory_whose_files_stay_on_their_node(bed):
    profile = bed.shared / "local.toml"
    profile.write_text(LOCAL)
    printed = lines(
        bed,
        "chosen",
        """mkdir own; setfattr -n ceph.dir.layout.pool -v local own; ssh n2 "touch $S/own/a; mkdir $S/own/b; touch $S/own/b/c"
for name in own/a own/b/c; do getfattr --only-values -n ceph.file.layout.pool $name; echo; done""",
        "--engine-profile",
        profile,
    )
    assert printed == ["local.2", "local.2"]


def test_explain_names_the_files_that_stay_on_their_node(bed):
    profile = bed.shared / "local.toml"
    profile.write_text(LOCAL)
    done = node_job(bed, STRIPED, "--engine-profile", profile, "--explain", name="explain").run()
    for what in ("files named *.rank", "files below directories named checkpoint*"):
        assert f"{what} are stored on the node that creates them" in done.stderr


def test_layouts_of_names_need_the_client_that_sets_them(bed):
    profile = bed.shared / "fuse.toml"
    profile.write_text(PROFILE.replace('"ceph"\n', '"ceph"\nclient = "ceph-fuse"\n'))
    refused = node_job(bed, STRIPED, "--engine-profile", profile, name="fuse").run(check=False)
    assert refused.returncode == 125
    assert "layouts of names need the client forebay-mount, and the mounts use ceph-fuse" in refused.stderr


def test_layout_that_cannot_be_kept_is_refused(bed):
    refused = lines(
        bed,
        "refuse",
        f"""touch empty; echo 1 >full
ask set-stripes empty {MIB} 1; ask set-stripes empty {MIB} 3; ask set-stripes empty 100000 2
ask set-stripes empty 0 2; ask set-stripes empty -65536 2; ask set-stripes empty {256 * MIB} 2
ask set-stripes full {MIB} 2; elsewhere set-stripes $S/full {MIB} 2
elsewhere stripes /tmp; ask stripes empty""",
    )
    assert refused == [*[INVALID] * 8, f"{-errno.ENOTCONN} -1 -1 -1", f"0 {MIB} 2 0"]


def test_user_of_the_mount_sets_layouts_and_not_the_capacity(bed):
    printed = lines(
        bed,
        "capacity",
        """setfattr -n ceph.dir.layout.stripe_unit -v 131072 $S/.. 2>&1 | sed 's/.*: //'
for value in 0 10737418240; do setfattr -n ceph.quota.max_bytes -v $value $S/.. 2>&1 | sed 's/.*: //'; done
getfattr --only-values -n ceph.quota.max_bytes $S/..; echo""",
    )
    assert printed == ["Permission denied"] * 3 + [str(64 * MIB)]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ("stripe_bytes = 262144\nstripe_count = 2", None),
        ("stripe_bytes = 100000", "a multiple of 65536"),
        ("stripe_count = 1", "a stripe count of 1 is not offered: each file is spread over all 2 nodes"),
    ],
)
def test_profile_of_a_directive_decides_the_layout(bed, options, part):
    script = f"{STRIPED} profile=units\n{ASK}ask stripes $DW_JOB_STRIPED"
    job = node_job(bed, script, name=f"profile-{options.split()[2]}")
    profiles = job.path("configuration/forebay/profiles")
    bed.run("n1", ["mkdir", "-p", profiles], job.user)
    bed.run("n1", ["tee", profiles / "units.toml"], job.user, input=f"engine = 'ceph'\n{options}\n")
    done = job.run(check=False, XDG_CONFIG_HOME=job.path("configuration"))
    if part is None:
        assert done.stdout == "0 262144 2 0\n", done.stderr
    else:
        assert done.returncode != 0 and part in done.stderr
    assert job.leftovers() == []
