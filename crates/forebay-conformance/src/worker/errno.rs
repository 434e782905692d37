//! Names of error numbers.

use rustix::io::Errno;

macro_rules! names {
    ($($name:ident)*) => {
        &[$((Errno::$name, concat!("E", stringify!($name)))),*]
    };
}

/// The errors that file systems give.
const NAMES: &[(Errno, &str)] = names![
    PERM NOENT INTR IO NXIO BADF CHILD AGAIN NOMEM FAULT BUSY EXIST XDEV NODEV NOTDIR ISDIR INVAL NFILE
    MFILE NOTTY TXTBSY FBIG NOSPC SPIPE ROFS MLINK PIPE RANGE DEADLK NAMETOOLONG NOLCK NOSYS NOTEMPTY LOOP
    NODATA OVERFLOW ILSEQ OPNOTSUPP NOTCONN CONNABORTED CONNRESET TIMEDOUT STALE DQUOT CANCELED REMOTEIO
    HOSTDOWN HOSTUNREACH SHUTDOWN ALREADY PROTO
];

/// The name, as `ENOENT`; `errno 250` for one without.
pub(super) fn name(errno: Errno) -> String {
    if errno == Errno::ACCESS {
        return "EACCES".to_owned(); // the library's name for it differs
    }
    let known = NAMES.iter().find(|(one, _)| *one == errno);
    known.map_or_else(|| format!("errno {}", errno.raw_os_error()), |(_, name)| (*name).to_owned())
}
