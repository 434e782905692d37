//! Reads ahead where a program reads at regular distances, as ranks do that share a file record by record.
//!
//! libcephfs itself reads ahead what follows, and nothing of lazy files ([`crate::lazy_file`]). What is read here goes into
//! its cache, under the rights that it has; nothing is kept here. A failure is left to the read of the program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};

use forebay_host::threads;
use parking_lot::Mutex;

use crate::open_file::File;

/// What waits for a thread, of all files. More is not read ahead.
const WAITING_MAX: usize = 256;
const THREADS: usize = 4;

pub(crate) struct Ahead {
    file: Weak<File>,
    place: (i64, i64),
}

/// The threads that read ahead, from the first such read on; none if the machine has no thread for them.
#[derive(Default)]
pub(crate) struct ReadAhead {
    waiting: OnceLock<Option<SyncSender<Ahead>>>,
    has_ended: Arc<AtomicBool>,
}

impl ReadAhead {
    /// Notes a read of a program, and reads ahead what is expected next.
    pub(crate) fn note(&self, file: &Arc<File>, offset: i64, length: usize) {
        let next = file.next_reads((offset, length as i64));
        if next.is_empty() {
            return;
        }
        let start = || start(&self.has_ended);
        let Some(waiting) = self.waiting.get_or_init(start) else { return };
        for (number, &place) in next.iter().enumerate() {
            // If the threads have enough to do, the program reads it itself.
            if waiting.try_send(Ahead { file: Arc::downgrade(file), place }).is_err() {
                file.give_up_next_reads(&next[number..]);
                return;
            }
        }
    }

    /// Nothing more is read ahead.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }
}

fn start(has_ended: &Arc<AtomicBool>) -> Option<SyncSender<Ahead>> {
    let (waiting, receiver) = sync_channel(WAITING_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    let started = (0..THREADS).filter_map(|_| {
        let (receiver, has_ended) = (Arc::clone(&receiver), Arc::clone(has_ended));
        threads::spawn(move || serve(&receiver, &has_ended)).ok()
    });
    (started.count() > 0).then_some(waiting)
}

fn serve(receiver: &Mutex<Receiver<Ahead>>, has_ended: &AtomicBool) {
    let mut buffer = Vec::new();
    loop {
        let next = receiver.lock().recv();
        let Ok(Ahead { file, place: (offset, length) }) = next else { return };
        if has_ended.load(Ordering::Relaxed) {
            return;
        }
        if let Some(file) = file.upgrade() {
            let length = length as usize;
            buffer.resize(length.max(buffer.len()), 0);
            file.read_ahead(offset, &mut buffer[..length]);
        }
    }
}
