//! The account that `dw_get_accounting_data_json` returns.

use forebay_host::system;
use schemars::JsonSchema;
use serde::Serialize;

use crate::state::Requested;

/// The figures of an allocation that are publicly documented for DataWarp.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Accounting {
    /// Its parts on servers: one.
    fragments: [Fragment; 1],
    /// The transfers: one entry for all namespaces.
    namespaces: [Namespace; 1],
    /// The allocation itself.
    realm: Realm,
}

/// The part of the allocation on one server, in bytes.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Fragment {
    /// The capacity of the allocation.
    pub capacity_max: u64,
    /// The bytes that it holds.
    pub capacity_used: u64,
    /// The size of its file system; null if that is not known.
    pub fs_capacity: Option<u64>,
}

/// The transfers of a namespace.
#[derive(Debug, Serialize, JsonSchema)]
struct Namespace {
    /// Always 0.
    namespace_id: u32,
    /// Bytes staged in at the request of programs.
    stage_bytes_read: u64,
    /// Bytes staged out at the request of programs.
    stage_bytes_written: u64,
}

/// The allocation.
#[derive(Debug, Serialize, JsonSchema)]
struct Realm {
    /// Always `scratch`.
    dwtype: &'static str,
    /// Number of its namespaces.
    namespace_count: usize,
    /// Its name.
    realm_id: String,
    /// Always 1.
    server_count: u32,
    /// The name of this machine.
    server_hostname: String,
}

impl Accounting {
    pub(crate) fn new(
        tag: &str,
        namespaces: usize,
        fragment: Fragment,
        requested: &Requested,
    ) -> Self {
        Self {
            fragments: [fragment],
            namespaces: [Namespace {
                namespace_id: 0,
                stage_bytes_read: requested.bytes_in,
                stage_bytes_written: requested.bytes_out,
            }],
            realm: Realm {
                dwtype: "scratch",
                namespace_count: namespaces,
                realm_id: tag.to_owned(),
                server_count: 1,
                server_hostname: system::hostname(),
            },
        }
    }
}
