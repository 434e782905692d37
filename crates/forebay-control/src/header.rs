//! The `#SBATCH` options of a script.

use std::path::PathBuf;

/// What the header asks of the scheduler, as far as it matters without one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    /// `-J`, `--job-name`.
    pub job_name: Option<String>,
    /// `-n`, `--ntasks`.
    pub tasks: Option<u32>,
    /// `-N`, `--nodes`; the least number of a range.
    pub nodes: Option<u32>,
    /// `--ntasks-per-node`.
    pub tasks_per_node: Option<u32>,
    /// `-c`, `--cpus-per-task`.
    pub cpus_per_task: Option<u32>,
    /// `-D`, `--chdir`.
    pub directory: Option<PathBuf>,
    /// `-p`, `--partition`.
    pub partition: Option<String>,
    /// `-A`, `--account`.
    pub account: Option<String>,
    /// Options that have no effect here, as written.
    pub without_effect: Vec<String>,
}

impl Header {
    /// Number of tasks the job asks for: `--ntasks`, else nodes times tasks per node, else 1 for
    /// each node (sbatch's own rule).
    #[must_use]
    pub fn task_count(&self) -> u32 {
        let nodes = self.nodes.unwrap_or(1);
        let per_node = self.tasks_per_node.unwrap_or(1);
        self.tasks.unwrap_or_else(|| nodes.saturating_mul(per_node))
    }

    /// Reads the header block, which ends at the first line that is neither a comment nor blank.
    ///
    /// # Errors
    /// Line number and what is wrong with an option's value.
    pub fn read(script: &str) -> Result<Self, (usize, String)> {
        let mut header = Self::default();
        for (index, line) in script.lines().enumerate() {
            let Some(options) = line.strip_prefix("#SBATCH") else {
                if line.trim().is_empty() || line.starts_with('#') {
                    continue;
                }
                break;
            };
            header
                .take_line(options)
                .map_err(|message| (index + 1, message))?;
        }
        Ok(header)
    }

    fn take_line(&mut self, options: &str) -> Result<(), String> {
        // Quotes and comments are those of a shell, as in sbatch.
        let words = shlex::split(options).ok_or("a quote is not closed")?;
        let mut words = words.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            let (name, mut value) = split_option(word);
            if value.is_none() && words.peek().is_some_and(|next| !next.starts_with('-')) {
                value = words.next();
            }
            self.take(word, name, value)?;
        }
        Ok(())
    }

    fn take(&mut self, word: &str, name: &str, value: Option<&str>) -> Result<(), String> {
        let text = || {
            value
                .map(str::to_owned)
                .ok_or(format!("{name} needs a value"))
        };
        match name {
            "-J" | "--job-name" => self.job_name = Some(text()?),
            "-n" | "--ntasks" => self.tasks = Some(count(name, value)?),
            "-N" | "--nodes" => {
                let least = value.and_then(|range| range.split('-').next());
                self.nodes = Some(count(name, least)?);
            }
            "--ntasks-per-node" => self.tasks_per_node = Some(count(name, value)?),
            "-c" | "--cpus-per-task" => self.cpus_per_task = Some(count(name, value)?),
            "-D" | "--chdir" => self.directory = Some(text()?.into()),
            "-p" | "--partition" => self.partition = Some(text()?),
            "-A" | "--account" => self.account = Some(text()?),
            _ => self.without_effect.push(word.to_owned()),
        }
        Ok(())
    }
}

/// `--name=value` or `-nVALUE` in two; the value is none if it is the next word.
fn split_option(word: &str) -> (&str, Option<&str>) {
    if let Some((name, value)) = word.split_once('=').filter(|_| word.starts_with("--")) {
        return (name, Some(value));
    }
    match word.char_indices().nth(2) {
        Some((at, _)) if word.starts_with('-') && !word.starts_with("--") => {
            (&word[..at], Some(&word[at..]))
        }
        _ => (word, None),
    }
}

fn count(name: &str, value: Option<&str>) -> Result<u32, String> {
    let value = value.unwrap_or("");
    match value.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!(
            "{name} needs a whole number above 0, not \"{value}\""
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_every_spelling_sbatch_takes() {
        let script = "#!/bin/bash\n#SBATCH --partition=workq\n#SBATCH -t 10\n#SBATCH -A k1267\n\
                      #SBATCH --ntasks=1024 --ntasks-per-node=32\n\n# a comment\n#SBATCH -J btio # x\n\
                      #SBATCH -c2 -N 2-4\n#SBATCH --chdir \"/tmp/a b\"\n#SBATCH --exclusive\necho\n#SBATCH -n 7\n";
        let header = Header::read(script).expect("header");
        let expected = Header {
            job_name: Some("btio".into()),
            tasks: Some(1024),
            nodes: Some(2),
            tasks_per_node: Some(32),
            cpus_per_task: Some(2),
            directory: Some("/tmp/a b".into()),
            partition: Some("workq".into()),
            account: Some("k1267".into()),
            without_effect: vec!["-t".into(), "--exclusive".into()],
        };
        assert_eq!(header, expected);
    }

    #[test]
    fn tasks_follow_from_nodes_where_they_are_not_given() {
        for (options, tasks) in [
            ("", 1),
            ("-n 4", 4),
            ("-N 3", 3),
            ("-N 2 --ntasks-per-node=8", 16),
            ("--ntasks-per-node=8", 8),
        ] {
            let header = Header::read(&format!("#SBATCH {options}\n")).expect(options);
            assert_eq!(header.task_count(), tasks, "{options}");
        }
    }

    #[test]
    fn bad_numbers_are_named_with_their_line() {
        for (line, message) in [
            (
                "--ntasks=four",
                "--ntasks needs a whole number above 0, not \"four\"",
            ),
            ("-n0", "-n needs a whole number above 0, not \"0\""),
            ("-N", "-N needs a whole number above 0, not \"\""),
            ("-J", "-J needs a value"),
            ("-J \"x", "a quote is not closed"),
        ] {
            let script = format!("#!/bin/sh\n#SBATCH {line}\n");
            assert_eq!(Header::read(&script), Err((2, message.to_owned())));
        }
    }
}
