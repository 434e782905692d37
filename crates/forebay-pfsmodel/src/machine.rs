//! Parses the machine file, a TOML description of a parallel file system: each number has a source.
//! Accepts no unknown key, and only counts have no unit. Never checks the tables of `forebay plan`.

use serde::Deserialize;
use serde::de::IgnoredAny;
use thiserror::Error;

use crate::block::TARGETS_MAX;
use crate::quantity::{Kind, Quantity};

/// The model rejects stripe sizes that are no multiple of 64 KiB, as Lustre does.
pub const STRIPE_SIZE_MULTIPLE_BYTES: u64 = 64 * 1024;

/// A parallel file system, as described in `docs/reference/machine-files.md`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// Name of the machine, for reports.
    pub name: String,
    /// Relation of the numbers to those of the real machine, for readers.
    pub scale: String,
    /// The storage targets (Lustre: OSTs).
    pub targets: Targets,
    /// The limits of one client.
    pub client: ClientLimits,
    /// The metadata server.
    pub metadata: Metadata,
    /// The default striping of files.
    pub layout: DefaultLayout,
}

/// The storage targets, all identical.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets {
    /// Number of targets, 1 to [`TARGETS_MAX`].
    pub count: Quantity<u32>,
    /// Fixed cost of a request, nanoseconds.
    pub latency_ns: Quantity<u64>,
    /// Streaming rate of one target, bytes per second.
    pub bandwidth_bytes_per_s: Quantity<u64>,
    /// Cost when the writing client of a target changes, nanoseconds; may be 0.
    pub switch_penalty_ns: Quantity<u64>,
}

/// The limits of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientLimits {
    /// Bytes per second of one client over all targets.
    pub bandwidth_bytes_per_s: Quantity<u64>,
}

/// The metadata server, a single queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// Time of one operation, nanoseconds.
    pub operation_ns: Quantity<u64>,
    /// Additional time for each stripe of an opened file, nanoseconds; may be 0.
    pub per_stripe_ns: Quantity<u64>,
}

/// The default striping of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DefaultLayout {
    /// Number of targets of a file, 1 to the number of targets.
    pub stripe_count: Quantity<u32>,
    /// Bytes of one stripe on one target, a multiple of 64 KiB.
    pub stripe_size_bytes: Quantity<u64>,
}

/// Why a machine file is rejected.
#[derive(Debug, Error)]
pub enum ModelError {
    /// Not TOML, a key is missing, or a key is unknown (with line and column).
    #[error("{file}: not a machine file: {message}")]
    Syntax {
        /// The machine file.
        file: String,
        /// The message of the TOML parser.
        message: String,
    },
    /// The file has only the tables of `forebay plan`.
    #[error(
        "{file}: this machine file is for `forebay plan` alone: it has no tables targets, client, metadata and layout"
    )]
    NotEmulated {
        /// The machine file.
        file: String,
    },
    /// A quantity is invalid.
    #[error("{file}: {key} = {text}: {reason}; expected {expected}")]
    Quantity {
        /// The machine file.
        file: String,
        /// The dotted key.
        key: String,
        /// The text in the file.
        text: String,
        /// What is wrong with the text.
        reason: String,
        /// The expected text.
        expected: String,
    },
    /// A quantity has no source, so its number cannot be verified.
    #[error(
        "{file}: {key} has no source; name a publication, a measurement, or write \"assumption: ...\""
    )]
    NoSource {
        /// The machine file.
        file: String,
        /// The dotted key.
        key: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawModel {
    name: String,
    scale: String,
    targets: RawTargets,
    client: RawClient,
    metadata: RawMetadata,
    layout: RawLayout,
    /// Tables of `forebay plan`, which checks them.
    #[serde(rename = "compute")]
    _compute: Option<IgnoredAny>,
    #[serde(rename = "storage")]
    _storage: Option<IgnoredAny>,
}

/// The tables of the emulation. A file that has `storage` and none of them is for `forebay plan` alone.
const EMULATION_TABLES: [&str; 4] = ["targets", "client", "metadata", "layout"];

fn is_for_plan_alone(text: &str) -> bool {
    let tables: Result<toml::Table, _> = toml::from_str(text);
    tables.is_ok_and(|tables| {
        tables.contains_key("storage")
            && !EMULATION_TABLES.iter().any(|name| tables.contains_key(*name))
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTargets {
    count: RawQuantity,
    latency: RawQuantity,
    bandwidth: RawQuantity,
    switch_penalty: RawQuantity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClient {
    bandwidth: RawQuantity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMetadata {
    operation: RawQuantity,
    per_stripe: RawQuantity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLayout {
    stripe_count: RawQuantity,
    stripe_size: RawQuantity,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawQuantity {
    value: toml::Value,
    source: String,
}

impl Model {
    /// Parses a machine file. `file` is used only in messages.
    ///
    /// # Errors
    /// [`ModelError`] names the file, the key, the text and the expected text.
    pub fn from_toml(text: &str, file: &str) -> Result<Self, ModelError> {
        if is_for_plan_alone(text) {
            return Err(ModelError::NotEmulated { file: file.to_owned() });
        }
        let raw: RawModel = toml::from_str(text).map_err(|error| ModelError::Syntax {
            file: file.to_owned(),
            message: error.to_string(),
        })?;
        let read = Reader { file };
        let count = read.integer("targets.count", raw.targets.count, 1, TARGETS_MAX as i64)?;
        let model = Self {
            targets: Targets {
                latency_ns: read.unit("targets.latency", raw.targets.latency, Kind::Time)?,
                bandwidth_bytes_per_s: read.unit(
                    "targets.bandwidth",
                    raw.targets.bandwidth,
                    Kind::Rate,
                )?,
                switch_penalty_ns: read
                    .unit_or_zero("targets.switch_penalty", raw.targets.switch_penalty)?,
                count,
            },
            client: ClientLimits {
                bandwidth_bytes_per_s: read.unit(
                    "client.bandwidth",
                    raw.client.bandwidth,
                    Kind::Rate,
                )?,
            },
            metadata: Metadata {
                operation_ns: read.unit(
                    "metadata.operation",
                    raw.metadata.operation,
                    Kind::Time,
                )?,
                per_stripe_ns: read.unit_or_zero("metadata.per_stripe", raw.metadata.per_stripe)?,
            },
            layout: DefaultLayout {
                stripe_count: read.integer(
                    "layout.stripe_count",
                    raw.layout.stripe_count,
                    1,
                    TARGETS_MAX as i64,
                )?,
                stripe_size_bytes: read.unit(
                    "layout.stripe_size",
                    raw.layout.stripe_size,
                    Kind::Size,
                )?,
            },
            name: raw.name,
            scale: raw.scale,
        };
        model.check(&read)?;
        Ok(model)
    }

    /// Checks that involve several keys.
    fn check(&self, read: &Reader<'_>) -> Result<(), ModelError> {
        let (count, targets) = (self.layout.stripe_count.value, self.targets.count.value);
        if count > targets {
            let reason =
                format!("a file cannot have more stripes than there are targets ({targets})");
            return Err(read.refuse(
                "layout.stripe_count",
                &count.to_string(),
                reason,
                format!("1 to {targets}"),
            ));
        }
        let size = self.layout.stripe_size_bytes.value;
        if !size.is_multiple_of(STRIPE_SIZE_MULTIPLE_BYTES) {
            let reason = "Lustre takes only multiples of 64 KiB".to_owned();
            return Err(read.refuse(
                "layout.stripe_size",
                &format!("{size} B"),
                reason,
                "64 KiB, 1 MiB, ...".to_owned(),
            ));
        }
        Ok(())
    }
}

struct Reader<'a> {
    file: &'a str,
}

impl Reader<'_> {
    fn refuse(&self, key: &str, text: &str, reason: String, expected: String) -> ModelError {
        ModelError::Quantity {
            file: self.file.to_owned(),
            key: key.to_owned(),
            text: text.to_owned(),
            reason,
            expected,
        }
    }

    fn source(&self, key: &str, source: String) -> Result<String, ModelError> {
        if source.trim().is_empty() {
            return Err(ModelError::NoSource { file: self.file.to_owned(), key: key.to_owned() });
        }
        Ok(source)
    }

    fn unit(&self, key: &str, raw: RawQuantity, kind: Kind) -> Result<Quantity<u64>, ModelError> {
        self.text(key, raw, kind, false)
    }

    fn unit_or_zero(&self, key: &str, raw: RawQuantity) -> Result<Quantity<u64>, ModelError> {
        self.text(key, raw, Kind::Time, true)
    }

    fn text(
        &self,
        key: &str,
        raw: RawQuantity,
        kind: Kind,
        zero: bool,
    ) -> Result<Quantity<u64>, ModelError> {
        let value = match &raw.value {
            toml::Value::String(text) => kind.parse(text, zero),
            _ => Err("a number alone says no unit".to_owned()),
        };
        let value = value
            .map_err(|reason| self.refuse(key, &raw.value.to_string(), reason, kind.expected()))?;
        Ok(Quantity { value, source: self.source(key, raw.source)? })
    }

    fn integer(
        &self,
        key: &str,
        raw: RawQuantity,
        min: i64,
        max: i64,
    ) -> Result<Quantity<u32>, ModelError> {
        let value = raw.value.as_integer().filter(|value| (min..=max).contains(value));
        let Some(value) = value.and_then(|value| u32::try_from(value).ok()) else {
            let expected = format!("a whole number from {min} to {max}, without unit");
            return Err(self.refuse(
                key,
                &raw.value.to_string(),
                "it cannot be used".to_owned(),
                expected,
            ));
        };
        Ok(Quantity { value, source: self.source(key, raw.source)? })
    }
}
