//! The persistent allocations that a script creates, uses and destroys.
//! Never looks whether an allocation exists or may be used: `forebay-persistent` does.

use std::collections::{HashMap, HashSet};

use crate::dialect::Dialect;
use crate::directive_check::Directive;
use crate::problem::{Position, Problem};
use crate::variables::shell_name;
use crate::{AccessMode, Request, Stage, VariableStyle, access, parse_size};

/// `#DW persistentdw`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PersistentDw {
    /// The allocation's name.
    pub name: String,
    /// Whether the directive is of the NNF dialect, which uses another variable.
    pub of_nnf: bool,
    /// The position of the directive.
    pub position: Position,
}

/// `#BB create_persistent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatePersistent {
    /// The allocation's name.
    pub name: String,
    /// The requested minimum size.
    pub capacity_bytes: u64,
    /// `pool=`.
    pub pool: Option<String>,
    /// The group whose members may use it, too: `access_mode=striped(group=NAME)`.
    pub group: Option<String>,
    /// The position of the directive.
    pub position: Position,
}

/// `#BB destroy_persistent`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DestroyPersistent {
    /// The allocation's name.
    pub name: String,
    /// Delete data that a killed job should have staged out.
    pub hurry: bool,
    /// The position of the directive.
    pub position: Position,
}

impl PersistentDw {
    /// The variables for its namespace. If the name is not valid in a shell, there is a second
    /// variable with `_` instead of `-` and `.`.
    pub fn variables(&self) -> Vec<String> {
        let shell_name = shell_name(&self.name);
        let mut names = vec![VariableStyle::DataWarp.of_persistent(&self.name)];
        if shell_name != self.name {
            names.push(VariableStyle::DataWarp.of_persistent(&shell_name));
        }
        if self.of_nnf {
            names.push(VariableStyle::Nnf { job: None }.of_persistent(&self.name));
        }
        names
    }
}

/// Adds a valid directive to the request.
pub(crate) fn add(request: &mut Request, directive: &Directive) -> Result<(), Vec<Problem>> {
    let Some(name) = directive.value("name").map(|token| token.text.clone()) else {
        return Ok(());
    };
    let position = directive.start;
    match directive.command.name {
        "persistentdw" => request.persistent.push(PersistentDw {
            name,
            of_nnf: directive.dialect == Dialect::Nnf,
            position,
        }),
        "create_persistent" => {
            let access = directive.value("access_mode").map(access::read).unwrap_or_default();
            if access.modes.contains(&AccessMode::Private) {
                return Err(vec![Problem::new(
                    position,
                    "a persistent allocation with access_mode=private: its namespaces would be those of \
                     a job's nodes, and the job ends",
                    "write access_mode=striped",
                )]);
            }
            let capacity = directive.value("capacity");
            request.create.push(CreatePersistent {
                name,
                capacity_bytes: capacity
                    .and_then(|token| parse_size(&token.text).ok())
                    .unwrap_or_default(),
                pool: directive.value("pool").map(|token| token.text.clone()),
                group: access.group,
                position,
            });
        }
        "destroy_persistent" => request.destroy.push(DestroyPersistent {
            name,
            hurry: directive.flags.contains(&"hurry"),
            position,
        }),
        _ => {}
    }
    Ok(())
}

/// Checks rules across all directives.
pub(crate) fn validate(request: &Request) -> Vec<Problem> {
    let used = request.persistent.iter();
    let used = used.map(|one| (one.name.as_str(), one.position, "used"));
    let made = request.create.iter();
    let made = made.map(|one| (one.name.as_str(), one.position, "made"));
    let gone = request.destroy.iter();
    let gone = gone.map(|one| (one.name.as_str(), one.position, "destroyed"));
    let mut first = HashMap::new();
    let mut problems = Vec::new();
    for (name, position, what) in used.chain(made).chain(gone) {
        // A script may use an allocation that it creates.
        let others = ["used", "made", "destroyed"].into_iter();
        let mut others = others.filter(|before| (*before, what) != ("used", "made"));
        let clash = others.find_map(|before| Some((*first.get(&(name, before))?, before)));
        if let Some((other, before)) = clash {
            let message = format!("{name} is {what} here and {before} at {other}");
            let hint =
                "name each allocation once; one script may make and use it, and another destroy it";
            problems.push(Problem::new(position, message, hint));
        }
        first.entry((name, what)).or_insert(position);
    }
    problems.extend(name_clash(&request.persistent));
    let names = request.persistent.iter().map(|one| one.name.clone());
    let shell_names = request.persistent.iter().map(|one| shell_name(&one.name));
    let written = names.chain(shell_names).collect();
    let stages = request.stage_in.iter().chain(&request.stage_out);
    problems.extend(stages.filter_map(|stage| unknown(stage, &written)));
    problems
}

/// Finds two names that are equal in a shell.
fn name_clash(used: &[PersistentDw]) -> Option<Problem> {
    let mut first = HashMap::new();
    let mut pairs = used.iter().map(|late| {
        let early = *first.entry(shell_name(&late.name)).or_insert(late);
        (early, late)
    });
    let (early, late) = pairs.find(|(early, late)| early.name != late.name)?;
    let message = format!(
        "{} and {} have one variable, ${}",
        early.name,
        late.name,
        VariableStyle::DataWarp.of_persistent(&shell_name(&late.name))
    );
    let hint = "use one of them in a job, or give one another name";
    Some(Problem::new(late.position, message, hint))
}

/// Finds a stage in an allocation that the job does not use. `used` has the names in both forms of a variable.
fn unknown(stage: &Stage, used: &HashSet<String>) -> Option<Problem> {
    let written = stage.persistent.as_deref()?;
    if used.contains(written) {
        return None;
    }
    let message =
        format!("staging in the persistent allocation {written}, which the job does not use");
    let hint = format!("add the line: #DW persistentdw name={written}");
    Some(Problem::new(stage.position, message, hint))
}
