//! Patterns that select files of a directory tree.
//! Never reads the file system. A name that is not UTF-8 is matched with replacement characters.

use std::borrow::Cow;
use std::path::Path;

use forebay_directive::{Stage, StageKind};
use glob::{MatchOptions, Pattern as Glob};

/// Like the shell: `*` matches neither a slash nor a leading dot.
const AS_A_SHELL: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// A shell pattern. With a slash it applies to a file's path, else to its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Glob);

impl Pattern {
    /// # Errors
    /// A description of what is wrong with the pattern.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a pattern is empty".to_owned());
        }
        let parts = || text.split('/');
        if text.starts_with('/') || text.ends_with('/') || parts().any(|part| part == "..") {
            return Err(format!(
                "{text}: a pattern names files below the burst buffer's root, such as *.nc or out/*.nc"
            ));
        }
        let glob = Glob::new(text).map_err(|error| format!("{text}: {}", error.msg))?;
        Ok(Self(glob))
    }

    /// The pattern as the user wrote it.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// True if it matches the file at this path below the root.
    pub fn is_for(&self, relative: &Path) -> bool {
        let text = if self.is_path() {
            relative.to_string_lossy()
        } else {
            relative.file_name().unwrap_or_default().to_string_lossy()
        };
        self.0.matches_with(&text, AS_A_SHELL)
    }

    fn is_path(&self) -> bool {
        self.as_str().contains('/')
    }

    /// True if this line may stage out a file that the pattern matches.
    pub fn can_be_staged_by(&self, stage: &Stage) -> bool {
        let inner = Path::new(&stage.inner_path);
        match stage.kind {
            StageKind::File => self.is_for(inner),
            StageKind::Path if self.is_for(inner) => true,
            StageKind::Directory | StageKind::Path if !self.is_path() => true,
            StageKind::Directory | StageKind::Path => {
                let parts: Vec<_> = self.as_str().split('/').collect();
                let names = inner.components().map(|name| name.as_os_str().to_string_lossy());
                reaches_below(&parts, &names.collect::<Vec<_>>())
            }
            StageKind::List => false, // the list is read when staging begins
        }
    }
}

/// Whether files below a directory can match the parts of a pattern. `**` stands for any number of directories.
fn reaches_below(parts: &[&str], directory: &[Cow<'_, str>]) -> bool {
    match (parts, directory) {
        ([], _) => false,
        (_, []) => true,
        (["**", rest @ ..], [_, deeper @ ..]) => {
            reaches_below(rest, directory) || reaches_below(parts, deeper)
        }
        ([part, rest @ ..], [name, deeper @ ..]) => {
            Glob::new(part).is_ok_and(|part| part.matches_with(name, AS_A_SHELL))
                && reaches_below(rest, deeper)
        }
    }
}

/// Several patterns; a file matches if one of them does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patterns(Vec<Pattern>);

impl Patterns {
    /// All patterns.
    pub fn all(&self) -> &[Pattern] {
        &self.0
    }

    /// Parses patterns separated by commas.
    ///
    /// # Errors
    /// A description of what is wrong with one of them.
    pub fn parse(text: &str) -> Result<Self, String> {
        text.split(',').map(Pattern::parse).collect::<Result<_, _>>().map(Self)
    }

    /// True if one of them matches the file at this path below the root.
    pub fn are_for(&self, relative: &Path) -> bool {
        self.0.iter().any(|pattern| pattern.is_for(relative))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_directive::{Origin, Position, VariableStyle};

    fn stage(kind: StageKind, inner_path: &str) -> Stage {
        Stage {
            kind,
            persistent: None,
            inner_path: inner_path.to_owned(),
            pfs_path: "/pfs".to_owned(),
            naming: VariableStyle::DataWarp,
            position: Position { origin: Origin::Script, line: 1, column: 1 },
        }
    }

    #[test]
    fn name_pattern_matches_any_directory_and_path_pattern_its_own() {
        let patterns = Patterns::parse("wrfout*,out/step-?.nc,deep/**/[ab].h5").expect("good");
        for wanted in ["wrfout_d01", "in/any/wrfout", "out/step-1.nc", "deep/a.h5", "deep/x/y/b.h5"]
        {
            assert!(patterns.are_for(Path::new(wanted)), "{wanted}");
        }
        for other in ["xwrfout", "step-1.nc", "out/x/step-1.nc", "deep/c.h5"] {
            assert!(!patterns.are_for(Path::new(other)), "{other}");
        }
        let all = Patterns::parse("*").expect("good");
        assert!(all.are_for(Path::new("a/b")) && !all.are_for(Path::new("a/.b")));
    }

    #[test]
    fn impossible_pattern_is_refused() {
        for (text, part) in [
            ("", "empty"),
            ("a,,b", "empty"),
            ("/abs/*", "below the burst buffer"),
            ("a/../b", "below the burst buffer"),
            ("out/", "below the burst buffer"),
            ("[a", "[a: "),
            ("a***b", "a***b: "),
        ] {
            let error = Patterns::parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn stage_out_directive_covers_files_below_it() {
        let covered = |pattern: &str, kind, inner: &str| {
            let pattern = Pattern::parse(pattern).expect("good");
            pattern.can_be_staged_by(&stage(kind, inner))
        };
        let (file, directory) = (StageKind::File, StageKind::Directory);
        for (pattern, kind, inner, wanted) in [
            ("*.nc", directory, "", true),
            ("*.nc", directory, "deep/er", true),
            ("out/*.nc", directory, "out/", true),
            ("o*/*.nc", directory, "out", true),
            ("**/*.nc", directory, "out", true),
            ("**/*.nc", directory, "out/deep/er", true),
            ("out/**", directory, "out/a", true),
            ("out/**/b/*.nc", directory, "out/a/b", true),
            ("out/**/b/*.nc", directory, "other/a/b", false),
            ("out", directory, "out", true), // a file of that name in it
            ("other/*.nc", directory, "out", false),
            ("out/x", directory, "out/x", false),
            ("*.nc", file, "out/a.nc", true),
            ("out/*.nc", file, "out/a.nc", true),
            ("*.h5", file, "out/a.nc", false),
            ("*.nc", StageKind::List, "", false),
            ("*.nc", StageKind::Path, "out", true),
            ("out/*.nc", StageKind::Path, "out", true),
            ("out/*.nc", StageKind::Path, "out/a.nc", true),
            ("other/*.nc", StageKind::Path, "out", false),
        ] {
            assert_eq!(covered(pattern, kind, inner), wanted, "{pattern} {inner}");
        }
    }
}
