//! The namespaces of a job and the names of their variables.
//! Never reads or sets a variable of the environment.

use serde::{Deserialize, Serialize};

/// The prefix of variables of persistent allocations, before the name.
const PERSISTENT: &str = "DW_PERSISTENT_STRIPED_";
/// The same in NNF's dialect.
const PERSISTENT_OF_NNF: &str = "DW_PERSISTENT_";
/// The prefix of the variable of the job's own allocation.
const JOB_OF_NNF: &str = "DW_JOB_";

/// How processes of the job access the allocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AccessMode {
    /// One namespace, shared by all nodes of the job: `$DW_JOB_STRIPED`.
    #[default]
    Striped,
    /// A separate namespace for each node: `$DW_JOB_PRIVATE`.
    Private,
}

impl AccessMode {
    /// The environment variable with the path of the namespace.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Striped => "DW_JOB_STRIPED",
            Self::Private => "DW_JOB_PRIVATE",
        }
    }

    /// The name of the namespace's directory in the allocation.
    pub fn directory(self) -> &'static str {
        match self {
            Self::Striped => "striped",
            Self::Private => "private",
        }
    }
}

/// The naming of variables in paths, by the dialect of the script.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum VariableStyle {
    /// `$DW_JOB_STRIPED`, `$DW_PERSISTENT_STRIPED_NAME`.
    #[default]
    DataWarp,
    /// The same, but the job's own namespace is that of each node: `$DW_JOB_PRIVATE`.
    Private,
    /// `$DW_JOB_NAME`, `$DW_PERSISTENT_NAME`.
    Nnf {
        /// The name of the job's own allocation, if it has one.
        job: Option<String>,
    },
}

impl VariableStyle {
    /// The variable of the job's own namespace that is staged.
    pub fn of_job(&self) -> String {
        match self {
            Self::Nnf { job: Some(name) } => format!("{JOB_OF_NNF}{}", shell_name(name)),
            Self::Private => AccessMode::Private.variable().to_owned(),
            Self::Nnf { job: None } | Self::DataWarp => AccessMode::Striped.variable().to_owned(),
        }
    }

    /// The variable of a persistent allocation's namespace.
    pub fn of_persistent(&self, name: &str) -> String {
        match self {
            Self::DataWarp | Self::Private => format!("{PERSISTENT}{name}"),
            Self::Nnf { .. } => format!("{PERSISTENT_OF_NNF}{}", shell_name(name)),
        }
    }

    /// Whether this is the variable of the job's own namespace that is staged.
    pub(crate) fn is_job(&self, variable: &str) -> bool {
        match self {
            Self::DataWarp => variable == AccessMode::Striped.variable(),
            Self::Private => variable == AccessMode::Private.variable(),
            Self::Nnf { job } => {
                let written = variable.strip_prefix(JOB_OF_NNF);
                let named = job.as_deref().zip(written);
                named.is_some_and(|(name, written)| matches_variable(name, written))
            }
        }
    }

    /// The part of a variable after the prefix of persistent allocations.
    pub(crate) fn persistent<'a>(&self, variable: &'a str) -> Option<&'a str> {
        match self {
            Self::DataWarp | Self::Private => variable.strip_prefix(PERSISTENT),
            // NNF names have no capitals. Such a variable is one of DataWarp.
            Self::Nnf { .. } => variable
                .strip_prefix(PERSISTENT_OF_NNF)
                .filter(|name| name.starts_with(|c: char| c.is_ascii_lowercase())),
        }
    }

    /// The start of a path in the burst buffer, for messages.
    pub(crate) fn hint(&self) -> String {
        let job = match self {
            Self::Nnf { job: None } => "$DW_JOB_NAME/ of a #DW jobdw line".to_owned(),
            _ => format!("${}/", self.of_job()),
        };
        let persistent = match self {
            Self::DataWarp | Self::Private => PERSISTENT,
            Self::Nnf { .. } => PERSISTENT_OF_NNF,
        };
        format!("begin it with {job}, or ${persistent}NAME/ of a persistent allocation")
    }
}

/// Whether `written`, the rest of a variable after its prefix, names this allocation, either
/// exactly or in the form for shells.
pub fn matches_variable(name: &str, written: &str) -> bool {
    name == written || shell_name(name) == written
}

pub(crate) fn shell_name(name: &str) -> String {
    name.replace(['-', '.'], "_")
}
