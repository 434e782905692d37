//! The dialect of HPE's Rabbit nodes (NNF). It shares words with DataWarp, but not their meaning.
//! Sources: nnf-sos, `config/dws/nnf-ruleset.yaml`; for directories in `copy_in` and `copy_out`
//! nnf-integration-test, `system-test/dm/copy-in-copy-out/copy-in-copy-out.md`.

use super::{Command, Key, Requirement, Value, refused, yes};

const NO_PROFILES: &str = "only jobdw has profiles";

/// A device without a file system cannot hold files.
const TYPE: Key = Key::new(
    "type",
    Requirement::Required,
    Value::Words(&[
        refused(
            "raw",
            "an allocation is a tree of files, not a device",
            "write type=lustre, which all nodes of a job share",
        ),
        yes("xfs"),
        yes("gfs2"),
        yes("lustre"),
    ]),
);

const NAME: Key = Key::new("name", Requirement::Required, Value::NnfId);
// Optional in NNF, where a profile can define a size.
const CAPACITY: Key = Key::new("capacity", Requirement::Required, Value::NnfSize);
const PROFILE: Key =
    Key::new("profile", Requirement::Optional, Value::NnfId).no_effect(NO_PROFILES);
/// Of a job: a named engine.
const JOB_PROFILE: Key = Key::new("profile", Requirement::Optional, Value::NnfId);
const REQUIRES: Key = Key::new(
    "requires",
    Requirement::Optional,
    Value::WordList(&[yes("copy-offload"), yes("user-container-auth")]),
)
.refused(
    "there are no servers for copies or containers",
    "copy in the script, with cp, or use #DW copy_out",
);

const COPY_KEYS: &[Key] = &[
    Key::new("source", Requirement::Required, Value::NnfPath),
    Key::new("destination", Requirement::RequiredUnless("list"), Value::NnfPath),
    PROFILE,
    // From older DWS (rule set cds-2.0).
    Key::new(
        "type",
        Requirement::Optional,
        Value::Words(&[yes("file"), yes("directory"), yes("list")]),
    ),
];

/// All commands of the NNF dialect.
pub const NNF_COMMANDS: &[Command] = &[
    Command::new(
        "jobdw",
        &[TYPE, CAPACITY, NAME, JOB_PROFILE, REQUIRES],
        "#DW jobdw type=xfs capacity=10GiB name=scratch",
    ),
    Command::new(
        "create_persistent",
        &[TYPE, NAME, CAPACITY, PROFILE],
        "#DW create_persistent type=lustre name=proj1 capacity=1TiB",
    ),
    Command::new("destroy_persistent", &[NAME], "#DW destroy_persistent name=proj1"),
    Command::new("persistentdw", &[NAME, REQUIRES], "#DW persistentdw name=proj1"),
    Command::new(
        "copy_in",
        COPY_KEYS,
        "#DW copy_in source=/path/in destination=$DW_JOB_scratch/in",
    ),
    Command::new(
        "copy_out",
        COPY_KEYS,
        "#DW copy_out source=$DW_JOB_scratch/out destination=/path/out",
    ),
    Command::new(
        "container",
        &[
            NAME,
            Key::new("profile", Requirement::Required, Value::NnfId),
            Key::new("DW_JOB_*", Requirement::Optional, Value::NnfId),
            Key::new("DW_PERSISTENT_*", Requirement::Optional, Value::NnfId),
            Key::new("DW_GLOBAL_*", Requirement::Optional, Value::OuterPath),
        ],
        "#DW container name=server profile=forge DW_JOB_data=scratch",
    )
    .refused("nothing here starts containers", "start the container in the script"),
];
