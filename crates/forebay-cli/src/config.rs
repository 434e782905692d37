//! `forebay config`: the settings, their values and sources.
//! Assumes that `configuration` has read the files. Never changes one.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use comfy_table::{Table, presets};
use forebay_config::{ReadFile, SETTINGS, Setting, Source, reference};
use forebay_host::files::printable;
use forebay_terminal::{print_json, print_status, print_stdout};
use schemars::JsonSchema;
use serde::Serialize;

use crate::effective_config;

#[derive(Debug, Args)]
pub struct ConfigArguments {
    /// Include the project file of this job script: forebay.toml in its directory
    pub script: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// The JSON object of `forebay config --json`.
#[derive(Serialize, JsonSchema)]
pub struct ConfigReport {
    /// The files that are read, the weakest first.
    files: Vec<ShownFile>,
    /// All settings.
    settings: Vec<ShownSetting>,
}

/// A configuration file.
#[derive(Serialize, JsonSchema)]
struct ShownFile {
    /// Whose file it is.
    kind: forebay_config::Layer,
    /// Its path.
    #[serde(serialize_with = "forebay_host::files::lossy_path")]
    #[schemars(with = "PathBuf")]
    path: PathBuf,
    /// Whether it exists.
    exists: bool,
}

/// A setting.
#[derive(Serialize, JsonSchema)]
struct ShownSetting {
    /// Its name.
    key: &'static str,
    /// Null for the default.
    value: Option<forebay_config::JsonValue>,
    /// `default`, FILE:LINE, or the name of a variable.
    source: String,
    /// The file of the source.
    #[serde(serialize_with = "forebay_host::files::lossy_option")]
    #[schemars(with = "Option<PathBuf>")]
    file: Option<PathBuf>,
    /// The line in this file.
    line: Option<usize>,
    /// Whether the site has locked it.
    locked: bool,
}

impl ShownSetting {
    fn of(setting: &'static Setting) -> Self {
        let value = effective_config::current().get(setting.key);
        let (file, line) = match value.map(|value| &value.source) {
            Some(Source::File { path, line, .. }) => (Some(path.clone()), Some(*line)),
            _ => (None, None),
        };
        Self {
            key: setting.key,
            value: value.map(|value| value.as_json(setting)),
            source: value.map_or_else(|| "default".to_owned(), |value| value.source.to_string()),
            file,
            line,
            locked: effective_config::current().lock(setting.key).is_some(),
        }
    }
}

pub fn config(arguments: &ConfigArguments) -> i32 {
    let files = effective_config::current().files.iter();
    let shown = ConfigReport {
        files: files
            .map(|ReadFile { layer, path, is_present }| ShownFile {
                kind: *layer,
                path: path.clone(),
                exists: *is_present,
            })
            .collect(),
        settings: SETTINGS.iter().map(ShownSetting::of).collect(),
    };
    if arguments.json {
        return print_json(&shown, 0);
    }
    for file in &shown.files {
        let state = if file.exists { "" } else { " (none)" };
        print_status(&format!("{}: {}{state}", file.kind.name(), printable(&file.path)));
    }
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["key", "value", "source", "locked"]);
    for (setting, shown) in SETTINGS.iter().zip(&shown.settings) {
        let value = effective_config::current().get(setting.key);
        let value = value.map_or_else(|| setting.default.to_owned(), |value| value.words.join(" "));
        let locked = if shown.locked { "locked" } else { "" };
        table.add_row([setting.key, &value, &shown.source, locked]);
    }
    print_stdout(&table.trim_fmt(), 0)
}

/// A generated page of the reference.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Page {
    /// All keys.
    Configuration,
    /// All environment variables.
    Environment,
}

/// Prints a page of the reference as Markdown.
pub fn print_page(page: Page) -> i32 {
    let text = match page {
        Page::Configuration => reference::configuration_page(),
        Page::Environment => reference::environment_page(),
    };
    print_stdout(text.trim_end(), 0)
}
