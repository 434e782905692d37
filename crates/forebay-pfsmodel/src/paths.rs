//! Decides by name only, without file-system calls, whether a path is in an emulated directory.

/// The maximum length of a path in the kernel, in bytes.
pub const PATH_MAX: usize = 4096;

/// True if the absolute, normalised `path` is `root` or below it, at a component boundary.
pub fn is_below(path: &[u8], root: &[u8]) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// True if `path` is absolute without empty, `.` and `..` components, so that it can be compared unchanged.
pub fn is_plain(path: &[u8]) -> bool {
    path.first() == Some(&b'/')
        && path[1..].split(|byte| *byte == b'/').all(|part| !matches!(part, b"" | b"." | b".."))
}

/// Resolves `path` by name, like `realpath` without symlinks. `buffer[..base]` holds the absolute,
/// normalised base directory (ignored if `path` is absolute). Returns the length of the result in
/// `buffer`; `None` if it does not fit, because the kernel rejects such a path. Uses a single
/// buffer because hooks may run on a small signal stack.
pub fn append(buffer: &mut [u8], base: usize, path: &[u8]) -> Option<usize> {
    let absolute = path.first() == Some(&b'/') || buffer.get(..base)? == b"/";
    let mut length = if absolute { 0 } else { base };
    for part in path.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => length = buffer[..length].iter().rposition(|byte| *byte == b'/').unwrap_or(0),
            name => {
                let end = length + 1 + name.len();
                let room = buffer.get_mut(length..end)?;
                room[0] = b'/';
                room[1..].copy_from_slice(name);
                length = end;
            }
        }
    }
    if length == 0 {
        *buffer.first_mut()? = b'/';
        length = 1;
    }
    Some(length)
}

/// Length of the directory part of an absolute, normalised path (`/a/b` -> 2, `/a` -> 1).
pub fn parent_length(path: &[u8]) -> usize {
    path.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash.max(1))
}

#[cfg(test)]
mod tests {
    use super::{PATH_MAX, append, is_below, is_plain, parent_length};

    fn joined(base: &str, path: &str) -> String {
        let mut buffer = [0; PATH_MAX];
        buffer[..base.len()].copy_from_slice(base.as_bytes());
        let length = append(&mut buffer, base.len(), path.as_bytes()).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn roots_end_at_components() {
        assert!(is_below(b"/scratch", b"/scratch"));
        assert!(is_below(b"/scratch/a", b"/scratch"));
        assert!(!is_below(b"/scratchx/a", b"/scratch"));
        assert!(!is_below(b"/scratc", b"/scratch"));
    }

    #[test]
    fn names_are_resolved() {
        assert_eq!(joined("/home/u", "a/./b//c/"), "/home/u/a/b/c");
        assert_eq!(joined("/home/u", "../v"), "/home/v");
        assert_eq!(joined("/home/u", "/x/../../y"), "/y");
        assert_eq!(joined("/", ".."), "/");
        assert_eq!(joined("/home", ""), "/home");
    }

    #[test]
    fn plain_paths_are_distinguished_from_others() {
        assert!(is_plain(b"/a/b"));
        for path in ["a/b", "/a//b", "/a/./b", "/a/..", "/a/", ""] {
            assert!(!is_plain(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn too_long_path_is_refused() {
        let mut buffer = *b"/abc####";
        assert_eq!(append(&mut buffer[..7], 4, b"def"), None);
        assert_eq!(append(&mut buffer, 4, b"def"), Some(8));
        assert_eq!(&buffer, b"/abc/def");
    }

    #[test]
    fn parents_are_found() {
        assert_eq!(parent_length(b"/a/b"), 2);
        assert_eq!(parent_length(b"/a"), 1);
        assert_eq!(parent_length(b"/"), 1);
    }
}
