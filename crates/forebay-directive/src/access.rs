//! Access modes of an allocation.

/// How the job's processes see the allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AccessMode {
    /// One namespace, shared by all nodes of the job: `$DW_JOB_STRIPED`.
    Striped,
    /// A namespace of its own for each node: `$DW_JOB_PRIVATE`.
    Private,
}

impl AccessMode {
    /// The environment variable that carries the mount point.
    #[must_use]
    pub fn variable(self) -> &'static str {
        match self {
            Self::Striped => "DW_JOB_STRIPED",
            Self::Private => "DW_JOB_PRIVATE",
        }
    }
}

/// Parses `striped`, `private` or `striped,private`.
pub(crate) fn parse(text: &str) -> Result<Vec<AccessMode>, (String, String)> {
    let mut modes = Vec::new();
    for word in text.split(',') {
        let mode = match word {
            "striped" => AccessMode::Striped,
            "private" => AccessMode::Private,
            _ => return Err(unknown(word)),
        };
        if modes.contains(&mode) {
            return Err((
                format!("access_mode names {word} twice"),
                "name each mode once".into(),
            ));
        }
        modes.push(mode);
    }
    Ok(modes)
}

fn unknown(word: &str) -> (String, String) {
    let hint = "write access_mode=striped, access_mode=private or access_mode=striped,private";
    if word.contains('(') {
        return (
            format!("the modifiers in access_mode={word} are not supported yet"),
            "drop the parentheses and what is in them".into(),
        );
    }
    if word == "ldbalance" {
        return (
            "access_mode=ldbalance is not supported".into(),
            "it replicates files that are only read; use access_mode=striped".into(),
        );
    }
    (format!("unknown access_mode \"{word}\""), hint.into())
}
