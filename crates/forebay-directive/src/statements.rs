//! Splits a script into statements as a shell does: quotes may hold line ends, and a here-document is another text.
//! Never runs anything. In scripts for other interpreters each line is a statement.

use std::collections::HashMap;
use std::ops::Range;

/// A statement, or a line of a here-document.
#[derive(Debug)]
pub(crate) struct Statement<'a> {
    /// The number of its first line, from 1.
    pub(crate) line: usize,
    /// Its lines with comments.
    pub(crate) lines: &'a str,
    /// Its lines up to a comment.
    pub(crate) text: &'a str,
    /// The here-document that it is a line of.
    pub(crate) document: Option<HereDocument>,
    /// Outermost quotes in the text.
    quotes: Vec<Quotes>,
    /// Outermost groups and substitutions in the text. A variable that is set in them is set only there.
    subshells: Vec<Range<usize>>,
    /// Where simple commands end in the text.
    separators: Vec<usize>,
    /// Where the first `$(`, `<(`, `>(` or backtick is: a command may run what is behind it.
    substitution: Option<usize>,
    /// Whether a command reads the output of a group that ends here or later.
    output_is_read: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct HereDocument {
    /// Whether its end word is quoted: the shell expands nothing.
    pub(crate) is_quoted: bool,
    /// Whether a command only writes it to a file, or submits it as another job.
    pub(crate) is_written: bool,
}

#[derive(Debug)]
struct Quotes {
    range: Range<usize>,
    /// Whether the shell expands nothing in them.
    is_literal: bool,
}

/// Commands that only write their text.
const WRITERS: [&str; 5] = ["echo", "printf", "print", "cat", "tee"];
/// Words that stand before a command.
const KEYWORDS: [&str; 10] =
    ["if", "elif", "else", "then", "while", "until", "do", "!", "{", "time"];
/// Words that end a group of commands.
const GROUP_ENDS: [&str; 4] = ["}", "done", "fi", "esac"];
/// Bytes of a command that are searched for its first words.
pub(crate) const COMMAND_BYTES_MAX: usize = 1024;

impl<'a> Statement<'a> {
    /// Where the text of the quotes around an offset is.
    pub(crate) fn quoted(&self, at: usize) -> Option<Range<usize>> {
        self.quotes_around(at).map(|quotes| quotes.range.clone())
    }

    /// Where the text of the quotes around an offset begins.
    pub(crate) fn quoted_from(&self, at: usize) -> Option<usize> {
        self.quotes_around(at).map(|quotes| quotes.range.start)
    }

    fn quotes_around(&self, at: usize) -> Option<&Quotes> {
        let behind = self.quotes.partition_point(|quotes| quotes.range.start <= at);
        let quotes = self.quotes.get(behind.checked_sub(1)?)?;
        (at < quotes.range.end).then_some(quotes)
    }

    /// Whether the statement begins in a group or a substitution that an earlier one opens.
    pub(crate) fn begins_in_subshell(&self) -> bool {
        self.subshells.first().is_some_and(|range| range.start == 0)
    }

    /// Whether a variable that the command at this offset sets is set only for a part of the script.
    pub(crate) fn is_in_subshell(&self, at: usize) -> bool {
        let behind = self.subshells.partition_point(|range| range.start <= at);
        let range = behind.checked_sub(1).map(|index| &self.subshells[index]);
        let separator = self.command_start(at).checked_sub(1);
        let reads = |at| self.is_pipe(at) || self.text.as_bytes()[at] == b'`';
        range.is_some_and(|range| at < range.end) || separator.is_some_and(reads)
    }

    /// Whether the quotes with this first offset hold a script, as in `sh -c '...'`.
    pub(crate) fn is_script(&self, quoted_from: usize) -> bool {
        let words = quoted_from.checked_sub(1).map(|quote| self.words_before(quote));
        let words = words.unwrap_or_default();
        let is_option = |word: &&str| word.starts_with('-') && word.ends_with('c');
        words.last().is_some_and(is_option) && words.iter().any(|word| is_shell(word))
    }

    /// The words before an offset in a script in quotes, as in `words_before`. Nothing of a long command.
    pub(crate) fn words_in_script(&self, quoted_from: usize, at: usize) -> Option<Vec<&'a str>> {
        let mut start = quoted_from.max(at.saturating_sub(COMMAND_BYTES_MAX));
        while !self.text.is_char_boundary(start) {
            start += 1;
        }
        let mut commands = self.text[start..at].rsplit([';', '&', '|', '(', '`', '\n']);
        let command = commands.next()?;
        let is_complete = start == quoted_from || commands.next().is_some();
        let words = command.split_whitespace().filter(|word| *word != "\\");
        is_complete.then(|| words.skip_while(|word| KEYWORDS.contains(word)).collect())
    }

    /// The offset of the simple command around an offset.
    fn command_start(&self, at: usize) -> usize {
        let behind = self.separators.partition_point(|separator| *separator < at);
        behind.checked_sub(1).map_or(0, |index| self.separators[index] + 1)
    }

    /// The words before an offset, from the start of its simple command, without keywords. Of a long command, the
    /// first ones.
    pub(crate) fn words_before(&self, at: usize) -> Vec<&'a str> {
        let start = self.command_start(at);
        let mut end = at.min(start + COMMAND_BYTES_MAX);
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        let mut words = Vec::new();
        let mut word = start;
        for (offset, c) in self.text[start..end].char_indices().chain([(end - start, ' ')]) {
            let offset = start + offset;
            if c.is_whitespace() && (offset == end || self.quotes_around(offset).is_none()) {
                let found = &self.text[word..offset];
                let found = found.strip_suffix('\\').filter(|_| c == '\n').unwrap_or(found);
                words.extend(Some(found).filter(|word| !word.is_empty()));
                word = offset + c.len_utf8();
            }
        }
        let keywords = words.iter().take_while(|word| KEYWORDS.contains(word)).count();
        words.split_off(keywords)
    }

    /// Whether a backslash makes the `$` at this offset literal.
    fn is_escaped(&self, at: usize) -> bool {
        self.text[..at].bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1
    }

    /// Whether the text at this offset is only written: to a file or to standard output.
    pub(crate) fn is_only_written(&self, at: usize) -> bool {
        let is_escaped = self.is_escaped(at);
        match self.document {
            // In a here-document quotes do not prevent an expansion.
            Some(document) => {
                document.is_written && !self.output_is_read && (document.is_quoted || is_escaped)
            }
            None => {
                let is_literal = self.quotes_around(at).is_some_and(|quotes| quotes.is_literal);
                (is_literal || is_escaped) && self.writes(at)
            }
        }
    }

    /// Whether the command at this offset only writes its text, and no other command reads it.
    pub(crate) fn writes(&self, at: usize) -> bool {
        let command = self.words_before(at).into_iter().find(|word| !is_assignment(word));
        let is_writer = command.is_some_and(|word| WRITERS.contains(&word));
        let is_substituted = self.substitution.is_some_and(|substitution| substitution < at);
        is_writer && !is_substituted && !self.output_is_read && !self.is_read(at)
    }

    /// Whether a command other than tee may read the output of the command at this offset.
    fn is_read(&self, at: usize) -> bool {
        let next = self.separators.partition_point(|separator| *separator < at);
        for &separator in &self.separators[next..] {
            match self.text.as_bytes()[separator] {
                b'|' if self.is_pipe(separator) && self.is_before_tee(separator) => {}
                b'|' => return self.is_pipe(separator),
                b'(' | b'`' => return true,
                _ => return false,
            }
        }
        false
    }

    fn is_pipe(&self, separator: usize) -> bool {
        let (before, after) = (&self.text[..separator], &self.text[separator..]);
        after.starts_with('|') && !after.starts_with("||") && !before.ends_with('|')
    }

    fn is_before_tee(&self, separator: usize) -> bool {
        let reader = self.text[separator + 1..].trim_start_matches('&');
        reader.split_whitespace().next() == Some("tee")
    }

    /// Whether a command other than tee reads the output of a group of commands that ends here.
    fn reads_a_group(&self) -> bool {
        let is_group_end = |at| {
            self.words_before(at)
                .first()
                .is_none_or(|word| GROUP_ENDS.contains(word) || word.contains(['<', '>']))
        };
        self.separators.iter().any(|&at| {
            let reads = self.text[..=at].ends_with(">(") || (self.is_pipe(at) && is_group_end(at));
            reads && !self.is_before_tee(at)
        })
    }
}

/// Whether a word is `NAME=VALUE`.
pub(crate) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// The statements of a script.
pub(crate) fn statements(script: &str) -> Vec<Statement<'_>> {
    let mut scanner = Scanner::new(script, is_for_a_shell(script));
    let mut found = scanner.read();
    if !scanner.open.is_empty() {
        // Something remained open, so the text is not what it seems to be.
        found = Scanner::new(script, false).read();
    }
    let mut output_is_read = false;
    for statement in found.iter_mut().rev() {
        output_is_read |= statement.reads_a_group();
        statement.output_is_read = output_is_read;
    }
    found
}

fn is_for_a_shell(script: &str) -> bool {
    let Some(interpreter) = script.lines().next().and_then(|line| line.strip_prefix("#!")) else {
        return true;
    };
    interpreter.split_whitespace().any(is_shell)
}

fn is_shell(command: &str) -> bool {
    let name = command.rsplit('/').next().unwrap_or_default();
    ["sh", "bash", "dash", "ksh", "zsh", "ash", "mksh"].contains(&name)
}

/// What is open at a place in the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    /// `'...'`
    Single,
    /// `$'...'`
    Escaped,
    /// `"..."`
    Double,
    /// `$(...)`, `<(...)` and `>(...)`
    Substitution,
    /// `(...)`
    Group,
    /// `((...))` and `$((...))`
    Arithmetic,
    /// `${...}`
    Brace,
}

impl Open {
    fn is_quote(self) -> bool {
        matches!(self, Self::Single | Self::Escaped | Self::Double)
    }

    fn is_subshell(self) -> bool {
        matches!(self, Self::Substitution | Self::Group)
    }
}

/// A here-document whose text has not begun.
struct Announced<'a> {
    at: usize,
    end_line: &'a str,
    is_quoted: bool,
}

struct Scanner<'a> {
    script: &'a str,
    at: usize,
    line: usize,
    /// Whether quotes may hold line ends.
    joins_lines: bool,
    open: Vec<Open>,
    open_quotes: usize,
    open_subshells: usize,
    quotes: Vec<Quotes>,
    subshells: Vec<Range<usize>>,
    separators: Vec<usize>,
    substitution: Option<usize>,
    announced: Vec<Announced<'a>>,
    /// The last place of each line. Empty until it is needed.
    last_places: HashMap<&'a str, usize>,
}

impl<'a> Scanner<'a> {
    fn new(script: &'a str, joins_lines: bool) -> Self {
        Self {
            script,
            at: 0,
            line: 1,
            joins_lines,
            open: Vec::new(),
            open_quotes: 0,
            open_subshells: 0,
            quotes: Vec::new(),
            subshells: Vec::new(),
            separators: Vec::new(),
            substitution: None,
            announced: Vec::new(),
            last_places: HashMap::new(),
        }
    }

    fn read(&mut self) -> Vec<Statement<'a>> {
        let mut found = Vec::new();
        while self.at < self.script.len() {
            let start = self.at;
            let statement = self.read_statement(None);
            let documents = std::mem::take(&mut self.announced);
            let documents: Vec<_> =
                documents.iter().map(|one| (one.end_line, one.of(&statement, start))).collect();
            found.push(statement);
            for (end_line, document) in documents {
                let outer = (
                    std::mem::take(&mut self.open),
                    std::mem::take(&mut self.open_quotes),
                    std::mem::take(&mut self.open_subshells),
                );
                self.read_document(end_line, document, &mut found);
                (self.open, self.open_quotes, self.open_subshells) = outer;
            }
        }
        found
    }

    fn read_document(
        &mut self,
        end_line: &str,
        document: HereDocument,
        found: &mut Vec<Statement<'a>>,
    ) {
        while let Some(line) = self.script.get(self.at..).and_then(|rest| rest.lines().next()) {
            if line.trim_start_matches('\t') == end_line {
                self.at += line.len() + 1;
                self.line += 1;
                return;
            }
            found.push(self.read_statement(Some(document)));
        }
    }

    fn read_statement(&mut self, document: Option<HereDocument>) -> Statement<'a> {
        let (start, line) = (self.at, self.line);
        let joins_lines = self.joins_lines && document.is_none();
        let text = self.read_text(joins_lines, document.is_none());
        if !joins_lines {
            self.open.clear();
            self.open_quotes = 0;
            self.open_subshells = 0;
        }
        let lines = &self.script[start..self.at];
        self.at += 1;
        self.line += 1;
        let inside = |range: Range<usize>| {
            let end = range.end.min(start + text.len());
            range.start - start..end - start
        };
        let quotes = self.quotes.drain(..);
        let quotes = quotes.map(|one| Quotes { range: inside(one.range), ..one }).collect();
        let subshells = self.subshells.drain(..).map(inside).collect();
        let separators = self.separators.drain(..).map(|at| at - start).collect();
        let substitution = self.substitution.take().map(|at| at - start);
        Statement {
            line,
            lines,
            text,
            document,
            quotes,
            subshells,
            separators,
            substitution,
            output_is_read: false,
        }
    }

    /// Reads a statement to the end of its last line. Returns its text up to a comment.
    fn read_text(&mut self, joins_lines: bool, has_documents: bool) -> &'a str {
        let (bytes, start) = (self.script.as_bytes(), self.at);
        if self.open_quotes > 0 {
            // They go on behind a here-document.
            self.quotes.push(Quotes { range: start..usize::MAX, is_literal: false });
        }
        if self.open_subshells > 0 {
            self.subshells.push(start..usize::MAX);
        }
        self.substitution = self.open.contains(&Open::Substitution).then_some(start);
        let mut word_begins = true;
        while let Some(&byte) = bytes.get(self.at) {
            let goes_on = joins_lines && self.open_quotes > 0 && self.announced.is_empty();
            if byte == b'\n' && !goes_on {
                break;
            }
            if byte == b'#'
                && word_begins
                && matches!(self.open.last(), None | Some(Open::Substitution | Open::Group))
            {
                let comment = self.at;
                let length = bytes[self.at..].iter().position(|byte| *byte == b'\n');
                self.at = length.map_or(bytes.len(), |length| comment + length);
                if self.open_quotes == 0 {
                    return &self.script[start..comment];
                }
                continue;
            }
            let is_last_of_line = bytes[self.at..].starts_with(b"\\\n");
            let width = match is_last_of_line && !joins_lines {
                true => 1,
                false => self.step(word_begins, has_documents),
            };
            self.at = (self.at + width).min(bytes.len());
            let last = bytes[self.at - 1];
            self.line += usize::from(last == b'\n');
            if !is_last_of_line {
                word_begins = byte != b'\\' && is_before_word(last);
            }
        }
        &self.script[start..self.at]
    }

    /// Reads one character, or several that belong together. Returns their number of bytes.
    fn step(&mut self, word_begins: bool, has_documents: bool) -> usize {
        use Open as O;
        let is_quoted = self.open_quotes > 0;
        let bytes = self.script.as_bytes();
        if !is_quoted {
            self.take_separator();
        }
        match (self.open.last(), &bytes[self.at..]) {
            (Some(O::Single), [b'\'', ..]) => self.close(1),
            (Some(O::Single), _) => 1,
            (_, [b'\\', _, ..]) => 2,
            (Some(O::Escaped), [b'\'', ..]) | (Some(O::Double), [b'"', ..]) => self.close(1),
            (Some(O::Escaped), _) => 1,
            (_, [b'$', b'(', b'(', ..]) => self.open(O::Arithmetic, 3),
            (_, [b'$', b'(', ..]) => self.open(O::Substitution, 2),
            (_, [b'$', b'{', ..]) => self.open(O::Brace, 2),
            (_, [b'`', ..]) => {
                self.substitution.get_or_insert(self.at);
                1
            }
            (Some(O::Double), _) => 1,
            (_, [b'"', ..]) => self.open(O::Double, 1),
            (Some(O::Brace), [b'}', ..]) => self.close(1),
            // In "${NAME#'}" an apostrophe is one.
            (Some(O::Brace), _) if is_quoted => 1,
            (_, [b'$', b'\'', ..]) => self.open(O::Escaped, 2),
            (_, [b'\'', ..]) => self.open(O::Single, 1),
            (Some(O::Arithmetic), [b')', b')', ..]) => self.close(2),
            (_, [b'(', b'(', ..]) if word_begins => self.open(O::Arithmetic, 2),
            (_, [b'<' | b'>', b'(', ..]) => self.open(O::Substitution, 2),
            (_, [b'(', ..]) => self.open(O::Group, 1),
            (Some(O::Substitution | O::Group), [b')', ..]) => self.close(1),
            (_, [b'<', b'<', b'<', ..]) => 3,
            (_, [b'<', b'<', ..]) if has_documents && !self.open.contains(&O::Arithmetic) => {
                self.announce_document();
                2
            }
            _ => 1,
        }
    }

    fn open(&mut self, what: Open, width: usize) -> usize {
        if what.is_quote() {
            if self.open_quotes == 0 {
                let range = self.at + width..usize::MAX;
                self.quotes.push(Quotes { range, is_literal: what != Open::Double });
            }
            self.open_quotes += 1;
        }
        if what.is_subshell() {
            if self.open_subshells == 0 {
                self.subshells.push(self.at + width..usize::MAX);
            }
            self.open_subshells += 1;
        }
        if what == Open::Substitution {
            self.substitution.get_or_insert(self.at);
        }
        self.open.push(what);
        width
    }

    fn close(&mut self, width: usize) -> usize {
        let closed = self.open.pop();
        if closed.is_some_and(Open::is_subshell) {
            self.open_subshells -= 1;
            if let Some(last) = self.subshells.last_mut().filter(|_| self.open_subshells == 0) {
                last.end = self.at;
            }
        }
        if closed.is_some_and(Open::is_quote) {
            self.open_quotes -= 1;
            if let Some(last) = self.quotes.last_mut().filter(|_| self.open_quotes == 0) {
                last.range.end = self.at;
            }
        }
        width
    }

    fn take_separator(&mut self) {
        let bytes = self.script.as_bytes();
        let before = self.at.checked_sub(1).map(|at| bytes[at]);
        let redirects = before == Some(b'>') || before == Some(b'<');
        let ends = match bytes[self.at] {
            b'&' => !redirects && bytes.get(self.at + 1) != Some(&b'>'),
            b'|' => !redirects,
            b'$' => bytes[self.at..].starts_with(b"$(") && !bytes[self.at..].starts_with(b"$(("),
            b'<' | b'>' => bytes.get(self.at + 1) == Some(&b'('),
            // Also the end of a pattern of `case`.
            b')' => matches!(self.open.last(), None | Some(Open::Group)),
            byte => matches!(byte, b';' | b'(' | b'`'),
        };
        if ends {
            // Of `$(`, `<(` and `>(`, the second character.
            let is_first = matches!(bytes[self.at], b'$' | b'<' | b'>');
            self.separators.push(self.at + usize::from(is_first));
        }
    }

    /// Notes the here-document whose `<<` is here, if a later line ends it.
    fn announce_document(&mut self) {
        let rest = &self.script[self.at + 2..];
        let rest = rest.strip_prefix('-').unwrap_or(rest).trim_start_matches([' ', '\t']);
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\'' | '\\'));
        let word = &rest[quote.map_or(0, char::len_utf8)..];
        let is_end = |c: char| match quote {
            Some(quote @ ('"' | '\'')) => c == quote || c == '\n',
            _ => c.is_whitespace() || ";&|<>()\"'`".contains(c),
        };
        let end_line = &word[..word.find(is_end).unwrap_or(word.len())];
        if self.last_places.is_empty() {
            let script = self.script;
            let place = |line: &'a str| line.as_ptr() as usize - script.as_ptr() as usize;
            let lines = script.lines().map(|line| (line.trim_start_matches('\t'), place(line)));
            self.last_places = lines.collect();
        }
        let ends_later = self.last_places.get(end_line).is_some_and(|place| *place > self.at);
        if ends_later && !end_line.is_empty() {
            let is_quoted = quote.is_some();
            self.announced.push(Announced { at: self.at, end_line, is_quoted });
        }
    }
}

impl Announced<'_> {
    /// The document of the `<<` in this statement.
    fn of(&self, statement: &Statement, start: usize) -> HereDocument {
        let at = self.at - start;
        let goes_to_a_file = statement.text.contains('>') || statement.text.contains("tee ");
        let is_another_job = statement.words_before(at).first() == Some(&"sbatch");
        let is_written = is_another_job || (goes_to_a_file && statement.writes(at));
        HereDocument { is_quoted: self.is_quoted, is_written }
    }
}

/// Whether a word begins after this character.
fn is_before_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(')
}
