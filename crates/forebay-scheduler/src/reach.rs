//! Builds commands that run on another node of a cluster. Starts nothing itself.

use std::ffi::OsString;

use forebay_host::state::directories;
use forebay_host::system;

use crate::in_a_schedulers_job;

const LAUNCHER: &str = "srun";
/// Names the state directory. A remote shell does not pass the variable on.
const STATE: &str = "FOREBAY_STATE";

/// The command line that runs these words on a node of the job or of the cluster.
///
/// # Errors
/// If there is no `srun`.
pub fn launcher_command_on(node: &str, words: Vec<OsString>) -> Result<Vec<OsString>, String> {
    let launcher = system::find_other_program(LAUNCHER).ok_or_else(|| {
        format!("there is no {LAUNCHER} to reach it; use --rsh ssh, or run forebay clean there")
    })?;
    let mut through = vec![launcher.into()];
    let options = ["--nodes=1", "--ntasks=1", "--quiet", "--nodelist", node];
    through.extend(options.map(OsString::from));
    if in_a_schedulers_job() {
        through.push("--overlap".into());
    }
    through.extend(words);
    Ok(through)
}

/// The command of a remote shell, such as `ssh -q`. At least one word.
#[derive(Debug, Clone)]
pub struct RemoteShell(Vec<String>);

impl RemoteShell {
    /// Parses a command.
    ///
    /// # Errors
    /// A description of the syntax error.
    pub fn parse(text: &str) -> Result<Self, String> {
        let words = shlex::split(text).ok_or("a quote is not closed")?;
        if words.is_empty() {
            return Err("write for example ssh".to_owned());
        }
        Ok(Self(words))
    }

    /// The command line that runs these words on a node, quoted for the remote shell.
    ///
    /// # Errors
    /// If a word is not UTF-8.
    pub fn command_on(&self, node: &str, words: Vec<OsString>) -> Result<Vec<OsString>, String> {
        let state = directories().into_iter().next().map(|state| {
            let mut set = OsString::from(format!("{STATE}="));
            set.push(state);
            ["env".into(), set]
        });
        let mut through: Vec<OsString> = self.0.iter().map(OsString::from).collect();
        through.push(node.into());
        for word in state.into_iter().flatten().chain(words) {
            let word = word.into_string().ok();
            let word = word.ok_or("a path that is not UTF-8 cannot be said to it")?;
            let quoted = shlex::try_quote(&word).map_err(|error| error.to_string())?;
            through.push(quoted.into_owned().into());
        }
        Ok(through)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_shell_gets_the_state_directory_from_any_source() {
        let shell = RemoteShell(vec!["ssh".to_owned()]);
        let words = shell.command_on("n2", vec!["forebay".into()]).expect("words");
        let state = directories().swap_remove(0);
        assert_eq!(words[..3], ["ssh", "n2", "env"].map(OsString::from));
        let said = shlex::split(words[3].to_str().expect("UTF-8")).expect("quoted");
        assert_eq!(said, [format!("{STATE}={}", state.display())]);
        assert_eq!(words[4..], [OsString::from("forebay")]);
    }
}
