//! The dialect of HPE's Rabbit nodes (NNF), which shares words with DataWarp and means others.
//!
//! Known so that it can be told apart. What of it means here what DataWarp's words mean, persistent
//! allocations, is carried out; the rest is refused with the equivalent. Source: the rule set of nnf-sos,
//! `config/dws/nnf-ruleset.yaml`.

use super::{Command, Key, Need, Value, refused, yes};

const WHY: &str = "it is of the NNF (Rabbit) dialect, and Forebay carries out DataWarp's";
const NO_PROFILES: &str = "there are no profiles of storage";

/// A device without a file system holds no files.
const TYPE_OF_FILES: Key = Key::new(
    "type",
    Need::Required,
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

const TYPE: Key = Key::new(
    "type",
    Need::Required,
    Value::Words(&[yes("raw"), yes("xfs"), yes("gfs2"), yes("lustre")]),
);
const NAME: Key = Key::new("name", Need::Required, Value::NnfId);
const PROFILE: Key = Key::new("profile", Need::Optional, Value::NnfId);
const REQUIRES: Key = Key::new(
    "requires",
    Need::Optional,
    Value::WordList(&[yes("copy-offload"), yes("user-container-auth")]),
);

const COPY_KEYS: &[Key] = &[
    Key::new("source", Need::Required, Value::Text),
    Key::new("destination", Need::Required, Value::Text),
    PROFILE,
    // Older DWS (rule set cds-2.0) has it.
    Key::new(
        "type",
        Need::Optional,
        Value::Words(&[yes("file"), yes("directory"), yes("list")]),
    ),
];

/// Every command of the NNF dialect.
pub const NNF_COMMANDS: &[Command] = &[
    Command::new(
        "jobdw",
        &[
            TYPE,
            Key::new("capacity", Need::Required, Value::NnfSize),
            NAME,
            PROFILE,
            REQUIRES,
        ],
        "#DW jobdw type=xfs capacity=10GiB name=scratch",
    )
    .refused(
        WHY,
        "write #DW jobdw type=scratch access_mode=striped capacity=SIZE, and $DW_JOB_STRIPED \
         for $DW_JOB_name (access_mode=private where each node needs its own)",
    ),
    Command::new(
        "create_persistent",
        &[
            TYPE_OF_FILES,
            NAME,
            // Optional there, where a profile has a size of its own.
            Key::new("capacity", Need::Required, Value::NnfSize),
            PROFILE.no_effect(NO_PROFILES),
        ],
        "#DW create_persistent type=lustre name=proj1 capacity=1TiB",
    ),
    Command::new(
        "destroy_persistent",
        &[NAME],
        "#DW destroy_persistent name=proj1",
    ),
    Command::new(
        "persistentdw",
        &[
            NAME,
            REQUIRES.refused(
                "there are no servers for copies or containers",
                "copy in the script, with cp, or use #DW stage_out of DataWarp's dialect",
            ),
        ],
        "#DW persistentdw name=proj1",
    ),
    Command::new(
        "copy_in",
        COPY_KEYS,
        "#DW copy_in source=/path/in destination=$DW_JOB_scratch/in",
    )
    .refused(
        WHY,
        "write #DW stage_in type=file|directory source=/PATH destination=$DW_JOB_STRIPED/PATH",
    ),
    Command::new(
        "copy_out",
        COPY_KEYS,
        "#DW copy_out source=$DW_JOB_scratch/out destination=/path/out",
    )
    .refused(
        WHY,
        "write #DW stage_out type=file|directory source=$DW_JOB_STRIPED/PATH destination=/PATH",
    ),
    Command::new(
        "container",
        &[
            NAME,
            Key::new("profile", Need::Required, Value::NnfId),
            Key::new("DW_JOB_*", Need::Optional, Value::NnfId),
            Key::new("DW_PERSISTENT_*", Need::Optional, Value::NnfId),
            Key::new("DW_GLOBAL_*", Need::Optional, Value::OuterPath),
        ],
        "#DW container name=server profile=forge DW_JOB_data=scratch",
    )
    .refused(
        WHY,
        "DataWarp has no containers: start the container in the script",
    ),
];
