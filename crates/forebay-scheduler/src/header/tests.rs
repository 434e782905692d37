use super::*;

fn read(sentinel: &str, options: &str) -> Header {
    let script = format!("#!/bin/sh\n{sentinel} {options}\necho\n{sentinel} -n 77\n");
    Header::read(&script).unwrap_or_else(|error| panic!("{options}: {error:?}"))
}

fn minutes(minutes: u64) -> Option<Duration> {
    Some(Duration::from_secs(60 * minutes))
}

#[test]
fn options_are_read_in_every_spelling_sbatch_takes() {
    let script = "#!/bin/bash\n#SBATCH --partition=workq\n#SBATCH -t 10\n#SBATCH -A k1267\n\
                  #SBATCH --ntasks=1024 --ntasks-per-node=32\n\n# a comment\n#SBATCH -J btio # x\n\
                  #SBATCH -c2 -N 2-4 --mem=4G -o out_%j -e err_%j\n#SBATCH --chdir \"/tmp/a b\"\n\
                  #SBATCH --bb=\"capacity=1GiB type=scratch\" --bbf=bb.conf\n#SBATCH -C nvme\n\
                  ##SBATCH -n 5\n#SBATCHES -n 6\n#SBATCH --exclusive\necho\n#SBATCH -n 7\n";
    let header = Header::read(script).expect("header");
    let expected = Header {
        scheduler: Some(Scheduler::Slurm),
        job_name: Some("btio".into()),
        tasks: Some(1024),
        nodes: Some(2),
        tasks_per_node: Some(32),
        cpus_per_task: Some(2),
        directory: Some("/tmp/a b".into()),
        partition: Some("workq".into()),
        account: Some("k1267".into()),
        output: Some("out_%j".into()),
        error: Some("err_%j".into()),
        time_limit: minutes(10),
        memory_bytes: Some(4 << 30),
        bb: Some("capacity=1GiB type=scratch".into()),
        bbf: Some("bb.conf".into()),
        node_local: true,
        spectral: false,
        ignored_options: ["--mem", "-o", "-e", "--exclusive"].map(String::from).into(),
        ignored_schedulers: vec![],
    };
    assert_eq!(header, expected);
}

#[test]
fn indented_comment_does_not_end_the_header() {
    let header = Header::read("#!/bin/bash\n  # a comment\n#SBATCH -n 3\n x\n#SBATCH -n 4\n");
    assert_eq!(header.expect("header").tasks, Some(3));
}

#[test]
fn first_component_of_a_heterogeneous_job_is_read() {
    for word in ["hetjob", "packjob"] {
        let header = Header::read(&format!("#SBATCH -n 4\n#SBATCH {word}\n#SBATCH -n 1 -J b\n"));
        let header = header.expect("header");
        assert_eq!((header.tasks, &header.job_name), (Some(4), &None));
        let note = format!("#SBATCH options without effect here: {word} and the lines after it");
        assert_eq!(header.notes(), [note]);
    }
}

#[test]
fn lsf_header_of_summit_is_read() {
    let script = "#!/bin/bash\n#BSUB -P projid\n#BSUB -J nas_btio[1-4]%2\n#BSUB -o nas_btio.o%J\n\
                  #BSUB -eo e -W 10 -nnodes 2\n#BSUB -n16 -q debug -cwd \"/a b\"\n\
                  #BSUB -R \"span[ptile=8]\" -N\n#BSUB -alloc_flags \"smt4 NVME maximizegpfs\"\n";
    let header = Header::read(script).expect("header");
    let expected = Header {
        scheduler: Some(Scheduler::Lsf),
        job_name: Some("nas_btio".into()),
        tasks: Some(16),
        nodes: Some(2),
        directory: Some("/a b".into()),
        partition: Some("debug".into()),
        account: Some("projid".into()),
        output: Some("nas_btio.o%J".into()),
        error: Some("e".into()),
        time_limit: minutes(10),
        node_local: true,
        spectral: false,
        ignored_options: ["-J [1-4]%2", "-o", "-eo", "-R", "-N", "-alloc_flags smt4 maximizegpfs"]
            .map(String::from)
            .into(),
        ..Header::default()
    };
    assert_eq!(header, expected);
}

#[test]
fn pbs_headers_of_both_kinds_are_read() {
    let script = "#PBS -N wrf -q regular -A m123 -V\n#PBS -l nodes=2:ppn=16,walltime=00:30:00\n\
                  #PBS -lmem=4gb -j oe -o out\n#PBS -d /work -l place=scatter:excl\n";
    let header = Header::read(script).expect("header");
    let expected = Header {
        scheduler: Some(Scheduler::Pbs),
        job_name: Some("wrf".into()),
        tasks: Some(32),
        nodes: Some(2),
        tasks_per_node: Some(16),
        directory: Some("/work".into()),
        partition: Some("regular".into()),
        account: Some("m123".into()),
        output: Some("out".into()),
        time_limit: minutes(30),
        memory_bytes: Some(4 << 30),
        ignored_options: ["-V", "-l mem", "-j", "-o", "-l place=scatter:excl"]
            .map(String::from)
            .into(),
        ..Header::default()
    };
    assert_eq!(header, expected);
}

#[test]
fn flux_header_is_read_with_any_comment_sign() {
    for sentinel in ["#FLUX:", "# flux:", "--flux:", "flux:"] {
        let options =
            "-N2 -n 16 -c3 --queue=batch -t 2h --job-name=app001 --output=o --cwd=/w -B ecp -x";
        let header = read(sentinel, options);
        let expected = Header {
            scheduler: Some(Scheduler::Flux),
            job_name: Some("app001".into()),
            tasks: Some(16),
            nodes: Some(2),
            cpus_per_task: Some(3),
            directory: Some("/w".into()),
            partition: Some("batch".into()),
            account: Some("ecp".into()),
            output: Some("o".into()),
            time_limit: minutes(120),
            ignored_options: ["--output", "-x"].map(String::from).into(),
            ..Header::default()
        };
        assert_eq!(header, expected, "{sentinel}");
    }
    for prose in
        ["# influx: a lot", "# what flux: is", "#flux -n 3", "# flux: it's heat", "# flux:"]
    {
        let header = Header::read(&format!("{prose}\n")).expect(prose);
        assert_eq!(header, Header::default(), "{prose}");
    }
}

#[test]
fn slurm_or_else_the_first_of_two_schedulers_is_used() {
    let slurm =
        Header::read("#PBS -l walltime=never\n#BSUB -n x\n#SBATCH -n 3 -H\n").expect("slurm");
    assert_eq!((slurm.scheduler, slurm.tasks), (Some(Scheduler::Slurm), Some(3)));
    assert_eq!(
        slurm.notes(),
        [
            "#SBATCH options without effect here: -H",
            "#PBS lines have no effect, since the script has #SBATCH lines too",
            "#BSUB lines have no effect, since the script has #SBATCH lines too",
        ]
    );
    let lsf = Header::read("#BSUB -n 2\n#PBS -N x\n").expect("lsf");
    assert_eq!(
        (lsf.scheduler, lsf.ignored_schedulers),
        (Some(Scheduler::Lsf), vec![Scheduler::Pbs])
    );
    assert_eq!(Header::default().notes(), [""; 0]);
}

#[test]
fn tasks_default_to_nodes_times_tasks_per_node() {
    for (sentinel, options, tasks) in [
        ("#SBATCH", "", 1),
        ("#SBATCH", "-n 4", 4),
        ("#SBATCH", "-N 3", 3),
        ("#SBATCH", "-N 2 --ntasks-per-node=8", 16),
        ("#SBATCH", "-N 2 --tasks-per-node=8", 16),
        ("#MSUB", "-l nodes=2:ppn=16,walltime=00:30:00", 32),
        ("#SBATCH", "--ntasks-per-node=8", 8),
        ("#BSUB", "-nnodes 2", 2),
        ("#BSUB", "-n 4,8", 4),
        ("#PBS", "-l nodes=3", 3),
        ("#PBS", "-l select=2:ncpus=16:mpiprocs=4:ompthreads=4+1:ncpus=4", 9),
        ("#PBS", "-l select=ncpus=8:mpiprocs=8", 8),
        ("#PBS", "-l nodes=n01:ppn=4+n02:ppn=2", 6),
        ("#PBS", "-l mppwidth=48,mppnppn=24", 48),
        ("# flux:", "-N4", 4),
    ] {
        assert_eq!(read(sentinel, options).task_count(), tasks, "{options}");
    }
}

#[test]
fn time_limits_are_read() {
    let day = 24 * 60;
    for (sentinel, option, limit) in [
        ("#SBATCH", "-t 30", minutes(30)),
        ("#SBATCH", "--time=10:30", Some(Duration::from_secs(630))),
        ("#SBATCH", "-t 1:30:00", minutes(90)),
        ("#SBATCH", "-t 1-12", minutes(day + 12 * 60)),
        ("#SBATCH", "-t 1-12:30", minutes(day + 12 * 60 + 30)),
        ("#SBATCH", "-t 0-0:00:30", Some(Duration::from_secs(30))),
        ("#SBATCH", "-t 0", None),
        ("#SBATCH", "-t unlimited", None),
        ("#SBATCH", "-t INFINITE", None),
        ("#BSUB", "-W 10", minutes(10)),
        ("#BSUB", "-W 2:10/summit", minutes(130)),
        ("#BSUB", "-W2:10", minutes(130)),
        ("#PBS", "-l walltime=90", Some(Duration::from_secs(90))),
        ("#PBS", "-l walltime=1:30", Some(Duration::from_secs(90))),
        ("#PBS", "-l walltime=36:00:00.5", minutes(36 * 60)),
        ("#FLUX:", "-t 5", minutes(5)),
        ("#FLUX:", "-t 0.5", Some(Duration::from_secs(30))),
        ("#FLUX:", "-t 10s", Some(Duration::from_secs(10))),
        ("#FLUX:", "-t 5m", minutes(5)),
        ("#FLUX:", "--time=1.5h", minutes(90)),
        ("#FLUX:", "-t 1d", minutes(day)),
        ("#FLUX:", "-t 0", None),
    ] {
        assert_eq!(read(sentinel, option).time_limit, limit, "{sentinel} {option}");
    }
}

#[test]
fn memory_sizes_are_read() {
    for (sentinel, option, bytes) in [
        ("#SBATCH", "--mem=100", 100 << 20),
        ("#SBATCH", "--mem=4G", 4 << 30),
        ("#SBATCH", "--mem=512K", 512 << 10),
        ("#SBATCH", "--mem=0", 0),
        ("#PBS", "-l mem=2tb", 2 << 40),
        ("#PBS", "-l mem=300b", 300),
        ("#PBS", "-l mem=300", 300),
    ] {
        let expected = Some(bytes).filter(|bytes| *bytes > 0);
        assert_eq!(read(sentinel, option).memory_bytes, expected, "{option}");
    }
}

#[test]
fn node_local_storage_is_read() {
    for (sentinel, option, node_local, ignored_options) in [
        ("#BSUB", "-alloc_flags nvme", true, ""),
        ("#BSUB", "-alloc_flags spectral", true, ""),
        ("#BSUB", "-alloc_flags \"smt4 maximizegpfs\"", false, "-alloc_flags smt4 maximizegpfs"),
        ("#SBATCH", "-C NVME", true, ""),
        ("#SBATCH", "--constraint=\"[haswell|knl]&nvme\"", true, "--constraint haswell knl"),
        ("#SBATCH", "-C nvme_big", false, "-C nvme_big"),
    ] {
        let header = read(sentinel, option);
        assert_eq!(header.node_local, node_local, "{option}");
        assert_eq!(header.spectral, option.contains("spectral"), "{option}");
        assert_eq!(header.ignored_options.join(" "), ignored_options, "{option}");
    }
}

#[test]
fn bad_values_are_named_with_their_line() {
    let number = "needs a whole number above 0, not";
    for (line, message) in [
        ("#SBATCH --ntasks=four", format!("--ntasks {number} \"four\"")),
        ("#SBATCH -n0", format!("-n {number} \"0\"")),
        ("#SBATCH -N", format!("-N {number} \"\"")),
        ("#SBATCH -J", "-J needs a value".into()),
        ("#SBATCH -J \"x", "a quote is not closed".into()),
        ("#SBATCH -t soon", "-t needs a time, such as 30, 1:30:00 or 1-12, not \"soon\"".into()),
        (
            "#SBATCH -t 1:2:3:4",
            "-t needs a time, such as 30, 1:30:00 or 1-12, not \"1:2:3:4\"".into(),
        ),
        ("#SBATCH --mem=much", "--mem needs a size such as 4G, not \"much\"".into()),
        ("#BSUB -nnodes two", format!("-nnodes {number} \"two\"")),
        ("#BSUB -W 1:2:3", "-W needs a time, [hours:]minutes, not \"1:2:3\"".into()),
        ("#PBS -l nodes=2:ppn=x", format!("-l nodes, ppn {number} \"x\"")),
        ("#PBS -l select=0:ncpus=1", format!("-l select {number} \"0\"")),
        (
            "#PBS -l walltime=1h",
            "-l walltime needs a time, [[hours:]minutes:]seconds, not \"1h\"".into(),
        ),
        ("#PBS -l", "-l needs a value".into()),
        ("# flux: -N -n 4", format!("-N {number} \"\"")),
        ("# flux: -t 5x", "-t needs a time, minutes or such as 30s, 1.5h, 2d, not \"5x\"".into()),
    ] {
        let script = format!("#!/bin/sh\n{line}\n");
        assert_eq!(Header::read(&script), Err((2, message)), "{line}");
    }
}

#[test]
fn lines_after_a_bare_continued_directive_are_read() {
    let script = "#!/bin/bash\n#SBATCH -n 2\n#DW jobdw capacity=1G \\\n  access_mode=striped \\\n type=scratch\n\
                  #SBATCH -t 10\nx=1\n#SBATCH -n 7\n";
    let header = Header::read(script).expect("header");
    assert_eq!((header.tasks, header.time_limit), (Some(2), minutes(10)));
    let plain = "#!/bin/bash\n#DW jobdw capacity=1G\naccess_mode=striped\n#SBATCH -n 7\n";
    assert_eq!(Header::read(plain).expect("header").tasks, None);
}
