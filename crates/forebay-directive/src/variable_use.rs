//! Finds variables of namespaces that a script expands. Reads the text by lines, and never runs it.
//! A script that tests or sets a variable is assumed to handle unset values.

use std::collections::BTreeSet;

use crate::problem::{Origin, Position};

const PREFIXES: [&str; 2] = ["DW_JOB_", "DW_PERSISTENT_"];

/// The first expansion of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VariableUse {
    /// The name, such as `DW_JOB_STRIPED`.
    pub name: String,
    /// The position of the expansion.
    pub position: Position,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mention {
    /// The script uses its value, which is empty if the variable is unset.
    Expanded,
    /// The script uses its value or a default.
    WithDefault,
    /// The script sets or tests it.
    Handled,
    /// Only the name occurs.
    Named,
}

/// Variables expanded without a default, each once, unless an earlier line sets or tests them.
pub fn expanded_variables(script: &str) -> Vec<VariableUse> {
    let mut found: Vec<VariableUse> = Vec::new();
    let mut handled = BTreeSet::new();
    for (index, line) in script.lines().enumerate() {
        let code = without_comment(line);
        // Words that decide about a mention have no name in them, so they begin at the earlier one at the earliest.
        let mut earlier = 0;
        for (at, name) in names(code) {
            let before = &code[std::mem::replace(&mut earlier, at)..at];
            match mention(before, &code[at + name.len()..]) {
                Mention::Handled => {
                    handled.insert(name);
                }
                Mention::Expanded if !handled.contains(name) => {
                    let position =
                        Position { origin: Origin::Script, line: index + 1, column: at + 1 };
                    found.push(VariableUse { name: name.to_owned(), position });
                    handled.insert(name);
                }
                Mention::Expanded | Mention::WithDefault | Mention::Named => {}
            }
        }
    }
    found
}

/// The line up to a comment: a `#` outside quotes that begins a word.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut escaped, mut word_begins) = (None, false, true);
    for (at, c) in line.char_indices() {
        if c == '#' && quote.is_none() && word_begins {
            return &line[..at];
        }
        match quote {
            _ if escaped => escaped = false,
            Some('\'') if c != '\'' => {}
            _ if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            _ => {}
        }
        word_begins = c.is_whitespace() || matches!(c, ';' | '&' | '|' | '(');
    }
    line
}

/// Names of variables of namespaces, with their offsets.
fn names(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let starts =
        code.match_indices("DW_").filter(move |(at, _)| !code[..*at].ends_with(is_of_name));
    starts.filter_map(move |(at, _)| {
        let rest = &code[at..];
        let name = &rest[..rest.find(|c| !is_of_name(c)).unwrap_or(rest.len())];
        let is_known =
            PREFIXES.iter().any(|prefix| name.len() > prefix.len() && name.starts_with(prefix));
        is_known.then_some((at, name))
    })
}

fn mention(before: &str, after: &str) -> Mention {
    if let Some(before) = before.strip_suffix("${") {
        return braced(before, after);
    }
    if before.ends_with("$?") {
        return Mention::Handled; // csh(1)
    }
    if let Some(before) = before.strip_suffix('$') {
        return expanded_or_tested(before);
    }
    let accesses = ["ENV{", "ENV[", "environ["];
    let unquoted = before.trim_end_matches(['"', '\'']);
    if accesses.iter().any(|access| unquoted.ends_with(access)) {
        return Mention::Expanded;
    }
    let last_word = before.split_whitespace().next_back().unwrap_or_default();
    let begins_word = before.is_empty() || before.ends_with([' ', '\t', ';', '&', '|', '(']);
    let is_set = after.starts_with('=') || matches!(last_word, "setenv" | "read" | "for" | "-v");
    if begins_word && is_set { Mention::Handled } else { Mention::Named }
}

/// Classifies `${NAME...`: bash(1), Parameter Expansion.
fn braced(before: &str, after: &str) -> Mention {
    let operator = after.strip_prefix(':').unwrap_or(after);
    match operator.chars().next() {
        Some('=' | '?' | '+') => Mention::Handled,
        Some('-') if operator.starts_with("-}") => Mention::Handled,
        Some('-') => Mention::WithDefault,
        _ => expanded_or_tested(before),
    }
}

/// Recognizes tests such as `[ -n "$NAME" ]`. `before` ends where the expansion begins.
fn expanded_or_tested(before: &str) -> Mention {
    let word = before.trim_end_matches(['"', 'x', 'X', '_']);
    let mut words = word.split_whitespace().rev().peekable();
    words.next_if(|word| word.len() == 2 && word.starts_with('-'));
    words.next_if(|word| *word == "!");
    match words.next() {
        Some("[" | "[[" | "test") if word.ends_with(char::is_whitespace) => Mention::Handled,
        _ => Mention::Expanded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(script: &str) -> Vec<String> {
        let found = expanded_variables(script).into_iter();
        found
            .map(|found| {
                format!("{} {}:{}", found.name, found.position.line, found.position.column)
            })
            .collect()
    }

    #[test]
    fn expansion_without_default_is_found() {
        for line in [
            "rm -rf $DW_JOB_STRIPED/*",
            "cd \"${DW_JOB_STRIPED}\"",
            "echo ${DW_JOB_STRIPED%/}",
            "echo ${#DW_JOB_STRIPED}${DW_JOB_STRIPED}",
            "srun sh -c 'touch $DW_JOB_STRIPED/a'",
            "x=1#$DW_JOB_STRIPED",
            "my $d = $ENV{DW_JOB_STRIPED};",
            "open(os.environ[\"DW_JOB_STRIPED\"])",
            "rm -f \"$DW_JOB_STRIPED/a\"",
            "echo \"it's\" # a comment\ntouch '#' $DW_JOB_STRIPED",
        ] {
            let found = expanded(line);
            assert_eq!(found.len(), 1, "{line}: {found:?}");
            assert!(found[0].starts_with("DW_JOB_STRIPED "), "{line}: {found:?}");
        }
        let two = "cp $DW_JOB_STRIPED/a $DW_PERSISTENT_STRIPED_b/\ncd $DW_JOB_STRIPED\n";
        assert_eq!(expanded(two), ["DW_JOB_STRIPED 1:5", "DW_PERSISTENT_STRIPED_b 1:23"]);
    }

    #[test]
    fn default_test_assignment_and_comment_are_no_expansion() {
        for script in [
            "cd ${DW_JOB_STRIPED:-/scratch}",
            "cd ${DW_JOB_STRIPED:?no burst buffer}; cd $DW_JOB_STRIPED",
            ": ${DW_JOB_STRIPED:=/scratch}\ncd $DW_JOB_STRIPED",
            "if [ -n \"$DW_JOB_STRIPED\" ]; then cd $DW_JOB_STRIPED; fi",
            "if [[ ! -z ${DW_JOB_STRIPED} ]]; then cd $DW_JOB_STRIPED; fi",
            "[ x$DW_JOB_STRIPED != x ] && cd $DW_JOB_STRIPED",
            "if [ -v DW_JOB_STRIPED ]; then cd $DW_JOB_STRIPED; fi",
            "[ \"${DW_JOB_STRIPED:-}\" ] && cd $DW_JOB_STRIPED",
            "if ( $?DW_JOB_STRIPED ) cd $DW_JOB_STRIPED",
            "export DW_JOB_STRIPED=/scratch\ncd $DW_JOB_STRIPED",
            "setenv DW_JOB_STRIPED /scratch\ncd $DW_JOB_STRIPED",
            "# cd $DW_JOB_STRIPED\ntrue # and $DW_JOB_STRIPED",
            "#DW stage_in source=/a destination=$DW_JOB_STRIPED/a type=file",
            "echo $MY_DW_JOB_STRIPED $DW_JOB_ $DW_HOME",
            "printenv DW_JOB_STRIPED",
        ] {
            assert_eq!(expanded(script), [""; 0], "{script}");
        }
    }
}
