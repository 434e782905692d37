//! The table of settings. The parser of files, the variables, the options, `forebay config` and the reference page
//! are all made from it.

use forebay_deadline::parse_signal;
use forebay_onclose::DrainSpec;
use forebay_scheduler::NodeLauncher;

use crate::parsers::{rate, time};

/// How a value is written in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Flag,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A text with `$NAME` for variables. A relative path is refused.
    Path,
    /// A text, or a list of texts.
    List,
}

/// Who may set a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Also the project file.
    Project,
    /// Not the project file: the value chooses where Forebay writes, or how a job is isolated.
    User,
}

/// One setting.
pub struct Setting {
    /// The key in files. The option is `--KEY`, the variable `FOREBAY_KEY` in capitals with underscores.
    pub key: &'static str,
    /// How the value is written.
    pub kind: Kind,
    /// Who may set it.
    pub scope: Scope,
    /// False if there is no option, only the variable.
    pub has_option: bool,
    /// The allowed values, in words.
    pub allowed: &'static str,
    /// The default, in words.
    pub default: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// True for a value that is a name and no path, although a path is expected.
    pub is_name: fn(&str) -> bool,
    /// Checks a value and returns its normal form. Values with the same normal form are equal.
    pub check: fn(&str) -> Result<String, String>,
}

impl Setting {
    /// The setting with this key.
    #[must_use]
    pub fn find(key: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.key == key)
    }

    /// The environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("FOREBAY_{}", self.key.replace('-', "_").to_uppercase())
    }
}

const FLAG: &str = "true or false";
const RATE: &str = "bytes per second, for example \"500MB/s\"";
const TIME: &str = "a time, for example \"30\" (minutes) or \"1:30:00\"";

/// A setting of jobs, with an option, that a project may set.
const JOB: Setting = Setting {
    key: "",
    kind: Kind::Text,
    scope: Scope::Project,
    has_option: true,
    allowed: "",
    default: "none",
    about: "",
    is_name: |_| false,
    check: any,
};
/// A flag that a project may set.
const JOB_FLAG: Setting =
    Setting { kind: Kind::Flag, allowed: FLAG, default: "false", check: flag, ..JOB };
/// A path, which a project may not set.
const PATH: Setting = Setting { kind: Kind::Path, scope: Scope::User, ..JOB };

/// All settings.
pub const SETTINGS: &[Setting] = &[
    Setting {
        key: "store",
        allowed: "an absolute directory, \"memory\" or \"memory:huge\"",
        default: "local NVMe, else memory",
        about: "Storage for allocations",
        is_name: |text| ["memory", "memory:huge"].contains(&text),
        ..PATH
    },
    Setting {
        key: "strict-capacity",
        about: "Do not start with less capacity than requested",
        ..JOB_FLAG
    },
    Setting {
        key: "no-userns",
        scope: Scope::User,
        about: "Do not use user namespaces",
        ..JOB_FLAG
    },
    Setting {
        key: "engine",
        allowed: "the name of an engine, for example \"ceph\"",
        default: "the first that keeps the request",
        about: "File system that gives a job on several nodes one namespace",
        ..JOB
    },
    Setting {
        key: "engine-profile",
        allowed: "a name of a profile, or an absolute path of a profile's file",
        default: "profile= of #DW jobdw, else none",
        about: "Named engine with options, in place of engine",
        is_name: |text| !text.contains('/'),
        ..PATH
    },
    Setting {
        key: "engine-root",
        allowed: "an absolute directory",
        default: "the engine of the system",
        about: "Directory of an engine that forebay engine bundle wrote, on each node",
        ..PATH
    },
    Setting {
        key: "coherence",
        allowed: "\"strict\" or \"close_to_open\"",
        default: "strict",
        about: "What the nodes of a job must see of each other",
        check: coherence,
        ..JOB
    },
    Setting {
        key: "redundancy",
        kind: Kind::Number,
        allowed: "1 or 2",
        default: "redundancy= of #DW jobdw, else that of the profile, else 1",
        about: "Copies of the data on different nodes",
        check: copies,
        ..JOB
    },
    Setting {
        key: "metadata-servers",
        kind: Kind::Number,
        allowed: "a number from 1",
        default: "that of the profile, else 1",
        about: "Metadata servers that share the directories of the namespace",
        check: from_one,
        ..JOB
    },
    Setting { key: "no-lazy-io", about: "Keep files of MPI-IO strict", ..JOB_FLAG },
    Setting {
        key: "launcher",
        scope: Scope::User,
        allowed: "srun, ssh, mpiexec, blaunch, pbs_tmrsh, flux, or a command with {node}",
        default: "that of the scheduler, else ssh",
        about: "How processes are started on other nodes",
        check: launcher,
        ..JOB
    },
    Setting {
        key: "node-dir",
        allowed: "an absolute directory",
        default: "/tmp",
        about: "Parent of the job's directory on each node",
        ..PATH
    },
    Setting {
        key: "pfs-dir",
        allowed: "an absolute directory",
        default: "where the script stages out to",
        about: "Parent of the directories of --no-burst-buffer",
        ..PATH
    },
    Setting {
        key: "pfs-model",
        allowed: "a name from `forebay machines`, an absolute path of a machine file, or \"none\"",
        about: "Emulate a parallel file system",
        is_name: |text| !text.contains('/'),
        ..PATH
    },
    Setting {
        key: "verify",
        allowed: "\"off\", \"copy\" or \"end\"",
        default: "copy",
        about: "When staging and draining take checksums",
        check: verify,
        ..JOB
    },
    Setting {
        key: "rate",
        allowed: RATE,
        default: "no limit",
        about: "Limit staging to so many bytes per second",
        check: bytes,
        ..JOB
    },
    Setting {
        key: "drain",
        kind: Kind::List,
        allowed: "PATTERN[,PATTERN...][:rate=500MB/s][:newest][:to=DIR], or a list of such texts",
        about: "Copy matching files out while the job runs; a project file may not name to=DIR",
        check: drain,
        ..JOB
    },
    Setting { key: "no-deadline", about: "Ignore the end that the scheduler sets", ..JOB_FLAG },
    Setting {
        key: "drain-rate",
        allowed: RATE,
        default: "as measured in earlier jobs",
        about: "Expected speed of stage-out",
        check: bytes,
        ..JOB
    },
    Setting {
        key: "drain-margin",
        allowed: TIME,
        default: "5 % of the time available, at most a minute",
        about: "Time to spare before the end",
        check: duration,
        ..JOB
    },
    Setting {
        key: "signal-before",
        allowed: "SIGNAL@SECONDS, for example \"USR1@120\"",
        about: "Send the job a signal before Forebay ends it for stage-out",
        check: signal,
        ..JOB
    },
    Setting {
        key: "on-close-jobs",
        kind: Kind::Number,
        allowed: "a number from 1 to 1024",
        default: "1",
        about: "Maximum number of --on-close commands at a time",
        check: commands,
        ..JOB
    },
    Setting {
        key: "on-close-retries",
        kind: Kind::Number,
        allowed: "a number",
        default: "0",
        about: "Number of times to repeat a failed --on-close command",
        check: number,
        ..JOB
    },
    Setting { key: "no-profile", about: "Do not record the I/O of jobs", ..JOB_FLAG },
    Setting { key: "trace", about: "Also record each I/O call", ..JOB_FLAG },
    Setting {
        key: "state",
        has_option: false,
        allowed: "an absolute directory",
        default: "$XDG_STATE_HOME/forebay, else ~/.local/state/forebay",
        about: "Directory for records of jobs and stagings",
        check: absolute,
        ..PATH
    },
    Setting {
        key: "ranks-max",
        kind: Kind::Number,
        scope: Scope::User,
        has_option: false,
        allowed: "a number from 1",
        default: "64 for each processor",
        about: "Largest number of local ranks that srun and the other launchers start",
        check: from_one,
        ..JOB
    },
];

fn any(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("it is empty".to_owned()) } else { Ok(text.to_owned()) }
}

fn absolute(text: &str) -> Result<String, String> {
    if text.starts_with('/') { Ok(text.to_owned()) } else { Err("the path is relative".to_owned()) }
}

fn coherence(text: &str) -> Result<String, String> {
    match text {
        "strict" | "close_to_open" => Ok(text.to_owned()),
        _ => Err("write strict or close_to_open".to_owned()),
    }
}

fn copies(text: &str) -> Result<String, String> {
    match text {
        "1" | "2" => Ok(text.to_owned()),
        _ => Err("write 1 or 2".to_owned()),
    }
}

fn launcher(text: &str) -> Result<String, String> {
    NodeLauncher::parse(text).map(|_| text.to_owned())
}

fn flag(text: &str) -> Result<String, String> {
    match text {
        "true" | "1" => Ok("true".to_owned()),
        "false" | "0" => Ok("false".to_owned()),
        _ => Err("it is neither true nor false".to_owned()),
    }
}

fn verify(text: &str) -> Result<String, String> {
    match text {
        "off" | "copy" | "end" => Ok(text.to_owned()),
        _ => Err("there is no such value".to_owned()),
    }
}

fn bytes(text: &str) -> Result<String, String> {
    rate(text).map(|bytes| bytes.to_string())
}

fn duration(text: &str) -> Result<String, String> {
    time(text).map(|time| time.as_secs().to_string())
}

fn drain(text: &str) -> Result<String, String> {
    DrainSpec::parse(text).map(|_| text.to_owned())
}

fn signal(text: &str) -> Result<String, String> {
    parse_signal(text).map(|_| text.to_owned())
}

fn number(text: &str) -> Result<String, String> {
    let number = text.parse::<u32>().map_err(|_| "it is not such a number".to_owned())?;
    Ok(number.to_string())
}

fn commands(text: &str) -> Result<String, String> {
    number_from(text, 1, 1024)
}

fn from_one(text: &str) -> Result<String, String> {
    number_from(text, 1, u32::MAX)
}

fn number_from(text: &str, least: u32, most: u32) -> Result<String, String> {
    let found = text.parse::<u32>().ok().filter(|number| (least..=most).contains(number));
    found.map(|number| number.to_string()).ok_or_else(|| "it is not such a number".to_owned())
}
