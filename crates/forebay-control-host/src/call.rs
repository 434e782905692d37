//! The command line of `dw_wlm_cli`. Slurm writes it, and versions of Slurm differ: options that are not known are
//! passed over with their value, and written to the log.

use std::ffi::OsString;

use crate::state::is_set_aside;
use forebay_site::Error;

/// An option with a value, and its short form.
struct CallOption {
    long: &'static str,
    short: &'static str,
}

const OPTIONS: [CallOption; 11] = [
    CallOption { long: "--token", short: "-t" },
    CallOption { long: "--job", short: "-j" },
    CallOption { long: "--user", short: "-u" },
    CallOption { long: "--groupid", short: "-g" },
    CallOption { long: "--capacity", short: "-C" },
    CallOption { long: "--caller", short: "-c" },
    CallOption { long: "--pathfile", short: "-p" },
    CallOption { long: "--nodehostnamefile", short: "" },
    CallOption { long: "--nidlistfile", short: "" },
    CallOption { long: "--access", short: "-a" },
    CallOption { long: "--type", short: "-T" },
];
const FUNCTION: CallOption = CallOption { long: "--function", short: "-f" };
const HURRY: &str = "--hurry";
const POLL: &str = "--poll";

/// A function of the protocol and the options that it must get.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Long names of required options.
    pub required: &'static [&'static str],
}

/// All functions.
pub const FUNCTIONS: [Function; 14] = [
    Function { name: "job_process", required: &["--job"] },
    Function { name: "pools", required: &[] },
    Function { name: "show_sessions", required: &[] },
    Function { name: "show_instances", required: &[] },
    Function { name: "show_configurations", required: &[] },
    Function {
        name: "setup",
        required: &["--token", "--caller", "--user", "--groupid", "--capacity", "--job"],
    },
    Function { name: "data_in", required: &["--token", "--job"] },
    Function { name: "real_size", required: &["--token"] },
    Function { name: "paths", required: &["--job", "--token", "--pathfile"] },
    Function { name: "pre_run", required: &["--token", "--job"] },
    Function { name: "post_run", required: &["--token", "--job"] },
    Function { name: "data_out", required: &["--token", "--job"] },
    Function { name: "teardown", required: &["--token", "--job"] },
    Function {
        name: "create_persistent",
        required: &["--caller", "--token", "--user", "--capacity"],
    },
];

/// A call of one function.
#[derive(Debug)]
pub struct Call {
    /// The function.
    pub function: &'static Function,
    values: Vec<(&'static str, String)>,
    /// Whether data need not be saved.
    pub hurry: bool,
    /// Whether a staging is asked for from time to time, and not waited for.
    pub polls: bool,
    /// Words that were passed over.
    pub ignored: Vec<String>,
}

impl Call {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// Names what is missing, given twice, without a value or not text.
    pub fn parse(words: &[OsString]) -> Result<Self, Error> {
        let mut texts = Vec::new();
        for word in words {
            let text = word.to_str();
            texts.push(text.ok_or_else(|| {
                let shown = forebay_host::files::lossy(word);
                Error::new(format!("the argument {shown:?} is not UTF-8"))
            })?);
        }
        let mut found = ParsedCall::default();
        found.read(&texts)?;
        let name = found.function.ok_or_else(|| {
            let names: Vec<_> = FUNCTIONS.iter().map(|function| function.name).collect();
            Error::new("--function is missing")
                .with_hint(format!("the functions are {}", names.join(", ")))
        })?;
        let function = FUNCTIONS.iter().find(|function| function.name == name);
        let function = function.ok_or_else(|| {
            let meant =
                forebay_directive::closest(&name, FUNCTIONS.iter().map(|function| function.name));
            let error = Error::new(format!("there is no function {name:?}"));
            match meant {
                Some(meant) => error.with_hint(format!("did you mean {meant}?")),
                None => error.with_hint(
                    "this program speaks the protocol of Slurm's plugin burst_buffer/datawarp",
                ),
            }
        })?;
        let call = Self {
            function,
            values: found.values,
            hurry: found.hurry,
            polls: found.polls,
            ignored: found.ignored,
        };
        let missing = function.required.iter().find(|option| call.optional(option).is_none());
        match missing {
            Some(option) => Err(Error::new(format!("{name}: {option} is missing"))),
            None => Ok(call),
        }
    }

    /// The value of an option that the function requires.
    pub fn value(&self, option: &str) -> &str {
        self.optional(option).unwrap_or_default()
    }

    /// The value of an option, if it is given.
    pub fn optional(&self, option: &str) -> Option<&str> {
        let mut given = self.values.iter();
        given.find(|(name, _)| *name == option).map(|(_, value)| value.as_str())
    }

    /// The number in an option.
    ///
    /// # Errors
    /// If it is none.
    pub fn u32_value(&self, option: &str) -> Result<u32, Error> {
        let text = self.value(option);
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| is_number);
        number.ok_or_else(|| {
            Error::new(format!("{}: {option} {text:?} is no number of 32 bits", self.function.name))
        })
    }

    /// The token: the ID of a job, or the name of a persistent allocation.
    ///
    /// # Errors
    /// If it is neither. It becomes a part of paths.
    pub fn token(&self) -> Result<&str, Error> {
        let token = self.value("--token");
        let is_number = !token.is_empty()
            && token.len() <= 20
            && token.bytes().all(|byte| byte.is_ascii_digit());
        // Only an administrator removes an allocation that was set aside.
        let is_whole = is_number || (self.function.name == "teardown" && is_set_aside(token));
        match forebay_directive::name_error(token) {
            Some(what) if !is_whole => {
                let message =
                    format!("{}: --token {token:?} is no job ID, and {what}", self.function.name);
                Err(Error::new(message))
            }
            _ => Ok(token),
        }
    }
}

#[derive(Default)]
struct ParsedCall {
    function: Option<String>,
    values: Vec<(&'static str, String)>,
    hurry: bool,
    polls: bool,
    ignored: Vec<String>,
}

impl ParsedCall {
    fn read(&mut self, words: &[&str]) -> Result<(), Error> {
        let twice = |name: &str| Error::new(format!("{name} is given twice"));
        let mut rest = words.iter().copied().peekable();
        while let Some(word) = rest.next() {
            let is = |named: &CallOption| {
                named.long == word || (!named.short.is_empty() && named.short == word)
            };
            if word == HURRY {
                if std::mem::replace(&mut self.hurry, true) {
                    return Err(twice(HURRY));
                }
            } else if word == POLL {
                self.polls = true;
            } else if is(&FUNCTION) {
                let name = value_of(FUNCTION.long, rest.next())?;
                if self.function.replace(name).is_some() {
                    return Err(twice(FUNCTION.long));
                }
            } else if let Some(option) = OPTIONS.iter().find(|option| is(option)) {
                if self.values.iter().any(|(name, _)| *name == option.long) {
                    return Err(twice(option.long));
                }
                let value = value_of(option.long, rest.next())?;
                self.values.push((option.long, value));
            } else {
                self.ignored.push(word.to_owned());
                let value = rest.next_if(|value| word.starts_with('-') && !value.starts_with('-'));
                self.ignored.extend(value.map(str::to_owned));
            }
        }
        Ok(())
    }
}

/// An empty value, or another option in its place, is none.
fn value_of(option: &str, value: Option<&str>) -> Result<String, Error> {
    match value {
        Some(value) if !value.is_empty() && !value.starts_with("--") => Ok(value.to_owned()),
        _ => Err(Error::new(format!("{option} has no value"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Call, String> {
        let words: Vec<_> = text.split_whitespace().map(OsString::from).collect();
        Call::parse(&words).map_err(|error| error.to_string())
    }

    /// A call of each function with all that it requires.
    fn whole(function: &Function) -> Vec<String> {
        let mut words = vec!["--function".to_owned(), function.name.to_owned()];
        for option in function.required {
            words.extend([(*option).to_owned(), "7".to_owned()]);
        }
        words
    }

    #[test]
    fn each_argument_that_is_missing_or_doubled_is_named() {
        for function in &FUNCTIONS {
            let words = whole(function);
            parse(&words.join(" ")).expect("whole");
            for option in function.required {
                let at = words.iter().position(|word| word == option).expect("there");
                let without = [&words[..at], &words[at + 2..]].concat();
                let error = parse(&without.join(" ")).expect_err(option);
                assert_eq!(error, format!("{}: {option} is missing", function.name));
                let twice = [&words[..], &words[at..at + 2]].concat();
                assert_eq!(
                    parse(&twice.join(" ")).expect_err(option),
                    format!("{option} is given twice")
                );
                let no_value = [&words[..=at], &words[at + 2..]].concat();
                assert_eq!(
                    parse(&no_value.join(" ")).expect_err(option),
                    format!("{option} has no value")
                );
            }
        }
        assert!(
            parse("")
                .expect_err("none")
                .starts_with("--function is missing; the functions are job_process")
        );
        assert_eq!(parse("--function").expect_err("none"), "--function has no value");
        assert_eq!(
            parse("--function pools --function pools").expect_err("two"),
            "--function is given twice"
        );
        assert_eq!(
            parse("--function pols").expect_err("no"),
            "there is no function \"pols\"; did you mean pools?"
        );
        assert_eq!(
            parse("--function pools --hurry --hurry").expect_err("two"),
            "--hurry is given twice"
        );
    }

    #[test]
    fn unknown_options_are_passed_over_with_their_value() {
        let call =
            parse("--new x --function pools --flag --token 7 -q word --jobexecutionnodefile /f")
                .expect("call");
        assert_eq!(
            call.ignored,
            ["--new", "x", "--flag", "-q", "word", "--jobexecutionnodefile", "/f"]
        );
        assert_eq!((call.function.name, call.token()), ("pools", Ok("7")));
    }

    #[test]
    fn short_options_are_those_of_create_persistent() {
        let call = parse(
            "--function create_persistent -c CLI -t proj1 -u 65534 -C flash:3 -a striped -T scratch",
        );
        let call = call.expect("call");
        assert_eq!((call.token(), call.u32_value("--user")), (Ok("proj1"), Ok(65534)));
        assert_eq!((call.value("--capacity"), call.value("--type")), ("flash:3", "scratch"));
    }

    #[test]
    fn tokens_and_numbers_that_could_be_part_of_a_path_or_wrap_are_refused() {
        for token in ["../x", "a/b", ".x", "1a", "-1", "é", "123456789012345678901"] {
            let error = parse(&format!("--function real_size --token {token}"))
                .expect("call")
                .token()
                .map(drop);
            assert!(
                error.expect_err(token).to_string().contains("is no job ID, and is no name"),
                "{token}"
            );
        }
        for number in ["-1", "4294967296", "x", "+1", "1 "] {
            let words = [
                "--function",
                "create_persistent",
                "-c",
                "x",
                "-t",
                "p",
                "-C",
                "f:1",
                "-u",
                number,
            ];
            let call = Call::parse(&words.map(OsString::from)).expect("call");
            assert!(call.u32_value("--user").is_err(), "{number}");
        }
    }
}
