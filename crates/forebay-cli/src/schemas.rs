//! `forebay __schemas`: the JSON schemas of what this program prints and records (docs/reference/json.md).
//! Assumes that the directory exists. Never removes the file of a schema that the table no longer has.

use std::path::Path;

use forebay_control_host::control::{Reaped, Status as SiteStatus};
use forebay_doctor::{EngineFound, Finding};
use forebay_host::exit_codes::FAILED;
use forebay_host::files;
use forebay_job::{Outcome, Profiled};
use forebay_onclose::{CommandSummary, DrainStatus};
use forebay_profile::JobFile;
use forebay_request_server::Accounting;
use forebay_terminal::{Refusal, print_error};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use crate::compare::Block;
use crate::emulation::Emulated;
use crate::persistent::{DestroyedAllocation, PersistentStatus};
use crate::stage::{Entry, StagingStatus};
use crate::{clean, config, engine, gather, jobs, machines, preview, run, series, status};

/// Begin of each schema's `$id`; its name and version follow. The name `.invalid` belongs to nobody: it identifies a
/// schema and is never fetched.
const ID: &str = "https://forebay.invalid/schemas";

/// Name of the schema's file, its version, what prints or holds the JSON, and its type.
type Output = (&'static str, u32, &'static str, fn(SchemaGenerator) -> Schema);

/// All outputs. docs/reference/json.md says when a version rises.
const OUTPUTS: [Output; 27] = [
    ("accounting", 1, "dw_get_accounting_data_json()", of::<Accounting>),
    ("clean", 1, "each line of forebay clean --json", of::<clean::Cleaned>),
    ("compare", 1, "forebay compare --json", of::<Vec<Block>>),
    ("config", 1, "forebay config --json", of::<config::ConfigReport>),
    ("control-reap", 1, "forebay control reap --json", of::<Reaped>),
    ("control-status", 1, "forebay control status --json", of::<SiteStatus>),
    ("doctor", 1, "forebay doctor --json", of::<Vec<Finding>>),
    ("doctor-engine", 1, "forebay doctor --engine --json", of::<EngineFound>),
    ("drain", 1, "forebay drain status --json and forebay drain wait --json", of::<DrainStatus>),
    ("dry-run", 1, "forebay run --dry-run --json", of::<preview::Plan>),
    ("engine-bundle", 1, "forebay engine bundle --json", of::<engine::Bundled>),
    ("engine-list", 1, "forebay engine list --json", of::<Vec<engine::ListedEngine>>),
    ("error", 1, "a command with --json that fails", of::<Refusal>),
    ("gather", 1, "forebay gather --json", of::<Vec<gather::Gathered>>),
    ("job", 1, "job.json in the record of a job", job),
    ("jobs", 1, "forebay jobs --json", of::<Vec<jobs::Job>>),
    ("machines", 1, "forebay machines --json", of::<Vec<machines::MachineFile>>),
    (
        "persistent",
        1,
        "forebay persistent create --json and forebay persistent show --json",
        of::<PersistentStatus>,
    ),
    ("persistent-destroy", 1, "forebay persistent destroy --json", of::<DestroyedAllocation>),
    ("persistent-list", 1, "forebay persistent list --json", of::<Vec<PersistentStatus>>),
    ("profile", 1, "forebay profile --json", of::<Profiled>),
    ("run", 1, "forebay run --json", of::<run::RunReport>),
    ("series", 1, "each line of forebay __series", of::<series::Line>),
    (
        "stage",
        1,
        "forebay stage in, out, cancel, forget and retry with --json",
        of::<StagingStatus>,
    ),
    ("stage-list", 1, "forebay stage status, wait and list with --json", of::<Vec<Entry>>),
    ("status", 1, "forebay status --json", of::<Vec<status::Line>>),
    ("watch", 1, "forebay watch --json", of::<CommandSummary>),
];

fn of<T: JsonSchema>(generator: SchemaGenerator) -> Schema {
    generator.into_root_schema_for::<T>()
}

/// The schema of job.json. Its writer does not know the types of the results that it is handed.
fn job(mut generator: SchemaGenerator) -> Schema {
    let null = json_schema!({ "type": "null" });
    let (run, profile) =
        (generator.subschema_for::<Outcome>(), generator.subschema_for::<Profiled>());
    let emulated = generator.subschema_for::<Emulated>();
    let mut schema = of::<JobFile>(generator);
    if let Some(Value::Object(members)) = schema.get_mut("properties") {
        let one_of = |of: &[&Schema]| serde_json::json!({ "anyOf": of });
        let name = json_schema!({ "type": "string" });
        members.insert("outcome".to_owned(), one_of(&[&run, &profile, &null]));
        members.insert("emulated".to_owned(), one_of(&[&emulated, &name, &null]));
    }
    schema
}

/// The description of a list, from that of its entries.
fn description_of_list(schema: &Schema) -> Option<String> {
    let entry = schema.get("items")?.get("$ref")?.as_str()?.strip_prefix('#')?;
    let text = schema.as_value().pointer(entry)?.get("description")?.as_str()?;
    Some(format!("A list. Each entry: {text}"))
}

/// Writes each schema to a file of its name in an existing directory. Returns the exit code.
pub fn write_schemas(directory: &Path) -> i32 {
    for (name, version, what, schema) in OUTPUTS {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let mut schema = schema(settings.into_generator());
        schema.insert("$id".to_owned(), format!("{ID}/{name}/{version}").into());
        schema.insert("title".to_owned(), what.into());
        if let Some(text) = description_of_list(&schema) {
            schema.insert("description".to_owned(), text.into());
        }
        let path = directory.join(format!("{name}.json"));
        let fresh = path.with_extension("fresh");
        if let Err(error) = files::write_json(&path, &fresh, &schema) {
            return print_error(&error.to_string(), None, FAILED);
        }
    }
    0
}
