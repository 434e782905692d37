//! Reads one configuration file.
//! Assumes that anyone may have written it, so it reads only a regular file of limited size that nobody else can write.
//! Never runs what it reads.

use std::io::Read;
use std::path::Path;

use forebay_directive::closest;
use forebay_host::files::{self, Kind as FileKind};
use forebay_host::messages::line_of;
use forebay_host::users;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::settings::{Kind, SETTINGS, Scope, Setting};
use crate::value::{Errors, Layer, Source, Value};

/// Bytes of a configuration file at most.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The key of the site file that lists locked keys.
const LOCKED: &str = "locked";

/// A file to read, and what may own it.
pub(crate) struct ConfigFile<'a> {
    pub(crate) layer: Layer,
    pub(crate) path: &'a Path,
    /// True if the user may own it; root always may.
    pub(crate) may_be_users: bool,
    /// Looks up variables of paths.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
}

/// What a file sets.
#[derive(Default)]
pub(crate) struct Content {
    pub(crate) values: Vec<(&'static Setting, Value)>,
    /// Locked keys with the line that locks them.
    pub(crate) locked: Vec<(&'static str, usize)>,
}

impl ConfigFile<'_> {
    /// Reads the file; none if there is none. Adds its errors to `errors`.
    pub(crate) fn read(&self, errors: &mut Errors) -> Option<Content> {
        let text = match self.text() {
            Ok(text) => text?,
            Err((message, hint)) => {
                errors.add_with_hint(message, hint);
                return None;
            }
        };
        let mut content = Content::default();
        let (table, wrong) = DeTable::parse_recoverable(&text);
        for error in &wrong {
            let line = error.span().map_or(1, |span| line_of(&text, span.start));
            let what = error.message().lines().next().unwrap_or_default();
            errors.add(format!("{}:{line}: {what}", self.path.display()));
        }
        if !wrong.is_empty() {
            return Some(content); // what follows a syntax error may be read wrongly
        }
        for (key, value) in table.get_ref() {
            let line = line_of(&text, key.span().start);
            if let Err(message) = self.entry(key.get_ref(), value, line, &mut content) {
                errors.add(format!("{}:{line}: {message}", self.path.display()));
            }
        }
        Some(content)
    }

    fn text(&self) -> Result<Option<String>, (String, String)> {
        let path = self.path.display();
        let hint = match self.layer {
            Layer::Site => format!("as root: chown root {path}"),
            Layer::User => "set HOME or XDG_CONFIG_HOME to a directory of yours".to_owned(),
            Layer::Project => "run a copy of the script in a directory of yours".to_owned(),
        };
        trusted_text(self.path, self.layer.name(), self.may_be_users, &hint)
    }

    fn entry(
        &self,
        key: &str,
        value: &Spanned<DeValue>,
        line: usize,
        content: &mut Content,
    ) -> Result<(), String> {
        if key == LOCKED {
            return self.lock(value.get_ref(), line, content);
        }
        let setting = Setting::find(key).ok_or_else(|| unknown(key))?;
        if self.layer == Layer::Project && setting.scope == Scope::User {
            return Err(format!(
                "a project file cannot set {key}; set it in the user file, with {} or on the command line",
                setting.variable()
            ));
        }
        let wrong = |what: &str| format!("{key}: {what}; allowed: {}", setting.allowed);
        let words = words(setting.kind, value.get_ref())
            .ok_or_else(|| wrong(&format!("it is of type {}", value.get_ref().type_str())))?;
        let words: Result<Vec<_>, _> =
            words.into_iter().map(|word| self.word(setting, word)).collect();
        let words = words.map_err(|what| wrong(&what))?;
        let source = Source::File { layer: self.layer, path: self.path.to_owned(), line };
        content.values.push((setting, Value::new(setting, words, source)?));
        Ok(())
    }

    /// A word as it takes effect: in a path, the values of variables.
    fn word(&self, setting: &Setting, word: String) -> Result<String, String> {
        if setting.kind == Kind::List {
            let has_target = word.split(':').skip(1).any(|part| part.starts_with("to="));
            let is_refused = has_target && self.layer == Layer::Project;
            return if is_refused {
                Err(format!("{word:?}: a project file may not name to="))
            } else {
                Ok(word)
            };
        }
        if setting.kind != Kind::Path {
            return Ok(word);
        }
        let path = expand(&word, self.variable)?;
        if !path.starts_with('/') && !(setting.is_name)(&path) {
            return Err(format!("{word:?}: the path is relative"));
        }
        Ok(path)
    }

    fn lock(&self, value: &DeValue, line: usize, content: &mut Content) -> Result<(), String> {
        if self.layer != Layer::Site {
            return Err("only the site file can lock keys".to_owned());
        }
        let keys =
            value.as_array().ok_or("locked: write a list of keys, for example [\"store\"]")?;
        for key in keys.iter() {
            let key = key.get_ref().as_str().ok_or("locked: a key is a text")?;
            let setting = Setting::find(key).ok_or_else(|| format!("locked: {}", unknown(key)))?;
            content.locked.push((setting.key, line));
        }
        Ok(())
    }
}

/// The text of a regular file that nobody else can write; none if there is no file.
///
/// # Errors
/// Message and hint. `owner_hint` is for a file of another user.
pub fn trusted_text(
    path: &Path,
    name: &str,
    may_be_users: bool,
    owner_hint: &str,
) -> Result<Option<String>, (String, String)> {
    let shown = path.display();
    let refused = |why: String, hint: String| (format!("{shown}: the {name} {why}"), hint);
    let unreadable = |error: forebay_host::Error| {
        let hint = "make it readable, or remove it".to_owned();
        refused(format!("cannot be read: {}", error.source), hint)
    };
    let file = match files::open_source(path, true) {
        Ok(file) => file,
        // Without access to the directory, the file is not one of this user.
        Err(_) if files::status_of_name(path).is_err() => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    let found = files::status_of(&file, path).map_err(unreadable)?;
    if found.kind != FileKind::File {
        let hint = format!("remove it, or put a file with settings at {shown}");
        return Err(refused("is not a regular file".to_owned(), hint));
    }
    if found.owner != 0 && !(may_be_users && found.owner == users::user_id()) {
        let owner = users::user_named(found.owner);
        let whose = if may_be_users { "you or root" } else { "root" };
        let why = format!("belongs to {owner}; {whose} must own it");
        return Err(refused(why, owner_hint.to_owned()));
    }
    if found.mode & 0o022 != 0 {
        let why = format!("can be written by other users (mode {:04o})", found.mode);
        return Err(refused(why, format!("chmod go-w {shown}")));
    }
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    if let Err(error) = read {
        let why = format!("cannot be read: {error}");
        return Err(refused(why, "write it as UTF-8".to_owned()));
    }
    if text.len() as u64 > FILE_BYTES_MAX {
        let why = format!("is larger than {FILE_BYTES_MAX} bytes");
        return Err(refused(why, "remove what is no setting".to_owned()));
    }
    Ok(Some(text))
}

/// The words of a value; none if it has another type.
fn words(kind: Kind, value: &DeValue) -> Option<Vec<String>> {
    let text = |value: &DeValue| value.as_str().map(str::to_owned);
    let word = match kind {
        Kind::Flag => value.as_bool()?.to_string(),
        Kind::Number => value.as_integer()?.as_str().to_owned(),
        Kind::Text | Kind::Path => text(value)?,
        Kind::List => match value.as_array() {
            Some(values) => return values.iter().map(|value| text(value.get_ref())).collect(),
            None => text(value)?,
        },
    };
    Some(vec![word])
}

fn unknown(key: &str) -> String {
    let keys = SETTINGS.iter().map(|setting| setting.key).chain([LOCKED]);
    match closest(&key.replace('_', "-"), keys) {
        Some(other) => format!("there is no key {key}; did you mean {other}?"),
        None => format!("there is no key {key}; forebay config lists the keys"),
    }
}

/// Replaces `$NAME` and `${NAME}` by variables.
fn expand(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut parts = text.split('$');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = match part.strip_prefix('{') {
            Some(braced) => braced.split_once('}').ok_or("a brace is not closed")?,
            None => {
                let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
                part.split_at(part.find(|c| !is_name(c)).unwrap_or(part.len()))
            }
        };
        let value = match name {
            "" => return Err("a $ without the name of a variable".to_owned()),
            "USER" => users::user_name(),
            _ => variable(name).ok_or_else(|| format!("${name} is not set"))?,
        };
        path.push_str(&value);
        path.push_str(rest);
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_paths_are_replaced() {
        let variable = |name: &str| (name == "SCRATCH").then(|| "/s".to_owned());
        let expanded = |text| expand(text, &variable);
        assert_eq!(expanded("/a/b").as_deref(), Ok("/a/b"));
        assert_eq!(expanded("$SCRATCH/x").as_deref(), Ok("/s/x"));
        assert_eq!(expanded("/a${SCRATCH}b").as_deref(), Ok("/a/sb"));
        assert_eq!(expanded("$NONE/x"), Err("$NONE is not set".to_owned()));
        assert!(expanded("$/x").is_err() && expanded("${SCRATCH").is_err());
    }

    #[test]
    fn wrong_key_gets_the_most_similar_suggestion() {
        assert!(unknown("stroe").ends_with("did you mean store?"));
        assert!(unknown("strict_capacity").ends_with("did you mean strict-capacity?"));
        assert!(unknown("qqq").ends_with("forebay config lists the keys"));
    }
}
