//! The directives and their keys as data: one table serves the parser, its messages and the
//! documentation.

/// How far Forebay goes with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// Carried out.
    Yes,
    /// Known, but refused, with the reason.
    Refused(&'static str),
}

/// What a key's value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A size, see [`crate::parse_size`].
    Size,
    /// One of the words of the first list; those of the second are known but refused, each with
    /// the remedy.
    Word(
        &'static [&'static str],
        &'static [(&'static str, &'static str)],
    ),
    /// A list of access modes.
    AccessModes,
    /// Any text without blanks.
    Text,
    /// A path, judged with its fellow: one of a stage's two ends is in the burst buffer.
    Path,
}

/// One key of a command.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// As written before `=`.
    pub name: &'static str,
    /// Must it be given?
    pub required: bool,
    /// Shape of the value.
    pub value: Value,
}

/// One directive command.
#[derive(Debug, Clone, Copy)]
pub struct Command {
    /// The word behind the prefix.
    pub name: &'static str,
    /// `#DW` or `#BB`.
    pub prefix: &'static str,
    /// Is it carried out?
    pub support: Support,
    /// Its keys.
    pub keys: &'static [Key],
    /// A line that is right, shown in hints.
    pub example: &'static str,
}

const fn required(name: &'static str, value: Value) -> Key {
    Key {
        name,
        required: true,
        value,
    }
}

const fn optional(name: &'static str, value: Value) -> Key {
    Key {
        name,
        required: false,
        value,
    }
}

const STAGE_KEYS: &[Key] = &[
    required(
        "type",
        Value::Word(
            &["file", "directory"],
            &[(
                "list",
                "lists of files are not staged yet; name the files or their directory",
            )],
        ),
    ),
    required("source", Value::Path),
    required("destination", Value::Path),
];

/// Every command that is known (DataWarp, as Slurm's burst_buffer plugin documents it).
pub const COMMANDS: &[Command] = &[
    Command {
        name: "jobdw",
        prefix: "#DW",
        support: Support::Yes,
        keys: &[
            required(
                "type",
                Value::Word(
                    &["scratch"],
                    &[(
                        "cache",
                        "transparent caching is not there yet; use type=scratch and stage",
                    )],
                ),
            ),
            required("access_mode", Value::AccessModes),
            required("capacity", Value::Size),
            optional("pool", Value::Text),
        ],
        example: "#DW jobdw type=scratch access_mode=striped capacity=10GiB",
    },
    Command {
        name: "stage_in",
        prefix: "#DW",
        support: Support::Yes,
        keys: STAGE_KEYS,
        example: "#DW stage_in type=file source=/path/in.dat destination=$DW_JOB_STRIPED/in.dat",
    },
    Command {
        name: "stage_out",
        prefix: "#DW",
        support: Support::Yes,
        keys: STAGE_KEYS,
        example: "#DW stage_out type=directory source=$DW_JOB_STRIPED/out destination=/path/out",
    },
    refused(
        "persistentdw",
        "#DW",
        "persistent allocations are not there yet",
    ),
    refused("swap", "#DW", "swap space needs root on the compute nodes"),
    refused(
        "create_persistent",
        "#BB",
        "persistent allocations are not there yet",
    ),
    refused(
        "destroy_persistent",
        "#BB",
        "persistent allocations are not there yet",
    ),
];

const fn refused(name: &'static str, prefix: &'static str, why: &'static str) -> Command {
    Command {
        name,
        prefix,
        support: Support::Refused(why),
        keys: &[],
        example: "",
    }
}
