//! Finds variables of namespaces that a script expands. Reads the text, and never runs it.
//! A script that tests or sets a variable is assumed to handle unset values.

use std::collections::BTreeSet;

use crate::problem::{Origin, Position};
use crate::statements::{Statement, is_assignment, statements};

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
    for statement in statements(script) {
        let mut reader =
            Reader { statement: &statement, at: 0, line_start: 0, line: 0, is_in_test: false };
        for (at, name) in names(statement.text) {
            reader.advance(at);
            let mention = reader.mention(name);
            let is_first = !handled.contains(name);
            match mention {
                // A file with this text is another script.
                Mention::Handled if statement.document.is_some_and(|one| one.is_written) => {}
                Mention::Handled => {
                    handled.insert(name);
                }
                Mention::Expanded if is_first => {
                    found.push(VariableUse { name: name.to_owned(), position: reader.position() });
                    handled.insert(name);
                }
                Mention::Expanded | Mention::WithDefault | Mention::Named => {}
            }
        }
    }
    found
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

/// Commands that set the variables in their words.
const DECLARATIONS: [&str; 5] = ["export", "declare", "local", "readonly", "typeset"];

/// Mentions in the rest of a line that are looked at.
const MENTIONS_MAX: usize = 16;

/// Classifies the mentions in one statement, in their order.
struct Reader<'a> {
    statement: &'a Statement<'a>,
    /// The offset of the mention.
    at: usize,
    /// The offset of its line, and the number of the line in the statement.
    line_start: usize,
    line: usize,
    /// Whether a `[` or `[[` before it is open.
    is_in_test: bool,
}

impl<'a> Reader<'a> {
    /// Goes to the next mention.
    fn advance(&mut self, at: usize) {
        let from = std::mem::replace(&mut self.at, at);
        let text = &self.statement.text[from..at];
        if let Some(last) = text.rfind('\n') {
            self.line += text.matches('\n').count();
            self.line_start = from + last + 1;
        }
        for word in text.split_whitespace() {
            if word.starts_with(']') {
                self.is_in_test = false;
            } else if matches!(word.trim_start_matches(['(', ';', '!']), "[" | "[[") {
                let start = word.as_ptr() as usize - self.statement.text.as_ptr() as usize;
                self.is_in_test |= self.statement.words_before(start).is_empty();
            }
        }
    }

    fn position(&self) -> Position {
        let line = self.statement.line + self.line;
        Position { origin: Origin::Script, line, column: self.at - self.line_start + 1 }
    }

    fn mention(&self, name: &str) -> Mention {
        let text = self.statement.text;
        let (before, after) = (&text[..self.at], &text[self.at + name.len()..]);
        // A name that is completed when the script runs.
        if before.ends_with("\\$") && after.starts_with('$') {
            return Mention::Named;
        }
        let tests = ["$?", "${?", "$+", "${+"]; // csh(1), zshexpn(1)
        if tests.iter().any(|test| before.ends_with(test)) {
            return Mention::Handled;
        }
        let expanded = if before.ends_with("${") {
            braced(after)
        } else if before.ends_with('$') {
            Mention::Expanded
        } else {
            return match accessed(before, after) {
                Some(Mention::Expanded) if is_tested_behind(after, name) => Mention::Handled,
                Some(mention) => mention,
                None => self.set_or_named(after, name),
            };
        };
        let dollar = before.rfind('$').unwrap_or_default();
        if self.statement.is_only_written(dollar) {
            return Mention::Named;
        }
        if expanded == Mention::Expanded && self.is_tested(dollar) {
            return Mention::Handled;
        }
        expanded
    }

    /// Whether it is an operand of `[`, `[[` or test.
    fn is_tested(&self, dollar: usize) -> bool {
        let end_of_command = self.statement.words_before(dollar);
        self.is_in_test || end_of_command.first().is_some_and(|command| *command == "test")
    }

    /// A name without `$`.
    fn set_or_named(&self, after: &str, name: &str) -> Mention {
        let statement = self.statement;
        let text = statement.text;
        let quoted = statement.quoted_from(self.at);
        let before = &text[..self.at];
        let begins_word = before.is_empty()
            || before.ends_with([' ', '\t', '\n', ';', '&', '|', '('])
            || quoted == Some(self.at);
        if !begins_word || (quoted.is_some() && statement.writes(self.at)) {
            return Mention::Named;
        }
        let words = match quoted {
            None => statement.words_before(self.at),
            // A script in quotes, as for `sh -c`.
            Some(from) => {
                let command = text[from..self.at].rsplit([';', '&', '|', '(', '\n']).next();
                command.unwrap_or_default().split_whitespace().collect()
            }
        };
        let command = words.iter().find(|word| !is_assignment(word));
        let is_set = match command {
            Some(&"printf") => before.trim_end().ends_with(" -v"),
            _ if before.trim_end().ends_with(" -v") => self.is_tested(self.at),
            Some(_) if words.contains(&"env") => after.starts_with('='),
            None => after.starts_with('='),
            Some(command) if DECLARATIONS.contains(command) => after.starts_with('='),
            Some(&("setenv" | "read" | "for")) => true,
            Some(_) => false,
        };
        if is_set && !self.expands_itself(after, name) { Mention::Handled } else { Mention::Named }
    }

    /// Whether the value behind a name expands the name itself.
    fn expands_itself(&self, after: &str, name: &str) -> bool {
        let start = self.at + name.len();
        let is_end = |(at, c): &(usize, char)| {
            (c.is_whitespace() || matches!(c, ';' | '&' | '|'))
                && self.statement.quoted_from(start + at) == self.statement.quoted_from(start)
        };
        let end = after.char_indices().find(is_end).map_or(after.len(), |(at, _)| at);
        let value = &after[..end];
        names(value).any(|(at, used)| {
            let rest = &value[at + used.len()..];
            let is_expanded = value[..at].ends_with('$')
                || (value[..at].ends_with("${") && braced(rest) == Mention::Expanded);
            used == name && is_expanded
        })
    }
}

/// Classifies `${NAME...`: bash(1), Parameter Expansion.
fn braced(after: &str) -> Mention {
    let operator = after.strip_prefix(':').unwrap_or(after);
    match operator.chars().next() {
        Some('=' | '?' | '+') => Mention::Handled,
        Some('-') if operator.starts_with("-}") => Mention::Handled,
        Some('-') => Mention::WithDefault,
        _ => Mention::Expanded,
    }
}

/// Whether the rest of the line tests the name, as in `chdir $ENV{NAME} if exists $ENV{NAME}`.
fn is_tested_behind(after: &str, name: &str) -> bool {
    let line = after.split('\n').next().unwrap_or_default();
    let mut mentions = names(line).take(MENTIONS_MAX).filter(|(_, used)| *used == name);
    mentions
        .any(|(at, _)| accessed(&line[..at], &line[at + name.len()..]) == Some(Mention::Handled))
}

/// Classifies a name in the environment of Perl, Python or Ruby.
fn accessed(before: &str, after: &str) -> Option<Mention> {
    let before = before.trim_end_matches(['"', '\'']);
    let after = after.trim_start_matches(['"', '\'']).trim_start();
    let tests = ["in os.environ", "not in os.environ", "in environ", "not in environ"];
    if before.ends_with("environ.setdefault(") || tests.iter().any(|test| after.starts_with(test)) {
        return Some(Mention::Handled);
    }
    let accesses = ["ENV{", "ENV[", "environ["];
    let before = accesses.iter().find_map(|access| before.strip_suffix(access))?;
    let before = before.trim_end_matches(['$', '(']).trim_end();
    let after = after.trim_start_matches(['}', ']']).trim_start();
    let is_tested = before.ends_with("exists") || before.ends_with("defined");
    let is_set = after.starts_with("||=") || after.starts_with("//=");
    let is_set =
        is_set || (after.starts_with('=') && !after.starts_with("==") && !after.starts_with("=~"));
    if is_tested || is_set {
        return Some(Mention::Handled);
    }
    let has_default = ["||", "//", "or "].iter().any(|operator| after.starts_with(operator));
    Some(if has_default { Mention::WithDefault } else { Mention::Expanded })
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
            "echo DW_JOB_STRIPED=$DW_JOB_STRIPED\nrm -rf $DW_JOB_STRIPED/*",
            "export DW_JOB_STRIPED=$DW_JOB_STRIPED; rm $DW_JOB_STRIPED/*",
            "DW_JOB_STRIPED=\"a b ${DW_JOB_STRIPED%/}\"; rm $DW_JOB_STRIPED/*",
            "echo \"x\" DW_JOB_STRIPED=1\nrm $DW_JOB_STRIPED/*",
            "echo \"x; DW_JOB_STRIPED=1\"\nrm $DW_JOB_STRIPED/*",
            "echo 'export DW_JOB_STRIPED=/a' > b.sh\nrm $DW_JOB_STRIPED/*",
            "cat > b.sh <<EOF\nexport DW_JOB_STRIPED=/a\nEOF\nrm $DW_JOB_STRIPED/*",
            "echo $(date) DW_JOB_STRIPED=1; rm $DW_JOB_STRIPED/*",
            "x=\"$(cat <<'EOF'\nit's\nEOF\n)\"\nrm $DW_JOB_STRIPED/*",
            "x=\"$(cat <<'EOF'\n(\nEOF\n) DW_JOB_STRIPED=1\"\nrm $DW_JOB_STRIPED/*",
            "echo [ a ]; echo [ $DW_JOB_STRIPED/* ]",
            "[ -f a ] && rm $DW_JOB_STRIPED/*",
            "eval ls \\$DW_JOB_STRIPED/*",
            "echo 'ls $DW_JOB_STRIPED' | bash",
            "bash <<'EOF'\nls $DW_JOB_STRIPED\nEOF",
            "cat > b.sh <<EOF\nls $DW_JOB_STRIPED\nEOF",
            "#!/usr/bin/python3\n# it's\nprint(os.environ['DW_JOB_STRIPED'])",
        ] {
            let found = expanded(line);
            assert_eq!(found.len(), 1, "{line}: {found:?}");
            assert!(found[0].starts_with("DW_JOB_STRIPED "), "{line}: {found:?}");
        }
        let two = "cp $DW_JOB_STRIPED/a $DW_PERSISTENT_STRIPED_b/\ncd $DW_JOB_STRIPED\n";
        assert_eq!(expanded(two), ["DW_JOB_STRIPED 1:5", "DW_PERSISTENT_STRIPED_b 1:23"]);
    }

    #[test]
    fn text_that_a_shell_runs_is_an_expansion() {
        for script in [
            "cat > c.sh <<EOF\nrm -rf '$DW_JOB_STRIPED'/*\nEOF\nbash c.sh",
            "cat > pw.in <<EOF\noutdir='$DW_JOB_STRIPED/'\nEOF",
            "{ echo 'rm $DW_JOB_STRIPED/*'; } | bash",
            "(echo 'rm $DW_JOB_STRIPED/*') 2>&1 | bash",
            "for i in 1; do echo 'rm $DW_JOB_STRIPED/*'; done | bash",
            "for i in 1; do\necho 'rm $DW_JOB_STRIPED/*'\ndone | bash",
            "while true; do\ncat <<'EOF' > a\nrm $DW_JOB_STRIPED/*\nEOF\ndone 2>&1 | bash",
            "{ echo 'rm $DW_JOB_STRIPED/*'\n} > >(bash)",
            "echo 'rm $DW_JOB_STRIPED/*' | tee log | bash",
            "echo 'rm $DW_JOB_STRIPED/*' |\nbash",
            "echo 'rm $DW_JOB_STRIPED/*' $(date) | bash",
            "bash <(echo 'rm $DW_JOB_STRIPED/*')",
            "bash <(\necho 'rm $DW_JOB_STRIPED/*'\n)",
            "eval $(date; echo 'rm $DW_JOB_STRIPED/*')",
            "eval `date; echo 'rm $DW_JOB_STRIPED/*'`",
            "echo 'rm $DW_JOB_STRIPED/*' > >(bash)",
            "echo \"n: $(bash -c \"rm -rf \\$DW_JOB_STRIPED/*\")\"",
            "echo \"$(bash <<'EOF'\nrm $DW_JOB_STRIPED/*\nEOF\n)\" > a",
            "echo start \\\n# don't\nrm $DW_JOB_STRIPED/*\necho end \\\n# isn't",
            "DW_JOB_STRIPED=$DW_JOB_ABéé; cd $DW_JOB_AB",
        ] {
            let found = expanded(script);
            assert_eq!(found.len(), 1, "{script}: {found:?}");
        }
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
            "A='b c' DW_JOB_STRIPED=${DW_JOB_STRIPED:-/a}; cd $DW_JOB_STRIPED",
            "declare -x DW_JOB_STRIPED=/a\ncd $DW_JOB_STRIPED",
            "case $A in\nb) DW_JOB_STRIPED=/a;; esac; cd $DW_JOB_STRIPED",
            "if ( ! $?A ) setenv DW_JOB_STRIPED /a\ncd $DW_JOB_STRIPED",
            "srun env DW_JOB_STRIPED=/a sh -c 'cd $DW_JOB_STRIPED'",
            "printf -v DW_JOB_STRIPED %s /a; cd $DW_JOB_STRIPED",
            "f() { DW_JOB_STRIPED=/a; }; f; cd $DW_JOB_STRIPED",
            "sh -c 'DW_JOB_STRIPED=/a; cd $DW_JOB_STRIPED'",
            "[[ -n \"$A\" && -n \"$DW_JOB_STRIPED\" ]] && cd $DW_JOB_STRIPED",
            "if [ a = 1 -a -n \"$DW_JOB_STRIPED\" ]; then cd $DW_JOB_STRIPED; fi",
            "if test -n a && test -n \"$DW_JOB_STRIPED\"; then cd $DW_JOB_STRIPED; fi",
            "if ( ${?DW_JOB_STRIPED} ) cd $DW_JOB_STRIPED",
            "(( ${+DW_JOB_STRIPED} )) && cd $DW_JOB_STRIPED",
            "if \"DW_JOB_STRIPED\" in os.environ: os.chdir(os.environ[\"DW_JOB_STRIPED\"])",
            "if (exists $ENV{DW_JOB_STRIPED}) { chdir $ENV{DW_JOB_STRIPED} }",
            "if (defined($ENV{'DW_JOB_STRIPED'})) { chdir $ENV{'DW_JOB_STRIPED'} }",
            "my $d = $ENV{DW_JOB_STRIPED} || '/tmp';",
            "chdir $ENV{DW_JOB_STRIPED} if exists $ENV{DW_JOB_STRIPED};",
            "d = os.environ['DW_JOB_STRIPED'] if 'DW_JOB_STRIPED' in os.environ else '/tmp'",
            "my $d = $ENV{\"DW_JOB_STRIPED\"} // '/tmp';",
            "$ENV{DW_JOB_STRIPED} //= '/tmp'; chdir $ENV{DW_JOB_STRIPED}",
            "cat > b.sh <<'EOF'\ncd $DW_JOB_STRIPED\nEOF",
            "cat <<EOF | tee b.sh\ncd \\$DW_JOB_STRIPED\nEOF",
            "echo \"cd\n\\$DW_JOB_STRIPED\" > b.sh",
            "echo 'cd $DW_JOB_STRIPED' >> b.sh 2>&1",
            "eval echo \\$DW_PERSISTENT_STRIPED_${NAME}",
            "exec > >(tee log) 2>&1\necho 'cd $DW_JOB_STRIPED' | tee a | tee b.sh",
            "for i in 1; do\necho 'cd $DW_JOB_STRIPED'\ndone > b.sh",
            "cat > b.sh <<EOF\ncd '\\$DW_JOB_STRIPED'\nEOF",
            "[ -n \"$A\" ] && \\\n [ -n \"$DW_JOB_STRIPED\" ] && cd $DW_JOB_STRIPED",
            "true && \\\n export DW_JOB_STRIPED=/a\ncd $DW_JOB_STRIPED",
        ] {
            assert_eq!(expanded(script), [""; 0], "{script}");
        }
    }
}
