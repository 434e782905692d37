//! Templates of commands, and their values. A variable that does not exist is an error.
//! Never quotes a value for the shell by itself: a template does, with the filter `quote`.

use std::collections::BTreeMap;

use forebay_directive::closest;
use minijinja::{Environment, UndefinedBehavior, Value};

/// Variables that each template has.
const EARLY: [&str; 7] = ["nodes", "node_list", "node", "node_index", "node_count", "job", "user"];
/// Variables that all but `capacity` have.
const LATE: [&str; 7] = [
    "store",
    "directory",
    "node_file",
    "capacity_bytes",
    "redundancy",
    "stripe_bytes",
    "stripe_count",
];
const MOUNT: &str = "mount";
const OPTIONS: &str = "options";

/// The variables of templates.
pub(crate) struct Values {
    values: BTreeMap<String, Value>,
}

impl Values {
    /// What is known before the nodes are asked.
    pub(crate) fn of_names(
        options: &BTreeMap<String, String>,
        names: &[&str],
        node: usize,
        job: &str,
    ) -> Self {
        let mut values = Self { values: BTreeMap::new() };
        values.set("nodes", &names.join(","));
        values
            .values
            .insert("node_list".to_owned(), names.iter().copied().map(Value::from).collect());
        values.set("node", names.get(node).copied().unwrap_or_default());
        values.set_number("node_index", node as u64);
        values.set_number("node_count", names.len() as u64);
        values.set("job", job);
        values.values.insert(OPTIONS.to_owned(), {
            let pair = |(name, value): (&String, &String)| (Value::from(name), Value::from(value));
            options.iter().map(pair).collect::<BTreeMap<Value, Value>>().into()
        });
        values
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.values.insert(name.to_owned(), Value::from(value));
    }

    pub(crate) fn set_number(&mut self, name: &str, value: u64) {
        self.values.insert(name.to_owned(), Value::from(value));
    }

    /// A text; empty if there is none.
    pub(crate) fn get(&self, name: &str) -> String {
        self.values.get(name).map(ToString::to_string).unwrap_or_default()
    }

    /// The text of a template.
    pub(crate) fn render(&self, template: &str) -> Result<String, String> {
        let environment = environment();
        let template = environment.template_from_str(template).map_err(|error| describe(&error))?;
        template.render(self.values.clone()).map_err(|error| describe(&error))
    }
}

/// When a template is used: this decides which variables it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Before the size is known.
    Capacity,
    /// Before the mount is known.
    Mount,
    /// Later.
    Command,
}

/// Checks a template: its syntax, its variables, its filters.
pub(crate) fn check_template(
    template: &str,
    when: When,
    options: &BTreeMap<String, String>,
) -> Result<(), String> {
    let mut known: Vec<String> = EARLY.map(str::to_owned).to_vec();
    known.extend(options.keys().map(|name| format!("{OPTIONS}.{name}")));
    if when != When::Capacity {
        known.extend(LATE.map(str::to_owned));
    }
    if when == When::Command {
        known.push(MOUNT.to_owned());
    }
    let environment = environment();
    let parsed = environment.template_from_str(template).map_err(|error| describe(&error))?;
    let mut used: Vec<_> = parsed.undeclared_variables(true).into_iter().collect();
    used.sort();
    for name in used {
        if known.contains(&name) || name == OPTIONS {
            continue;
        }
        let suggestion = match closest(&name, known.iter().map(String::as_str)) {
            Some(other) => format!("did you mean {other}?"),
            None => format!("the variables are {}", known.join(", ")),
        };
        return Err(format!("there is no variable {name}; {suggestion}"));
    }
    let mut values = Values::of_names(options, &["n1", "n2"], 0, "1");
    for name in EARLY.into_iter().chain(LATE).chain([MOUNT]) {
        if !values.values.contains_key(name) {
            values.set_number(name, 1);
        }
    }
    values.render(template).map(drop)
}

/// Whether a template uses a variable.
pub(crate) fn uses(template: &str, variable: &str) -> bool {
    let environment = environment();
    let parsed = environment.template_from_str(template);
    parsed.is_ok_and(|parsed| parsed.undeclared_variables(false).contains(variable))
}

fn environment<'a>() -> Environment<'a> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.add_filter("quote", |value: Value| quoted(&value.to_string()));
    environment
}

/// One word for the shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn describe(error: &minijinja::Error) -> String {
    let what = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) if line > 1 => format!("{what} (line {line} of the template)"),
        _ => what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_replaced_and_quoted_only_by_the_filter() {
        let options = BTreeMap::from([("pool".to_owned(), "it's".to_owned())]);
        let values = Values::of_names(&options, &["n1", "n2"], 1, "7");
        let text =
            values.render("{{ nodes }} {{ node }} {{ options.pool | quote }} {{ options.pool }}");
        assert_eq!(text.as_deref(), Ok("n1,n2 n2 'it'\\''s' it's"));
    }

    #[test]
    fn wrong_templates_are_named_with_suggestions() {
        let options = BTreeMap::from([("pool".to_owned(), "x".to_owned())]);
        let check = |template, when| check_template(template, when, &options);
        assert_eq!(check("{{ mount | quote }} {{ options.pool }}", When::Command), Ok(()));
        for (template, when, part) in [
            ("{{ nodse }}", When::Command, "did you mean nodes?"),
            ("{{ options.pol }}", When::Command, "did you mean options.pool?"),
            ("{{ mount }}", When::Mount, "no variable mount"),
            ("{{ capacity_bytes }}", When::Capacity, "no variable capacity_bytes"),
            ("{{ nodes", When::Command, "expected"),
            ("{{ nodes | quoted }}", When::Command, "quoted"),
            ("a\n{{ nodes | nofilter }}", When::Command, "line 2"),
        ] {
            let message = check(template, when).expect_err(template);
            assert!(message.contains(part), "{template}: {message}");
        }
    }
}
