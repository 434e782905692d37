//! The reference pages of keys and variables, in Markdown.

use crate::settings::{Kind, SETTINGS, Scope, Setting};
use crate::variables::{SetBy, rows};

/// The page of all environment variables.
#[must_use]
pub fn environment_page() -> String {
    let mut page = String::from("# Environment variables\n");
    for (set_by, heading) in [
        (SetBy::User, "## You set them\n"),
        (SetBy::Job, "## Forebay sets them for the job\n"),
        (
            SetBy::Forebay,
            "## For Forebay's own programs\n\nDo not set these. They connect the parts of Forebay within a job.\n",
        ),
    ] {
        page.push_str(&format!("\n{heading}\n| variable | meaning |\n|---|---|\n"));
        for (names, meaning) in rows(set_by) {
            let names: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
            page.push_str(&format!("| {} | {meaning} |\n", names.join(", ")));
        }
        if set_by == SetBy::Job {
            page.push_str(
                "\nThe variables of the scheduler that the script was written for are set as well:\n\
                 [Scripts for Slurm, LSF, PBS and Flux](../how-to/schedulers.md).\n",
            );
        }
    }
    page
}

const HEAD: &str = "\
# Configuration

Forebay reads settings from these places. A later one overrides an earlier one:

1. the site file, `/etc/forebay.toml`
2. the user file, `$XDG_CONFIG_HOME/forebay/config.toml`, by default `~/.config/forebay/config.toml`
3. the project file, `forebay.toml` in the directory of the job script
4. environment variables
5. the command line

`forebay config` shows each value and its source. `forebay config job.sh` includes the project file of `job.sh`. With
`--explain`, `forebay run` lists the values that it uses.

## Files

The files are TOML. Each key has the name of its option:

```toml
store = \"/local/$USER\"
verify = \"end\"
drain = [\"*.nc:rate=500MB/s\", \"restart.*\"]
```

* Paths are absolute. `$NAME` and `${NAME}` stand for environment variables, and `$USER` for the user's name.
* Root must own the site file. You or root must own the others. Only the owner may have permission to write.
* Forebay refuses a file with an error: an unknown key, a wrong value, a file of another user, or a path that is not a
  regular file. The message names the line and the remedy.
* Forebay looks for the project file only in the directory of the script, never in directories above. `run`, `compare` and
  `tune` read it.
* A project file cannot choose where Forebay writes, and cannot set a command. In the site file and the user file, `launcher`
  can be a command, and `engine-profile` can name a profile with commands. `--on-close` and `--check` are options only.
* `forebay clean` and `forebay stage retry` use the values of the job or staging, not those of the files.

`engine` and `engine-profile` exclude each other. If two places set them, Forebay uses only that of the later place. If one place
sets both, Forebay refuses it.

Options without a value take one: `--trace=false` overrides `trace = true`, and `--pfs-model none` overrides a
model.

## Locked keys

The site file can lock keys:

```toml
verify = \"end\"
locked = [\"verify\", \"no-userns\"]
```

Forebay then refuses another value of these keys in any other place, with exit code 125 for `forebay run`. A locked key
without a value keeps its default. Locks prevent mistakes. They do not stop a user who wants to avoid them.

## Keys
";

/// The page of all keys.
#[must_use]
pub fn configuration_page() -> String {
    let mut page = String::from(HEAD);
    for setting in SETTINGS {
        page.push_str(&section(setting));
    }
    page
}

fn section(setting: &Setting) -> String {
    let Setting { key, about, allowed, default, .. } = setting;
    let option = if setting.has_option { format!("`--{key}`") } else { "none".to_owned() };
    let variable = setting.variable();
    let project = match setting.scope {
        Scope::Project => "yes",
        Scope::User => "no",
    };
    let quoted = if setting.kind == Kind::Flag { "`true` or `false`" } else { allowed };
    format!(
        "\n### {key}\n\n{about}.\n\n| | |\n|---|---|\n| value | {quoted} |\n| default | {default} |\n\
         | option | {option} |\n| variable | `{variable}` |\n| in a project file | {project} |\n",
        quoted = quoted.replace('|', "\\|"),
    )
}
