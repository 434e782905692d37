//! Collects what is wrong in a configuration. Each fault names its line.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use forebay_directive::parse_size;
use forebay_host::messages::line_of;
use toml::Spanned;

/// The faults of a file, with their lines.
pub(super) struct Faults<'a> {
    pub(super) file: &'a Path,
    pub(super) text: &'a str,
    pub(super) found: Vec<String>,
}

impl Faults<'_> {
    pub(super) fn add(&mut self, byte: usize, message: &str) {
        let line = line_of(self.text, byte);
        self.found.push(format!("{}:{line}: {message}", self.file.display()));
    }

    pub(super) fn size(&mut self, key: &str, written: Option<&Spanned<String>>) -> Option<u64> {
        let written = written?;
        match parse_size(written.get_ref()) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                let text = written.get_ref();
                let message =
                    format!("{key}: {text:?} is no size: {error}; write for example \"10GiB\"");
                self.add(written.span().start, &message);
                None
            }
        }
    }

    pub(super) fn duration(
        &mut self,
        key: &str,
        written: Option<&Spanned<String>>,
        usual: Duration,
    ) -> Duration {
        let Some(written) = written else { return usual };
        humantime::parse_duration(written.get_ref()).unwrap_or_else(|error| {
            let message = format!("{key}: {error}; write for example \"5min\"");
            self.add(written.span().start, &message);
            usual
        })
    }

    pub(super) fn path(&mut self, key: &str, written: &Spanned<PathBuf>) {
        let path = written.get_ref();
        let is_plain = |part: Component| matches!(part, Component::RootDir | Component::Normal(_));
        let text = path.to_string_lossy();
        if !path.is_absolute() || !path.components().all(is_plain) || path == Path::new("/") {
            let message = format!("{key}: {text:?} is no absolute path without \"..\"");
            self.add(written.span().start, &message);
        } else if text.contains(|c: char| c.is_control() || c.is_whitespace()) {
            let message =
                format!("{key}: {text:?} has blanks or control characters, which scripts split");
            self.add(written.span().start, &message);
        }
    }
}
