//! Finds variables of namespaces that a script expands. Reads the text, and never runs it.
//! A script that tests or sets a variable is assumed to handle unset values.

use std::collections::BTreeSet;

use crate::problem::{Origin, Position};
use crate::statements::{COMMAND_BYTES_MAX, Statement, is_assignment, statements};

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
    /// As before, but only for this statement or here-document.
    HandledHere,
    /// Only the name occurs.
    Named,
}

/// Variables expanded without a default, each once, unless an earlier line sets or tests them.
pub fn expanded_variables(script: &str) -> Vec<VariableUse> {
    let mut found: Vec<VariableUse> = Vec::new();
    let mut handled = BTreeSet::new();
    let mut handled_here = BTreeSet::new();
    for statement in statements(script) {
        if statement.document.is_none() && !statement.begins_in_subshell() {
            handled_here.clear();
        }
        let mut reader =
            Reader { statement: &statement, at: 0, line_start: 0, line: 0, test: None };
        for (at, name) in names(statement.text) {
            reader.advance(at);
            let mention = reader.mention(name);
            let is_first = !handled.contains(name) && !handled_here.contains(name);
            match mention {
                // A file with this text is another script.
                Mention::Handled | Mention::HandledHere
                    if statement.document.is_some_and(|one| one.is_written) => {}
                Mention::Handled if statement.document.is_none() => {
                    handled.insert(name);
                }
                Mention::Handled | Mention::HandledHere => {
                    handled_here.insert(name);
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

/// Commands that test a variable.
const TESTS: [&str; 3] = ["[", "[[", "test"];

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
    /// The `[` or `[[` that is open before it.
    test: Option<&'a str>,
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
            let start = word.as_ptr() as usize - self.statement.text.as_ptr() as usize;
            let command = word.trim_start_matches(['(', ';', '!']);
            let runs = word.find("$(").or_else(|| word.find('`')).map(|at| start + at);
            if word.starts_with(']')
                || runs.is_some_and(|at| self.statement.quoted_from(at).is_none())
            {
                self.test = None;
            } else if matches!(command, "[" | "[[") && self.statement.words_before(start).is_empty()
            {
                self.test = Some(command);
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
        match expanded {
            Mention::Expanded | Mention::WithDefault => {
                self.tested(dollar, name).unwrap_or(expanded)
            }
            mention => mention,
        }
    }

    /// Classifies an expansion that is a whole operand of a test.
    fn tested(&self, dollar: usize, name: &str) -> Option<Mention> {
        let (statement, text) = (self.statement, self.statement.text);
        let is_of_operand = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '"');
        let before = text[..dollar].trim_end_matches(is_of_operand);
        let after = &text[self.at + name.len()..];
        let closed = [":-}", "-}", "}"].iter().find_map(|end| after.strip_prefix(end));
        let after = closed.unwrap_or(after).trim_start_matches(is_of_operand);
        let is_end = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | ')');
        if !before.ends_with(char::is_whitespace)
            || !(after.is_empty() || after.starts_with(is_end))
        {
            return None;
        }
        let (start, end) = (before.len(), text.len() - after.len());
        let quoted = statement.quoted(dollar);
        let script = quoted.as_ref().filter(|quoted| statement.is_script(quoted.start));
        let (test, mention) = if let Some(script) = script {
            let words = statement.words_in_script(script.start, start)?;
            let is_in_quotes = words.concat().matches('"').count() % 2 == 1;
            (words.first().copied().filter(|_| !is_in_quotes)?, Mention::HandledHere)
        } else {
            let is_part = quoted.is_some_and(|quoted| start >= quoted.start || end <= quoted.end);
            let first = || statement.words_before(start).first().copied();
            (self.test.or_else(first).filter(|_| !is_part)?, Mention::Handled)
        };
        // Without quotes, `[ -d $NAME ]` is `[ -d ]`, which is true.
        let option = before.split_whitespace().next_back().filter(|_| start == dollar);
        let is_true =
            test != "[[" && option.is_some_and(|word| word.starts_with('-') && word != "-z");
        (TESTS.contains(&test) && !is_true).then_some(mention)
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
        let words = match quoted {
            None => Some(statement.words_before(self.at)),
            Some(from) if statement.is_script(from) => statement.words_in_script(from, self.at),
            Some(from) if from == self.at && from > 0 => Some(statement.words_before(from - 1)),
            Some(_) => None,
        };
        let Some((words, value)) = words.zip(self.value(after, name)).filter(|_| begins_word)
        else {
            return Mention::Named;
        };
        let command = words.iter().find(|word| !is_assignment(word));
        let is_assigned = after.starts_with('=');
        let is_set = match command {
            Some(&"printf") => before.trim_end().ends_with(" -v"),
            _ if before.trim_end().ends_with(" -v") => {
                self.test.is_some() || words.first().is_some_and(|word| TESTS.contains(word))
            }
            None => is_assigned,
            Some(_) if words.contains(&"env") => is_assigned,
            Some(command) if DECLARATIONS.contains(command) => is_assigned,
            Some(command @ &("setenv" | "for")) => words.last() == Some(command),
            Some(&"read") => true,
            Some(_) => false,
        };
        if !is_set || expands(value, name) {
            return Mention::Named;
        }
        let is_for_a_command = command.is_none() && is_before_command(&after[value.len()..]);
        let is_here = is_for_a_command
            || words.contains(&"env")
            || quoted.is_some_and(|from| statement.is_script(from))
            || statement.is_in_subshell(self.at);
        if is_here { Mention::HandledHere } else { Mention::Handled }
    }

    /// The text behind a name to the end of the word. Nothing of a long one.
    fn value<'t>(&self, after: &'t str, name: &str) -> Option<&'t str> {
        let start = self.at + name.len();
        let quoted = self.statement.quoted_from(start);
        let (mut parentheses, mut in_backticks) = (0_usize, false);
        for (at, c) in after.char_indices().take(COMMAND_BYTES_MAX) {
            if self.statement.quoted_from(start + at) != quoted {
                continue;
            }
            match c {
                '(' => parentheses += 1,
                ')' => parentheses = parentheses.saturating_sub(1),
                '`' => in_backticks = !in_backticks,
                _ if parentheses > 0 || in_backticks => {}
                ';' | '&' | '|' => return Some(&after[..at]),
                _ if c.is_whitespace() => return Some(&after[..at]),
                _ => {}
            }
        }
        (after.len() < COMMAND_BYTES_MAX).then_some(after)
    }
}

/// Whether a value expands a name.
fn expands(value: &str, name: &str) -> bool {
    names(value).any(|(at, used)| {
        let is_expanded = value[..at].ends_with('$')
            || (value[..at].ends_with("${")
                && braced(&value[at + used.len()..]) == Mention::Expanded);
        used == name && is_expanded
    })
}

/// Whether a command is behind an assignment: the value is for that command only.
fn is_before_command(rest: &str) -> bool {
    let end = rest.char_indices().nth(COMMAND_BYTES_MAX).map_or(rest.len(), |(at, _)| at);
    let mut commands = rest[..end].split([';', '&', '|', ')', '\n']);
    let mut words = commands.next().unwrap_or_default().split_whitespace();
    let is_cut = end < rest.len() && commands.next().is_none();
    is_cut || words.any(|word| !is_assignment(word))
}

/// Classifies `${NAME...`: bash(1), Parameter Expansion.
fn braced(after: &str) -> Mention {
    let operator = after.strip_prefix(':').unwrap_or(after);
    match operator.chars().next() {
        Some('=' | '?' | '+') => Mention::Handled,
        // With an empty default, a path would begin at the root.
        Some('-') if is_path_behind(operator.strip_prefix("-}")) => Mention::Expanded,
        Some('-') => Mention::WithDefault,
        _ => Mention::Expanded,
    }
}

fn is_path_behind(rest: Option<&str>) -> bool {
    rest.is_some_and(|rest| rest.trim_start_matches('"').starts_with('/'))
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
    fn test_or_setting_of_another_command_does_not_count() {
        for script in [
            "if [ \"$(ls -A $DW_JOB_STRIPED)\" ]; then true; fi",
            "[ \"$(rm $DW_JOB_STRIPED/*; echo ok)\" = ok ]",
            "[ \"$(ls $DW_JOB_STRIPED )\" ]",
            "[ $(ls $DW_JOB_STRIPED ) ]",
            "[ -d $DW_JOB_STRIPED/ ]",
            "[ -d $DW_JOB_STRIPED ]",
            "test -n $DW_JOB_STRIPED",
            "[ \"in $DW_JOB_STRIPED\" ]",
            "sh -c '[ \"in $DW_JOB_STRIPED\" ]'",
            "sh -c '[ -n \"$DW_JOB_STRIPED\" ]'",
            "env | grep 'DW_JOB_STRIPED='",
            "for v in DW_JOB_PRIVATE DW_JOB_STRIPED; do true; done",
            "DW_JOB_STRIPED=$(realpath $DW_JOB_STRIPED)",
            "DW_JOB_STRIPED=`realpath $DW_JOB_STRIPED`",
            "bash <<'EOF'\nexport DW_JOB_STRIPED=/a\nEOF",
            "DW_JOB_STRIPED=/tmp/x true",
            "A=1 DW_JOB_STRIPED=/tmp/x B=1 true",
            "env DW_JOB_STRIPED=/a true",
            "sh -c 'DW_JOB_STRIPED=/a'",
            "(DW_JOB_STRIPED=/a)",
            "(\nDW_JOB_STRIPED=/a\n)",
            "echo $(\nDW_JOB_STRIPED=/a\n)",
            "echo /a | read DW_JOB_STRIPED",
            "rm -rf ${DW_JOB_STRIPED:-}/*",
            "rm -rf \"${DW_JOB_STRIPED-}\"/*",
        ] {
            let script = format!("{script}\nrm -rf $DW_JOB_STRIPED/*");
            let found = expanded(&script);
            assert_eq!(found.len(), 1, "{script}: {found:?}");
        }
    }

    #[test]
    fn default_test_assignment_and_comment_are_no_expansion() {
        for script in [
            "cd ${DW_JOB_STRIPED:-/scratch}",
            "set -u\nx=${DW_JOB_STRIPED:-}; ./solve --fast \"${DW_JOB_STRIPED-}\"",
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
            "if [[ -n \"$A\" && -d $DW_JOB_STRIPED ]]; then cd $DW_JOB_STRIPED; fi",
            "[ \"$(hostname)\" = a -a -n \"${DW_JOB_STRIPED-}\" ] && cd $DW_JOB_STRIPED",
            "srun bash -c 'if [ -n \"$DW_JOB_STRIPED\" ]; then cd $DW_JOB_STRIPED; fi'",
            "bash <<'EOF'\nexport DW_JOB_STRIPED=/a\ncd $DW_JOB_STRIPED\nEOF",
            "(\nexport DW_JOB_STRIPED=/a\n\ncd $DW_JOB_STRIPED\n)",
            "for DW_JOB_STRIPED in /a /b; do\ncd $DW_JOB_STRIPED\ndone",
            "export DW_JOB_STRIPED=$(mktemp -d); cd $DW_JOB_STRIPED",
            "export \"DW_JOB_STRIPED=/a\"\ncd $DW_JOB_STRIPED",
            "A=1 DW_JOB_STRIPED=/a B=1\ncd $DW_JOB_STRIPED",
            "sbatch <<'EOF'\n#!/bin/bash\n#DW jobdw type=scratch\ncd $DW_JOB_STRIPED\nEOF",
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
