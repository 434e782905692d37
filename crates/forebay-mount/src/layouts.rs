//! Layouts of new files by their names.

use std::ffi::CStr;
use std::str::FromStr;

use glob::Pattern;

use crate::client::Identity;
use crate::server::Server;

/// The layout of a file, as text (the CephFS documents, "File layouts").
const ATTRIBUTE: &CStr = c"ceph.file.layout";

/// The stripe unit of new files with some names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLayout {
    names: Pattern,
    stripe_unit_bytes: u64,
}

impl FromStr for NamedLayout {
    type Err = String;

    /// Reads `BYTES:PATTERN`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (bytes, names) = text.split_once(':').ok_or("write BYTES:PATTERN")?;
        let stripe_unit_bytes = bytes.parse().map_err(|error| format!("{bytes}: {error}"))?;
        let names = Pattern::new(names).map_err(|error| error.to_string())?;
        Ok(Self { names, stripe_unit_bytes })
    }
}

impl NamedLayout {
    fn matches(&self, name: &CStr) -> bool {
        self.names.matches(&name.to_string_lossy())
    }

    /// Each unit is an object of its own, as in the layout of the namespace.
    fn value(&self) -> String {
        let bytes = self.stripe_unit_bytes;
        format!("stripe_unit={bytes} stripe_count=1 object_size={bytes}")
    }
}

impl Server {
    /// Gives a file that was just created the layout of its name. A file that another node has filled meanwhile keeps
    /// its own.
    pub(crate) fn set_layout(&self, name: &CStr, node: u64, who: &Identity) {
        let Some(layout) = self.layouts.iter().find(|layout| layout.matches(name)) else {
            return;
        };
        let set = self.client.set_attribute(node, (ATTRIBUTE, layout.value().as_bytes()), 0, who);
        if let Err(error) = set {
            eprintln!("cannot set the layout of {}: error {}", name.to_string_lossy(), error.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_read_and_match_whole_names() {
        let layout: NamedLayout = "65536:*.h5".parse().expect("a layout");
        assert!(layout.matches(c"a.h5") && !layout.matches(c"a.h5.part"));
        assert_eq!(layout.value(), "stripe_unit=65536 stripe_count=1 object_size=65536");
        for wrong in ["*.h5", "x:*.h5", "1:[x"] {
            wrong.parse::<NamedLayout>().expect_err(wrong);
        }
    }
}
