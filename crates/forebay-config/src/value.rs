//! A value with its source, and the errors of a configuration.
//! Never makes a value whose words its setting refuses.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Serialize;

use crate::settings::{Kind, Setting};

/// A configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The site file, which can lock keys.
    Site,
    /// The user file.
    User,
    /// The project file, next to the job script.
    Project,
}

impl Layer {
    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Site => "site file",
            Self::User => "user file",
            Self::Project => "project file",
        }
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A line of a configuration file.
    File {
        /// Which file.
        layer: Layer,
        /// Its path.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(String),
    /// An option of the command line.
    Option(String),
}

impl Source {
    /// The higher rank overrides the lower one. All files of a layer, and all variables, have the same.
    pub(crate) fn rank(&self) -> u8 {
        match self {
            Self::File { layer: Layer::Site, .. } => 0,
            Self::File { layer: Layer::User, .. } => 1,
            Self::File { layer: Layer::Project, .. } => 2,
            Self::Variable(_) => 3,
            Self::Option(_) => 4,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::File { path, line, .. } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Option(name) => write!(f, "--{name}"),
        }
    }
}

/// A value that somebody set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Value {
    /// The value as an option takes it; several for a list.
    pub words: Vec<String>,
    /// The words in their normal form.
    pub(crate) normal: Vec<String>,
    /// Where it was set.
    pub source: Source,
}

impl Value {
    /// Checks the words of a value.
    ///
    /// # Errors
    /// What is wrong, and what is allowed.
    pub(crate) fn new(
        setting: &Setting,
        words: Vec<String>,
        source: Source,
    ) -> Result<Self, String> {
        let normal: Result<Vec<_>, _> =
            words.iter().map(|word| (setting.check)(word).map_err(|why| (word, why))).collect();
        match normal {
            Ok(normal) if setting.kind == Kind::Flag => {
                Ok(Self { words: normal.clone(), normal, source })
            }
            Ok(normal) => Ok(Self { words, normal, source }),
            Err((word, why)) => {
                Err(format!("{} = {word:?}: {why}; allowed: {}", setting.key, setting.allowed))
            }
        }
    }

    /// The value in JSON: a boolean, a number, a text or a list of texts.
    #[must_use]
    pub fn as_json(&self, setting: &Setting) -> JsonValue {
        let word = self.normal.first();
        match setting.kind {
            Kind::Flag => JsonValue::Flag(word.is_some_and(|word| word == "true")),
            Kind::Number => JsonValue::Number(word.and_then(|word| word.parse().ok())),
            Kind::Text | Kind::Path => JsonValue::Text(self.words.first().cloned()),
            Kind::List => JsonValue::List(self.words.clone()),
        }
    }
}

/// The value of a setting in JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum JsonValue {
    /// Of a flag.
    Flag(bool),
    /// Of a number.
    Number(Option<u64>),
    /// Of a text or a path.
    Text(Option<String>),
    /// Of a list.
    List(Vec<String>),
}

/// All errors of a configuration. Each line names the place.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Errors {
    /// One error each.
    pub messages: Vec<String>,
    /// What to do about the first error that needs a hint.
    pub hint: Option<String>,
}

impl Errors {
    pub(crate) fn add(&mut self, message: impl Into<String>) {
        self.messages.push(message.into());
    }

    pub(crate) fn add_with_hint(&mut self, message: impl Into<String>, hint: impl Into<String>) {
        self.add(message);
        self.hint.get_or_insert_with(|| hint.into());
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.messages.join("\n"))
    }
}
