//! Suggests the known word that a misspelt word probably means.

/// Longest word with a suggestion, in bytes. The comparison takes the product of both lengths.
const WORD_BYTES_MAX: usize = 128;

/// The known word closest to `word`: at most one difference for each three characters, in which a
/// swap of neighbours counts once and capital letters do not count. The first of equally close ones.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > WORD_BYTES_MAX {
        return None;
    }
    let lower = word.to_lowercase();
    let differences_max = word.chars().count() / 3;
    let rated =
        known.into_iter().map(|one| (strsim::osa_distance(&lower, &one.to_lowercase()), one));
    let close = rated.filter(|(differences, _)| *differences <= differences_max);
    close.min_by_key(|(differences, _)| *differences).map(|(_, one)| one)
}

/// The hint, after a suggestion if a known word is close.
pub(crate) fn with_suggestion<'a>(
    word: &str,
    known: impl IntoIterator<Item = &'a str>,
    hint: impl Into<String>,
) -> String {
    let hint = hint.into();
    match closest(word, known) {
        Some(meant) => format!("did you mean {meant}? {hint}"),
        None => hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_word_is_suggested_and_distant_word_is_not() {
        let known = ["stage_in", "stage_out", "jobdw", "file"];
        for (word, meant) in [
            ("stage_ou", Some("stage_out")),
            ("stagein", Some("stage_in")),
            ("jobwd", Some("jobdw")),
            ("JOBDW", Some("jobdw")),
            ("fiel", Some("file")),
            ("swap", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(closest(word, known), meant, "{word}");
        }
        assert_eq!(closest(&"stage_in".repeat(1 << 20), known), None);
    }
}
