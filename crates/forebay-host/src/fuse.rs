//! The device of FUSE: mounts, and carries requests of the kernel and their answers as bytes.
//! Assumes that the caller speaks the kernel's protocol (linux/fuse.h).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::mount::MountFlags;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

use crate::process::command;
use crate::{Result, system, users, with_context};

const DEVICE: &str = "/dev/fuse";
/// Names the socket on which `fusermount3` hands over the device.
const SOCKET_VARIABLE: &str = "_FUSE_COMMFD";
/// `FUSE_DEV_IOC_CLONE` of linux/fuse.h: joins a newly opened device to a mount.
const CLONE: libc::c_ulong = 0x8004_e500;

/// An open device of one mount. An answer goes to the device that the request came from.
#[derive(Debug)]
pub struct FuseDevice(OwnedFd);

impl FuseDevice {
    /// Mounts at `point` and returns the device. `kind` appears in the list of mounts as `fuse.KIND`. Only processes
    /// of this user and group may use the mount.
    ///
    /// # Errors
    /// If the device cannot be opened, or the kernel or `fusermount3` refuses the mount.
    pub fn mount(point: &Path, kind: &str) -> Result<Self> {
        if users::is_root() { mount_as_root(point, kind) } else { mount_as_user(point, kind) }
    }

    /// Another device of the same mount, so that threads do not share a queue of answers.
    ///
    /// # Errors
    /// If the device cannot be opened, or the kernel refuses it.
    pub fn another(&self) -> Result<Self> {
        let device = open()?;
        let number = self.0.as_raw_fd().cast_unsigned();
        // SAFETY: the request reads one u32, which lives during the call.
        let cloned = unsafe { libc::ioctl(device.as_raw_fd(), CLONE, &raw const number) };
        let result = if cloned == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        with_context(result, "clone", Path::new(DEVICE)).map(|()| Self(device))
    }

    /// Waits for the next request, and returns its length in `buffer`; none when the mount has ended.
    ///
    /// # Errors
    /// That of the kernel.
    pub fn receive(&self, buffer: &mut [u8]) -> Result<Option<usize>> {
        loop {
            match rustix::io::read(&self.0, &mut *buffer) {
                Ok(length) => return Ok(Some(length)),
                // Unmounted, or aborted.
                Err(Errno::NODEV | Errno::CONNABORTED) => return Ok(None),
                // The request was withdrawn before it was read, or a signal came.
                Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return with_context(Err(error), "read", Path::new(DEVICE)),
            }
        }
    }

    /// Sends an answer. A request that nobody waits for any more is no error.
    ///
    /// # Errors
    /// That of the kernel.
    pub fn send(&self, parts: &[IoSlice]) -> Result<()> {
        match rustix::io::writev(&self.0, parts) {
            Ok(_) | Err(Errno::NOENT | Errno::NODEV | Errno::CONNABORTED) => Ok(()),
            Err(error) => with_context(Err(error), "write", Path::new(DEVICE)),
        }
    }
}

fn open() -> Result<OwnedFd> {
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC;
    let opened = rustix::fs::open(DEVICE, flags, rustix::fs::Mode::empty());
    with_context(opened, "open", Path::new(DEVICE))
}

fn mount_as_root(point: &Path, kind: &str) -> Result<FuseDevice> {
    let device = open()?;
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={}\0",
        device.as_raw_fd(),
        user.as_raw(),
        group.as_raw()
    );
    let options = std::ffi::CString::from_vec_with_nul(options.into_bytes()).unwrap_or_default();
    let flags = MountFlags::NOSUID | MountFlags::NODEV;
    let mounted =
        rustix::mount::mount(kind, point, format!("fuse.{kind}"), flags, options.as_c_str());
    with_context(mounted, "mount", point).map(|()| FuseDevice(device))
}

fn mount_as_user(point: &Path, kind: &str) -> Result<FuseDevice> {
    let failed = |what: String| with_context(Err(io::Error::other(what)), "mount", point);
    let program =
        ["fusermount3", "fusermount"].iter().find_map(|name| system::find_other_program(name));
    let Some(program) = program else { return failed("fusermount3 is missing".to_owned()) };
    let (ours, theirs) = with_context(UnixStream::pair(), "make a socket for", &program)?;
    with_context(fcntl_setfd(&theirs, FdFlags::empty()), "hand a socket to", &program)?;
    let mut mount = command(&program);
    mount.args(["-o", &format!("nosuid,nodev,fsname={kind},subtype={kind}"), "--"]).arg(point);
    mount.env(SOCKET_VARIABLE, theirs.as_raw_fd().to_string()).stdin(Stdio::null());
    let mut child = with_context(mount.spawn(), "run", &program)?;
    drop(theirs);
    let received = receive_descriptor(&ours);
    let status = with_context(child.wait(), "wait for", &program)?;
    match received {
        Ok(Some(device)) => Ok(FuseDevice(device)),
        Ok(None) => failed(format!("{} refused it: {status}", program.display())),
        Err(error) => with_context(Err(error), "read from", &program),
    }
}

/// The descriptor in the next message; none if the other side ended.
fn receive_descriptor(socket: &UnixStream) -> io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(socket.as_fd(), &mut [IoSliceMut::new(&mut byte)], &mut ancillary, flags)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(mut descriptors) = message {
            return Ok(descriptors.next());
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::fd::{FromRawFd, IntoRawFd};

    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

    use super::*;

    #[test]
    fn descriptor_arrives_with_its_message() {
        let (ours, theirs) = UnixStream::pair().expect("pair");
        let (sent, _kept) = UnixStream::pair().expect("pair");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [sent.as_fd()];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
        sendmsg(&theirs, &[IoSlice::new(&[0])], &mut ancillary, SendFlags::empty()).expect("send");
        let received = receive_descriptor(&ours).expect("receive").expect("descriptor");
        // SAFETY: the descriptor is open and owned by nobody else.
        let stream = unsafe { UnixStream::from_raw_fd(received.into_raw_fd()) };
        assert!(stream.peer_addr().is_ok());
    }

    #[test]
    fn helper_that_ends_hands_over_nothing() {
        let (ours, theirs) = UnixStream::pair().expect("pair");
        drop(theirs);
        assert!(receive_descriptor(&ours).expect("receive").is_none());
    }
}
