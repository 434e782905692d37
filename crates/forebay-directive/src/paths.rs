//! Checks the source and the destination of a stage.
//! Checks the text alone: a symbolic link may still lead out of the burst buffer.

use crate::VariableStyle;
use crate::problem::Finding;
use crate::suggestion::closest;
use crate::token::Token;

/// The location of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// In the burst buffer.
    Inner,
    /// On the parallel file system.
    Outer,
}

/// How to write a path of the parallel file system in a directive.
pub(crate) const IN_DIRECTIVES: &str = "directives are not expanded by a shell: write the whole \
     path; %d is the directory the job works in, %u the user, %j the job id";
/// How to write it in a list of files.
pub(crate) const IN_LISTS: &str = "lists are not expanded: write the whole path";

/// Checks that a token is a path on this side. Returns the path, and the persistent allocation it
/// begins with, if any. Messages contain `label` before the path, and `hint` for paths of the
/// parallel file system.
pub(crate) fn check(
    side: Side,
    token: &Token,
    label: &str,
    hint: &str,
    naming: &VariableStyle,
) -> Result<(Option<String>, String), Finding> {
    match side {
        Side::Inner => inner(token, label, naming),
        Side::Outer => outer(token, label, hint).map(|path| (None, path)),
    }
}

/// The namespace of a path (none for the job's own) and the rest without leading slash. Checks that
/// the path stays inside.
fn inner(
    token: &Token,
    label: &str,
    naming: &VariableStyle,
) -> Result<(Option<String>, String), Finding> {
    let wrong = |what: &str, hint: &str| {
        let message = format!("{label}{} {what}", token.text);
        Err(Finding::error(token.start, message, hint))
    };
    let (variable, rest) = variable(&token.text).unwrap_or_default();
    if *naming == VariableStyle::DataWarp && variable == "DW_JOB_PRIVATE" {
        return wrong(
            "is private to each node and cannot be staged",
            "stage to or from $DW_JOB_STRIPED",
        );
    }
    let persistent = naming.persistent(variable).map(str::to_owned);
    let is_known = naming.is_job(variable) || persistent.is_some();
    if !is_known || !(rest.is_empty() || rest.starts_with('/')) {
        let own = naming.of_job();
        let hint = match closest(variable, [own.as_str()]) {
            Some(meant) if !is_known => format!("did you mean ${meant}? {}", naming.hint()),
            _ => naming.hint(),
        };
        return wrong("is not in the burst buffer", &hint);
    }
    if rest.split('/').any(|part| part == "..") {
        return wrong("leaves the burst buffer", "write the path without \"..\"");
    }
    let behind = token.part(token.text.len() - rest.len()..token.text.len());
    if behind.has_variable() {
        return wrong("holds another variable", "no shell expands it: write its value");
    }
    Ok((persistent, rest.trim_start_matches('/').to_owned()))
}

/// Checks for an absolute path on the parallel file system.
pub(crate) fn outer(token: &Token, label: &str, hint: &str) -> Result<String, Finding> {
    let wrong = |what: &str, hint: &str| {
        let message = format!("{label}{} {what}", token.text);
        Err(Finding::error(token.start, message, hint))
    };
    if variable(&token.text).is_some_and(|(name, _)| name.starts_with("DW_")) {
        return wrong(
            "is in the burst buffer, where a path of the parallel file system belongs",
            "begin it with /",
        );
    }
    if token.has_variable() {
        return wrong("holds a variable", hint);
    }
    if !token.text.starts_with('/') {
        return wrong("is not an absolute path", hint);
    }
    Ok(token.text.clone())
}

/// The part that a shell would treat as a pattern: `*`, `?`, `[...]` or `{a,b}`.
pub(crate) fn pattern_in(path: &str) -> Option<&str> {
    if let Some(at) = path.find(['*', '?']) {
        return Some(&path[at..=at]);
    }
    let between = |open: char, close: char| {
        let from = path.find(open)?;
        let to = from + path[from..].find(close)?;
        Some(&path[from..=to])
    };
    let braces = path.match_indices('{').find(|(at, _)| !path[..*at].ends_with('$'));
    let braces = braces.and_then(|(at, _)| Some(&path[at..=at + path[at..].find('}')?]));
    between('[', ']').or_else(|| braces.filter(|text| text.contains([',', '.'])))
}

/// The variable at the start of a path, and the rest.
fn variable(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('$')?;
    if let Some(braced) = text.strip_prefix('{') {
        return braced.split_once('}');
    }
    // No shell reads directives, so allocation names may contain `-` and `.`.
    let in_name = text.starts_with("DW_");
    let is_part =
        |c: char| c.is_ascii_alphanumeric() || c == '_' || (in_name && matches!(c, '-' | '.'));
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    Some(text.split_at(end))
}
