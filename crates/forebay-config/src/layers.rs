//! Puts the sources on top of each other.
//! Assumes that the caller knows the command line. Reports the errors of all sources together, and never acts on a value.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};

use crate::file::ConfigFile;
use crate::settings::{SETTINGS, Setting};
use crate::sources::Sources;
use crate::value::{Errors, Layer, Source, Value};

/// Two keys for one choice: the value of the higher source counts alone.
const ALTERNATIVES: [&str; 2] = ["engine", "engine-profile"];

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFile {
    /// Which file.
    pub layer: Layer,
    /// Its path.
    pub path: PathBuf,
    /// False if there is none.
    pub is_present: bool,
}

/// The values of all sources but the command line.
#[derive(Debug, Clone, Default)]
pub struct Configuration {
    values: Vec<(&'static str, Value)>,
    /// Locked keys with the place that locks them, and the value of the site.
    locked: Vec<(&'static str, Source, Option<Value>)>,
    /// The files that were looked for.
    pub files: Vec<ReadFile>,
}

impl Configuration {
    /// Reads the files and variables.
    ///
    /// # Errors
    /// All errors of all sources.
    pub fn load(sources: &Sources) -> Result<Self, Errors> {
        let mut errors = Errors::default();
        let mut loaded = Self::default();
        let files = [
            (Layer::Site, Some(&sources.site), sources.is_site_named),
            (Layer::User, sources.user.as_ref(), true),
            (Layer::Project, sources.project.as_ref(), true),
        ];
        for (layer, path, may_be_users) in files {
            let Some(path) = path else { continue };
            let variable = &sources.variable;
            let content = ConfigFile { layer, path, may_be_users, variable }.read(&mut errors);
            loaded.files.push(ReadFile {
                layer,
                path: path.clone(),
                is_present: content.is_some(),
            });
            let content = content.unwrap_or_default();
            for (setting, value) in content.values {
                loaded.set(setting, value, &mut errors);
            }
            for (key, line) in content.locked {
                let source = Source::File { layer, path: path.clone(), line };
                loaded.locked.push((key, source, loaded.get(key).cloned()));
            }
        }
        for setting in SETTINGS {
            let name = setting.variable();
            let Some(word) = (sources.variable)(&name) else { continue };
            match Value::new(setting, vec![word], Source::Variable(name.clone())) {
                Ok(value) => loaded.set(setting, value, &mut errors),
                Err(message) => errors.add(format!("{name}: {message}")),
            }
        }
        loaded.keep_one_alternative(&mut errors);
        if errors.messages.is_empty() { Ok(loaded) } else { Err(errors) }
    }

    fn keep_one_alternative(&mut self, errors: &mut Errors) {
        let [Some(one), Some(other)] = ALTERNATIVES.map(|key| self.get(key)) else { return };
        let (one, other) = (&one.source, &other.source);
        let lower = match one.rank().cmp(&other.rank()) {
            Ordering::Less => 0,
            Ordering::Greater => 1,
            Ordering::Equal => {
                let [key, other_key] = ALTERNATIVES;
                let message = format!("{key} ({one}) and {other_key} ({other}) exclude each other");
                return errors.add_with_hint(message, "keep one of them".to_owned());
            }
        };
        let (key, higher) = (ALTERNATIVES[lower], [other, one][lower]);
        if let Some(place) = self.lock(key) {
            let message = format!(
                "{higher}: {} cannot be set: the site file locks {key} ({place})",
                ALTERNATIVES[1 - lower]
            );
            return errors.add_with_hint(message, "leave it out".to_owned());
        }
        self.values.retain(|(other, _)| *other != key);
    }

    fn set(&mut self, setting: &'static Setting, value: Value, errors: &mut Errors) {
        match self.check_lock(setting, &value) {
            Ok(()) => self.replace(setting, Some(value)),
            Err((message, hint)) => errors.add_with_hint(message, hint),
        }
    }

    /// Replaces the value of a key, or removes it.
    pub fn replace(&mut self, setting: &'static Setting, value: Option<Value>) {
        self.values.retain(|(key, _)| *key != setting.key);
        self.values.extend(value.map(|value| (setting.key, value)));
    }

    /// The value of a key; none if nobody set it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.iter().find(|(other, _)| *other == key).map(|(_, value)| value)
    }

    /// The value of a key with one word, as a path.
    #[must_use]
    pub fn path(&self, key: &str) -> Option<&Path> {
        self.get(key).and_then(|value| value.words.first()).map(Path::new)
    }

    /// The place that locks a key.
    #[must_use]
    pub fn lock(&self, key: &str) -> Option<&Source> {
        self.locked.iter().find(|(other, ..)| *other == key).map(|(_, source, _)| source)
    }

    /// The value that words of an option stand for.
    ///
    /// # Errors
    /// Message and hint if the words are wrong or the site file locks the key with another value.
    pub fn option(
        &self,
        setting: &'static Setting,
        words: Vec<String>,
    ) -> Result<Value, (String, String)> {
        let source = Source::Option(setting.key.to_owned());
        let hint = || format!("allowed: {}", setting.allowed);
        let value = Value::new(setting, words, source).map_err(|message| (message, hint()))?;
        self.check_lock(setting, &value).map(|()| value)
    }

    /// Accepts the value of the site.
    ///
    /// # Errors
    /// Message and hint if the site file locks the key and has another value.
    pub fn check_lock(&self, setting: &Setting, value: &Value) -> Result<(), (String, String)> {
        let locked = self.locked.iter().find(|(key, ..)| *key == setting.key);
        let Some((key, place, of_site)) = locked else { return Ok(()) };
        let is_default_flag = of_site.is_none() && value.normal == [setting.default];
        if is_default_flag || of_site.as_ref().is_some_and(|site| site.normal == value.normal) {
            return Ok(());
        }
        let value_of_site = of_site
            .as_ref()
            .map_or_else(|| setting.default.to_owned(), |site| site.words.join(" "));
        let set_by = &value.source;
        Err((
            format!("{set_by}: {key} cannot be changed: the site file locks it ({place})"),
            format!("leave it out; the value of the site is {value_of_site}"),
        ))
    }

    /// The files that set values which are in effect.
    #[must_use]
    pub fn files_in_effect(&self) -> Vec<&Path> {
        let is_used = |file: &&ReadFile| {
            let of = |(_, value): &(_, Value)| matches!(&value.source, Source::File { layer, .. } if *layer == file.layer);
            self.values.iter().any(of)
        };
        self.files.iter().filter(is_used).map(|file| file.path.as_path()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Writes a file as Forebay accepts it.
    fn file(directory: &Path, name: &str, text: &str) -> PathBuf {
        let path = directory.join(name);
        let fresh = directory.join("fresh");
        forebay_host::files::write_atomically(&path, &fresh, text.as_bytes()).expect("written");
        forebay_host::files::set_mode(&path, 0o644).expect("mode");
        path
    }

    fn load(
        site: &str,
        user: &str,
        project: &str,
        variables: &[(&str, &str)],
    ) -> Result<Configuration, Errors> {
        let scratch = tempfile::tempdir().expect("tempdir");
        let variables: BTreeMap<String, String> = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Configuration::load(&Sources {
            site: file(scratch.path(), "site", site),
            is_site_named: true,
            user: Some(file(scratch.path(), "user", user)),
            project: Some(file(scratch.path(), "project", project)),
            variable: Box::new(move |name| variables.get(name).cloned()),
        })
    }

    fn rate(loaded: &Configuration) -> Option<&str> {
        loaded.get("rate").map(|value| value.words[0].as_str())
    }

    #[test]
    fn later_sources_override_earlier_ones() {
        let variables = [("FOREBAY_RATE", "4MB")];
        let texts = ["rate = '1MB'", "rate = '2MB'", "rate = '3MB'"];
        let at = |number: usize| {
            let text = |index: usize| if index < number { texts[index] } else { "" };
            let variables = if number > 3 { &variables[..] } else { &[] };
            load(text(0), text(1), text(2), variables).expect("loaded")
        };
        let found: Vec<_> = (0..5).map(|number| rate(&at(number)).map(str::to_owned)).collect();
        let expected = [None, Some("1MB"), Some("2MB"), Some("3MB"), Some("4MB")];
        assert_eq!(found, expected.map(|one| one.map(str::to_owned)));
    }

    #[test]
    fn locked_key_keeps_the_value_of_the_site() {
        let site = "rate = '1MB'\nlocked = ['rate', 'trace']";
        for (user, project, variables) in [
            ("rate = '2MB'", "", vec![]),
            ("", "rate = '2MB'", vec![]),
            ("", "", vec![("FOREBAY_RATE", "2MB")]),
            ("trace = true", "", vec![]),
        ] {
            let errors = load(site, user, project, &variables).expect_err("locked");
            assert_eq!(errors.messages.len(), 1);
            assert!(errors.to_string().contains("/site:2)"), "{errors}");
        }
        let same = load(site, "rate = '1000kB/s'\ntrace = false", "", &[]).expect("same value");
        assert_eq!(rate(&same), Some("1000kB/s"));
        let setting = Setting::find("rate").expect("a setting");
        assert!(same.option(setting, vec!["2MB".to_owned()]).is_err());
        assert!(same.option(setting, vec!["1MB".to_owned()]).is_ok());
    }

    #[test]
    fn engine_and_its_profile_replace_each_other() {
        let found = |site: &str, user: &str, variables: &[(&str, &str)]| {
            let loaded = load(site, user, "", variables).expect("loaded");
            ALTERNATIVES.map(|key| loaded.get(key).map(|value| value.words[0].clone()))
        };
        let (engine, profile) = ("engine = 'ceph'", "engine-profile = 'daos'");
        let (ceph, daos) = (Some("ceph".to_owned()), Some("daos".to_owned()));
        assert_eq!(found(engine, profile, &[]), [None, daos.clone()]);
        assert_eq!(found(profile, engine, &[]), [ceph, None]);
        assert_eq!(found("", engine, &[("FOREBAY_ENGINE_PROFILE", "daos")]), [None, daos]);
        let both = load("", &format!("{engine}\n{profile}"), "", &[]).expect_err("both");
        assert!(both.to_string().contains("user:1) and engine-profile ("), "{both}");
        let site = format!("{engine}\nlocked = ['engine']");
        let locked = load(&site, profile, "", &[]).expect_err("locked");
        let text = "user:1: engine-profile cannot be set: the site file locks engine (";
        assert!(locked.to_string().contains(text), "{locked}");
    }

    #[test]
    fn all_errors_are_reported_together_with_their_lines() {
        let user = "stroe = '/x'\nverify = 'fast'\ntrace = 1\nlocked = ['rate']\nstore = 'a/b'";
        let project = "store = '/x'\ndrain = ['*.nc:to=/x']";
        let errors = load("", user, project, &[("FOREBAY_ON_CLOSE_JOBS", "0")]).expect_err("wrong");
        let expected = [
            ("user:1:", "did you mean store?"),
            ("user:2:", "\"off\", \"copy\" or \"end\""),
            ("user:3:", "true or false"),
            ("user:4:", "only the site file"),
            ("user:5:", "relative"),
            ("project:1:", "cannot set store"),
            ("project:2:", "may not name to="),
            ("FOREBAY_ON_CLOSE_JOBS", "1 to 1024"),
        ];
        assert_eq!(errors.messages.len(), expected.len(), "{errors}");
        for (place, text) in expected {
            let is_there = |line: &&String| line.contains(place) && line.contains(text);
            assert!(errors.messages.iter().any(|line| is_there(&line)), "{place} {text}: {errors}");
        }
    }

    #[test]
    fn syntax_error_names_its_line() {
        let errors = load("", "verify = 'end'\nrate =\n", "", &[]).expect_err("syntax");
        assert!(errors.to_string().contains("/user:2: "), "{errors}");
    }

    #[test]
    fn file_that_others_can_write_is_refused() {
        let scratch = tempfile::tempdir().expect("tempdir");
        let path = file(scratch.path(), "user", "trace = true");
        let user = Sources {
            site: scratch.path().join("none"),
            is_site_named: true,
            user: Some(path.clone()),
            project: None,
            variable: Box::new(|_| None),
        };
        assert!(Configuration::load(&user).is_ok());
        forebay_host::files::set_mode(&path, 0o664).expect("mode");
        let errors = Configuration::load(&user).expect_err("writable");
        assert_eq!(errors.hint, Some(format!("chmod go-w {}", path.display())));
    }
}
