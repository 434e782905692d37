//! The table of directives and keys, for the parser, its messages and the documentation.

mod nnf;

pub use nnf::NNF_COMMANDS;

/// How Forebay supports a valid item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Supported.
    Yes,
    /// Accepted with a warning: no effect, for this reason.
    NoEffect(&'static str),
    /// Not supported.
    Refused {
        /// The reason.
        why: &'static str,
        /// What to write instead.
        instead: &'static str,
    },
}

/// A word that is valid as a value.
#[derive(Debug, Clone, Copy)]
pub struct Word {
    /// The word.
    pub name: &'static str,
    /// Whether it is supported.
    pub support: Support,
}

/// The format of a value.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// A size, see [`crate::parse_size`].
    Size,
    /// A size. A number without unit counts GiB.
    SizeInGib,
    /// Two sizes separated by a colon.
    SizePair,
    /// A whole number above zero.
    Count,
    /// One of these words.
    Words(&'static [Word]),
    /// Several of these words, separated by commas.
    WordList(&'static [Word]),
    /// `yes` or `no`, or the key alone.
    Switch,
    /// Access modes with their modifiers: [`MODES`] and [`MODIFIERS`].
    AccessModes,
    /// Name of a persistent allocation: a letter, then letters, digits, `_`, `-` and `.`; at most
    /// [`crate::NAME_BYTES_MAX`] bytes.
    Name,
    /// Any text without blanks.
    Text,
    /// An absolute path on the parallel file system.
    OuterPath,
    /// A path of a stage. Either source or destination must be in the burst buffer.
    StagePath,
    /// The same in the NNF dialect.
    NnfPath,
    /// A name of NNF: `[a-z][a-z0-9-]+`.
    NnfId,
    /// A size of NNF: digits and a unit, `KiB` to `TiB` or `KB` to `TB`.
    NnfSize,
}

/// Whether a key is required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requirement {
    /// Never required.
    Optional,
    /// Always required.
    Required,
    /// Required unless `type=` has this value.
    RequiredUnless(&'static str),
    /// Required if `type=` has this value, otherwise forbidden.
    RequiredWith(&'static str),
    /// Optional if `type=` has this value, otherwise forbidden.
    OptionalWith(&'static str),
}

/// One key of a command.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// The name before `=`. A final `*` matches any suffix.
    pub name: &'static str,
    /// An alternative name.
    pub alias: Option<&'static str>,
    /// Whether it is required.
    pub need: Requirement,
    /// Format of the value.
    pub value: Value,
    /// Whether it has an effect.
    pub support: Support,
}

/// One directive command.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// The word after the prefix.
    pub name: &'static str,
    /// `#DW` or `#BB`.
    pub prefix: &'static str,
    /// Whether it is supported.
    pub support: Support,
    /// A required value without `key=`.
    pub positional: Option<Key>,
    /// Its keys.
    pub keys: &'static [Key],
    /// Words without a value.
    pub flags: &'static [&'static str],
    /// Another command that it requires.
    pub required_with: Option<&'static str>,
    /// A valid line, for hints.
    pub example: &'static str,
}

impl Key {
    const fn new(name: &'static str, need: Requirement, value: Value) -> Self {
        Self { name, alias: None, need, value, support: Support::Yes }
    }

    const fn alias(mut self, alias: &'static str) -> Self {
        self.alias = Some(alias);
        self
    }

    const fn no_effect(mut self, why: &'static str) -> Self {
        self.support = Support::NoEffect(why);
        self
    }

    const fn refused(mut self, why: &'static str, instead: &'static str) -> Self {
        self.support = Support::Refused { why, instead };
        self
    }

    /// The names of the key, except of one with a wildcard.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'static str> {
        let names = std::iter::once(self.name).chain(self.alias);
        names.filter(|name| !name.ends_with('*'))
    }

    /// Whether this is a name of the key.
    pub fn is_written(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(stem) => name.len() > stem.len() && name.starts_with(stem),
            None => name == self.name || Some(name) == self.alias,
        }
    }
}

impl Command {
    const fn new(name: &'static str, keys: &'static [Key], example: &'static str) -> Self {
        Self {
            name,
            prefix: "#DW",
            support: Support::Yes,
            positional: None,
            keys,
            flags: &[],
            required_with: None,
            example,
        }
    }

    const fn refused(mut self, why: &'static str, instead: &'static str) -> Self {
        self.support = Support::Refused { why, instead };
        self
    }

    const fn controllers(mut self) -> Self {
        self.prefix = "#BB";
        self
    }

    /// The key with this name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.is_written(name))
    }
}

/// The names of the keys, for messages.
pub(crate) fn key_names(keys: &[Key]) -> String {
    let names: Vec<_> = keys.iter().map(|key| format!("{}=", key.name)).collect();
    names.join(" ")
}

const fn yes(name: &'static str) -> Word {
    Word { name, support: Support::Yes }
}

const fn refused(name: &'static str, why: &'static str, instead: &'static str) -> Word {
    Word { name, support: Support::Refused { why, instead } }
}

const YES_NO: Value = Value::Words(&[yes("yes"), yes("no")]);
const NO_WEAR: &str = "nothing counts what is written to spare the store";
const ONE_STORE: &str = "the node has one store";
const NO_CACHE: &str = "transparent caching is not there yet";
const STAGE: &str =
    "write type=scratch, stage_in what the job reads and stage_out what it leaves behind";

const TYPES: Value = Value::Words(&[yes("scratch"), refused("cache", NO_CACHE, STAGE)]);

/// The access modes.
pub const MODES: &[Word] = &[
    yes("striped"),
    yes("private"),
    refused(
        "ldbalance",
        "copies of read-only files on every server are not there",
        "write access_mode=striped",
    ),
];

/// The modifiers in parentheses after an access mode.
pub const MODIFIERS: &[Key] = &[
    Key::new("MFS", Requirement::Optional, Value::Size)
        .no_effect("the size of a file is not limited"),
    Key::new("MFC", Requirement::Optional, Value::Count)
        .no_effect("the number of files is not limited"),
    Key::new("client_cache", Requirement::Optional, Value::Switch),
    WINDOW_MULTIPLIER,
    WINDOW_LENGTH,
    // An extension. Slurm hands over the value of access_mode= as it is, and no other text of the line.
    Key::new(GROUP, Requirement::Optional, Value::Text),
];

/// The modifier of a persistent allocation that names the group for which it is.
pub(crate) const GROUP: &str = "group";

const WINDOW_MULTIPLIER: Key =
    Key::new("write_window_multiplier", Requirement::Optional, Value::Count).no_effect(NO_WEAR);
const WINDOW_LENGTH: Key =
    Key::new("write_window_length", Requirement::Optional, Value::Count).no_effect(NO_WEAR);
const POOL: Key = Key::new("pool", Requirement::Optional, Value::Text);

const STAGE_KEYS: &[Key] = &[
    Key::new(
        "type",
        Requirement::Required,
        Value::Words(&[yes("file"), yes("directory"), yes("list")]),
    ),
    Key::new("source", Requirement::Required, Value::StagePath),
    Key::new("destination", Requirement::RequiredUnless("list"), Value::StagePath),
];

const NAME: Key = Key::new("name", Requirement::Required, Value::Name);

const JOBDW_KEYS: &[Key] = &[
    Key::new("type", Requirement::Required, TYPES),
    Key::new("access_mode", Requirement::Required, Value::AccessModes).alias("access"),
    Key::new("capacity", Requirement::Required, Value::Size),
    POOL,
    // An extension: DataWarp has no profiles.
    Key::new("profile", Requirement::Optional, Value::NnfId),
    // An extension: copies of the data on different nodes.
    Key::new("redundancy", Requirement::Optional, Value::Words(&[yes("1"), yes("2")])),
    // Extensions: where the data of a file are.
    Key::new("placement", Requirement::Optional, Value::Words(&[yes("striped"), yes("local")])),
    Key::new("stripe_bytes", Requirement::Optional, Value::Size),
    Key::new("max_mds", Requirement::Optional, YES_NO).no_effect(ONE_STORE),
    Key::new(
        "optimization_strategy",
        Requirement::Optional,
        Value::Words(&[yes("bandwidth"), yes("interference"), yes("wear")]),
    )
    .no_effect(ONE_STORE),
    WINDOW_MULTIPLIER,
    WINDOW_LENGTH,
    Key::new("pfs", Requirement::RequiredWith("cache"), Value::OuterPath),
    Key::new("modified_threshold", Requirement::OptionalWith("cache"), Value::Size)
        .alias("modifiedthreshold"),
    Key::new("read_ahead", Requirement::OptionalWith("cache"), Value::SizePair),
    Key::new("sync_on_close", Requirement::OptionalWith("cache"), YES_NO),
];

/// All known commands of DataWarp, as in the documentation of Slurm's burst_buffer plugin.
pub const COMMANDS: &[Command] = &[
    Command::new("jobdw", JOBDW_KEYS, "#DW jobdw type=scratch access_mode=striped capacity=10GiB"),
    Command::new(
        "stage_in",
        STAGE_KEYS,
        "#DW stage_in type=file source=/path/in.dat destination=$DW_JOB_STRIPED/in.dat",
    ),
    Command::new(
        "stage_out",
        STAGE_KEYS,
        "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=/path/out",
    ),
    Command::new("persistentdw", &[NAME], "#DW persistentdw name=proj1"),
    Command {
        positional: Some(Key::new("SIZE", Requirement::Required, Value::SizeInGib)),
        required_with: Some("jobdw"),
        ..Command::new("swap", &[POOL], "#DW swap 10GiB")
    }
    .refused(
        "swap space needs root on the compute nodes",
        "remove the line, and ask for nodes with more memory",
    ),
    Command::new(
        "create_persistent",
        &[
            NAME,
            Key::new("capacity", Requirement::Required, Value::Size),
            Key::new("access_mode", Requirement::Optional, Value::AccessModes).alias("access"),
            Key::new("type", Requirement::Optional, TYPES),
            POOL,
        ],
        "#BB create_persistent name=proj1 capacity=1TiB access_mode=striped type=scratch",
    )
    .controllers(),
    Command {
        flags: &["hurry"],
        ..Command::new("destroy_persistent", &[NAME], "#BB destroy_persistent name=proj1")
    }
    .controllers(),
];

/// Commands of other systems, each with a hint.
pub const FOREIGN: &[(&str, &str)] = &[
    ("tier_in", TIER),
    ("tier_out", TIER),
    (
        "_LUA",
        "#BB_LUA lines are for Slurm's plugin burst_buffer/lua; write ##BB_LUA, and #DW lines for Forebay",
    ),
];

const TIER: &str =
    "older DWS had it (rule set cds-2.0); write #DW stage_in or #DW stage_out, which copy";
