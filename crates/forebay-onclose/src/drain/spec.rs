//! The text of `--drain`, checked against the stage_out lines of the script.
//! Creates nothing: a target that is missing needs a directory above it that the user can write in.

use std::path::{Path, PathBuf};

use forebay_directive::{AccessMode, Request, parse_size};
use forebay_engine::PathMap;
use forebay_host::files::{self, Kind};
use forebay_host::probe;

use crate::Error;
use forebay_staging::{Pattern, Patterns};

const FORM: &str = "write PATTERN[,PATTERN...][:rate=500MB/s][:newest][:to=DIR]";

/// One `--drain`: `PATTERN[,PATTERN...][:rate=500MB/s][:newest][:to=DIR]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainSpec {
    pub(super) text: String,
    /// The files to drain.
    pub patterns: Patterns,
    /// The rate limit.
    pub rate_bytes_per_s: Option<u64>,
    /// Drain only the file closed last.
    pub newest: bool,
    /// The destination directory; none: the targets of the stage_out lines.
    pub to: Option<PathBuf>,
}

impl DrainSpec {
    /// Parses the text. A relative `to=` is relative to the working directory.
    ///
    /// # Errors
    /// Describes what is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let patterns = parts.next().unwrap_or_default();
        let mut spec = Self {
            text: text.to_owned(),
            patterns: Patterns::parse(patterns).map_err(|error| format!("{error}; {FORM}"))?,
            rate_bytes_per_s: None,
            newest: false,
            to: None,
        };
        for part in parts {
            match part.split_once('=') {
                Some(("rate", rate)) => spec.rate_bytes_per_s = Some(parse_rate(rate)?),
                Some(("to", to)) if !to.is_empty() => {
                    let to =
                        std::path::absolute(to).map_err(|error| format!("to={to}: {error}"))?;
                    spec.to = Some(to);
                }
                None if part == "newest" => spec.newest = true,
                _ => return Err(format!("{part}: no such setting; {FORM}")),
            }
        }
        Ok(spec)
    }
}

fn parse_rate(text: &str) -> Result<u64, String> {
    let size = text.strip_suffix("/s").and_then(|size| parse_size(size).ok());
    size.filter(|rate| *rate > 0)
        .ok_or_else(|| format!("rate={text}: write bytes per second, for example rate=500MB/s"))
}

/// Spectral: every file below one directory is copied to the same relative path below another.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spectral {
    /// Requested by an option or a header: a failure is an error.
    pub wanted: bool,
    /// `PERSIST_DIR` and `PFS_DIR`, if they are known before the script starts.
    pub directories: Option<(PathBuf, PathBuf)>,
}

/// Checks the request against the script. Creates nothing. `maps` are not in effect yet.
///
/// # Errors
/// If the request cannot be fulfilled.
pub fn check(
    specs: &[DrainSpec],
    spectral: &Spectral,
    request: &Request,
    maps: &[PathMap],
) -> Result<(), Error> {
    if specs.is_empty() && !spectral.wanted {
        return Ok(());
    }
    if request.job.is_none() {
        return Err(Error::Request {
            message: "there is no burst buffer to drain: the script has no #DW jobdw line"
                .to_owned(),
            hint: "add one, or leave out --drain (and FOREBAY_DRAIN, --spectral)",
        });
    }
    for spec in specs {
        match &spec.to {
            Some(to) => check_target(&PathMap::resolve(maps, to))?,
            None => check_covered(spec, request)?,
        }
    }
    if let Some((_, to)) = &spectral.directories {
        check_target(&PathMap::resolve(maps, to))?;
    }
    Ok(())
}

fn check_covered(spec: &DrainSpec, request: &Request) -> Result<(), Error> {
    let is_covered = |pattern: &&Pattern| {
        let mut stages = request.stage_out.iter();
        stages.any(|stage| stage.persistent.is_none() && pattern.can_be_staged_by(stage))
    };
    match spec.patterns.all().iter().find(|pattern| !is_covered(pattern)) {
        Some(pattern) => Err(Error::Request {
            message: format!(
                "drain {}: no stage_out line of the script takes a file {} anywhere",
                spec.text,
                pattern.as_str()
            ),
            hint: "add a #DW stage_out line, or say where it goes: --drain 'PATTERN:to=DIR'",
        }),
        None => Ok(()),
    }
}

/// Checks whether files can be written to a target, as far as this is known in advance.
pub(super) fn check_target(to: &Path) -> Result<(), Error> {
    let refused = |error| target_error(to, &error);
    let nearest = files::nearest_real_path(to).map_err(refused)?;
    let found = files::status(&nearest).map_err(refused)?;
    if found.kind != Kind::Directory {
        return Err(Error::Request {
            message: format!("drain to {}: {} is no directory", to.display(), nearest.display()),
            hint: "name a directory that you may write in",
        });
    }
    probe::check_write(&nearest).map_err(refused)
}

pub(super) fn target_error(to: &Path, error: &forebay_host::Error) -> Error {
    Error::Request {
        message: format!("drain to {}: {error}", to.display()),
        hint: "name a directory that you may write in",
    }
}

/// The namespace of the patterns: the striped one, from which stage_out copies, if the job has it.
pub(super) fn namespace(request: &Request) -> AccessMode {
    let modes = request.job.iter().flat_map(|job| &job.access);
    let striped = |mode: &&AccessMode| **mode == AccessMode::Striped;
    modes.clone().find(striped).or(modes.clone().next()).copied().unwrap_or(AccessMode::Striped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_has_patterns_and_settings() {
        let spec = DrainSpec::parse("wrfout*,*.h5:rate=500MB/s:newest:to=/pfs/x").expect("good");
        assert_eq!(spec.rate_bytes_per_s, Some(500_000_000));
        assert!(spec.newest && spec.patterns.are_for(Path::new("a/b.h5")));
        assert_eq!(spec.to.as_deref(), Some(Path::new("/pfs/x")));
        let plain = DrainSpec::parse("*").expect("good");
        assert_eq!((plain.rate_bytes_per_s, plain.newest, plain.to), (None, false, None));
    }

    #[test]
    fn invalid_settings_are_refused_by_name() {
        for (text, part) in [
            ("*:rate=fast", "rate=fast: "),
            ("*:rate=500MB", "rate=500MB: "),
            ("*:rate=0/s", "rate=0/s: "),
            ("*:rate=-1/s", "rate=-1/s: "),
            ("*:latest", "latest: no such setting"),
            ("*:to=", "to=: no such setting"),
            (":newest", "empty"),
        ] {
            let error = DrainSpec::parse(text).expect_err(text);
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
