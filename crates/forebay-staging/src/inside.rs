//! Checks whether a path is inside of an allocation.

use std::path::Path;

use forebay_host::files;
use forebay_store::Allocation;

/// True if a stage-out to this path would end in the allocation. Compares device and inode, since
/// an allocation may be mounted under several names.
pub fn is_inside_allocation(allocation: &Allocation, target: &Path) -> bool {
    let number = |path: &Path| {
        let status = files::status(path).ok()?;
        Some((status.device, status.inode))
    };
    let root = allocation.root();
    let names = files::names_in(root).unwrap_or_default();
    let below = names.iter().map(|name| root.join(name));
    let ours: Vec<_> = below.chain([root.to_owned()]).filter_map(|path| number(&path)).collect();
    let Ok(target) = files::nearest_real_path(target) else {
        return false;
    };
    let mut ancestors = target.ancestors();
    ancestors.any(|path| number(path).is_some_and(|number| ours.contains(&number)))
}
