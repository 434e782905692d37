//! Names the nodes of a scheduler's job, and builds the command lines that start a process on one of them.
//! Starts only commands of the scheduler that list its nodes.

use std::ffi::OsString;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use forebay_host::process::{command, run_captured};
use forebay_host::{files, system};

use crate::in_a_schedulers_job;

/// The time for a scheduler's command to list the nodes.
const LIST_MAX: Duration = Duration::from_secs(30);
/// Stands for the node in the words of `--launcher`.
const NODE: &str = "{node}";
/// Stands for the number of the node in the Flux instance.
const RANK: &str = "{rank}";

/// How a process is started on a node. Its standard input and output lead here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLauncher {
    /// Its name, or its words.
    name: String,
    /// The words before those of the process. `{node}` stands for the node.
    words: Vec<String>,
    /// Whether a shell on the node splits the words again.
    is_shell: bool,
}

const SRUN: &str = "srun";
const FLUX: &str = "flux";
/// The known launchers: name, words, whether a shell splits the words of the process again.
const LAUNCHERS: [(&str, &str, bool); 6] = [
    (
        SRUN,
        "srun --overlap --nodes=1 --ntasks=1 --nodelist={node} --quiet --unbuffered --mem=0 --export=ALL --mpi=none",
        false,
    ),
    ("blaunch", "blaunch {node}", false),
    ("pbs_tmrsh", "pbs_tmrsh {node}", false),
    (FLUX, "flux exec --rank={rank}", false),
    ("mpiexec", "mpiexec -n 1 --host {node}", false),
    ("ssh", "ssh -o BatchMode=yes -o ServerAliveInterval=5 {node}", true),
];

impl NodeLauncher {
    /// The launcher of this name, or of these words, in which `{node}` stands for the node.
    ///
    /// # Errors
    /// A description of what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        if let Some((name, words, is_shell)) = LAUNCHERS.into_iter().find(|one| one.0 == text) {
            let mut words: Vec<_> = words.split(' ').map(str::to_owned).collect();
            // Without it, and after the end of the job, srun would ask for a new job and wait for it.
            if let (SRUN, Ok(job)) = (name, std::env::var("SLURM_JOB_ID")) {
                words.insert(1, format!("--jobid={job}"));
            }
            return Ok(Self { name: name.to_owned(), words, is_shell });
        }
        let words = shlex::split(text).ok_or("a quote is not closed")?;
        if !words.iter().any(|word| word.contains(NODE)) {
            let names: Vec<_> = LAUNCHERS.iter().map(|one| one.0).collect();
            return Err(format!(
                "write {}, or a command with {NODE} such as 'ssh -p 2222 {NODE}'",
                names.join(", ")
            ));
        }
        let is_shell = words.first().is_some_and(|word| {
            Path::new(word).file_name().is_some_and(|name| name == "ssh" || name == "rsh")
        });
        Ok(Self { name: text.to_owned(), words, is_shell })
    }

    /// The launcher of the scheduler's job; `ssh` outside of a job.
    ///
    /// # Errors
    /// If none of them is installed.
    pub fn choose() -> Result<Self, String> {
        let has = |name: &str| std::env::var_os(name).is_some();
        let of_scheduler = if !in_a_schedulers_job() {
            None
        } else if has("SLURM_JOB_ID") {
            Some(SRUN)
        } else if has("LSB_JOBID") {
            Some("blaunch")
        } else if has("PBS_JOBID") {
            Some("pbs_tmrsh")
        } else if has("FLUX_URI") {
            Some(FLUX)
        } else {
            None
        };
        let names = of_scheduler.into_iter().chain(["ssh"]);
        let found = names.clone().find(|name| system::find_other_program(name).is_some());
        match found {
            Some(name) => Self::parse(name),
            None => {
                let names: Vec<_> = names.collect();
                Err(format!("there is no {} to reach other nodes", names.join(" and no ")))
            }
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The command line that starts these words on a node.
    ///
    /// # Errors
    /// If a word is not UTF-8 and a shell on the node would split it, or Flux does not know the node.
    pub fn command_on(&self, node: &str, words: &[OsString]) -> Result<Vec<OsString>, String> {
        let needs_rank = self.name == FLUX;
        let rank = if needs_rank { flux_rank(node)?.to_string() } else { String::new() };
        let with_node = |word: &String| word.replace(NODE, node).replace(RANK, &rank).into();
        let mut line: Vec<OsString> = self.words.iter().map(with_node).collect();
        for word in words {
            line.push(if self.is_shell { quoted(word)?.into() } else { word.clone() });
        }
        Ok(line)
    }
}

impl NodeLauncher {
    /// The command lines that start the agents of a job on its nodes in this way. `agents` are those of the job: the
    /// first is that of this node, which needs no launcher.
    ///
    /// # Errors
    /// As of [`NodeLauncher::command_on`].
    pub fn on_all(
        &self,
        nodes: &[String],
        agents: &[Vec<String>],
    ) -> Result<Vec<Vec<String>>, String> {
        let Some(agent) = agents.first() else { return Ok(Vec::new()) };
        let words: Vec<OsString> = agent.iter().map(Into::into).collect();
        let on = |node: &String| -> Result<Vec<String>, String> {
            let line = self.command_on(node, &words)?;
            Ok(line.iter().map(|word| word.to_string_lossy().into_owned()).collect())
        };
        let others = nodes.iter().skip(1).map(on);
        std::iter::once(Ok(agent.clone())).chain(others).collect()
    }
}

/// The number of the broker on a node: `flux exec` knows no names.
fn flux_rank(node: &str) -> Result<usize, String> {
    let hosts = flux_hosts()?;
    let unknown = || format!("{node} is no node of this Flux instance: {}", hosts.join(", "));
    hosts.iter().position(|host| host == node).ok_or_else(unknown)
}

/// The nodes of this Flux instance, in the order of its brokers.
pub(crate) fn flux_hosts() -> Result<&'static [String], String> {
    static HOSTS: OnceLock<Result<Vec<String>, String>> = OnceLock::new();
    let list = || lines_of(&[FLUX, "hostlist", "--expand", "--delimiter=\n", "instance"]);
    HOSTS.get_or_init(list).as_deref().map_err(String::clone)
}

fn quoted(word: &OsString) -> Result<String, String> {
    let word = word.to_str().ok_or("a path that is not UTF-8 cannot be passed to a shell")?;
    Ok(shlex::try_quote(word).map_err(|error| error.to_string())?.into_owned())
}

/// The names of the nodes of a scheduler's job, in its order. None outside of a job.
///
/// # Errors
/// If the scheduler does not list them.
pub fn node_names_of_job() -> Result<Option<Vec<String>>, String> {
    if !in_a_schedulers_job() {
        return Ok(None);
    }
    let variable = |name: &str| std::env::var(name).ok();
    let names =
        if let Some(list) = variable("SLURM_JOB_NODELIST").or_else(|| variable("SLURM_NODELIST")) {
            lines_of(&["scontrol", "show", "hostnames", &list])?
        } else if let Some(hosts) = variable("LSB_MCPU_HOSTS") {
            hosts.split_whitespace().step_by(2).map(str::to_owned).collect()
        } else if let Some(list) = variable("PBS_NODEFILE") {
            let text = files::read_lossy(Path::new(&list)).map_err(|error| error.to_string())?;
            text.lines().map(str::to_owned).collect()
        } else if variable("FLUX_URI").is_some() {
            flux_hosts()?.to_vec()
        } else {
            return Ok(None);
        };
    Ok(Some(without_repetitions(names)))
}

/// The names in a file, one a line. Blank lines and what follows `#` are left out.
///
/// # Errors
/// If the file cannot be read, or names no node.
pub fn node_names_in(path: &Path) -> Result<Vec<String>, String> {
    let text = files::read_plain(path).map_err(|error| error.to_string())?;
    let line = |line: &str| {
        let line = line.split('#').next().unwrap_or_default();
        line.split_whitespace().next().map(str::to_owned) // slots and the like may follow
    };
    let names: Vec<_> = text.lines().filter_map(line).collect();
    if names.is_empty() {
        return Err(format!("{} names no node", files::printable(path)));
    }
    Ok(names)
}

fn without_repetitions(names: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for name in names {
        if !name.is_empty() && !kept.contains(&name) {
            kept.push(name);
        }
    }
    kept
}

pub(crate) fn lines_of(words: &[&str]) -> Result<Vec<String>, String> {
    let mut listing = command(words[0]);
    listing.args(&words[1..]);
    match run_captured(listing, LIST_MAX, &|| true) {
        Ok(Some(done)) if done.success => Ok(done.output.lines().map(str::to_owned).collect()),
        Ok(_) => Err(format!("{} does not list the nodes of the job", words.join(" "))),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(launcher: &str, words: &[&str]) -> Vec<String> {
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        let launcher = NodeLauncher::parse(launcher).expect("launcher");
        let line = launcher.command_on("n2", &words).expect("line");
        line.into_iter().map(|word| word.into_string().expect("UTF-8")).collect()
    }

    #[test]
    fn words_are_quoted_only_for_a_shell_on_the_node() {
        let words = ["/a b/forebay", "__node"];
        assert_eq!(line("ssh", &words)[5..], ["n2", "'/a b/forebay'", "__node"]);
        assert_eq!(line("ssh -p 22 {node}", &words)[3..], ["n2", "'/a b/forebay'", "__node"]);
        assert_eq!(
            line("enter {node} --", &words),
            ["enter", "n2", "--", "/a b/forebay", "__node"]
        );
        assert!(line("srun", &words).contains(&"--nodelist=n2".to_owned()));
    }

    #[test]
    fn a_launcher_without_node_is_refused() {
        let error = NodeLauncher::parse("rsh").expect_err("no node");
        assert!(error.contains("{node}") && error.contains("srun"), "{error}");
        NodeLauncher::parse("ssh 'n").expect_err("quote");
    }

    #[test]
    fn a_hostfile_lists_nodes_with_comments_and_slots() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let path = scratch.path().join("hosts");
        let fresh = scratch.path().join("fresh");
        files::write_atomically(&path, &fresh, b"n1 slots=4\n\n# all\nn2 # second\n")
            .expect("write");
        assert_eq!(node_names_in(&path).expect("names"), ["n1", "n2"]);
        files::write_atomically(&path, &fresh, b"# none\n").expect("write");
        node_names_in(&path).expect_err("none");
    }
}
