//! Reads ahead where a program reads at regular distances, as ranks do that share a file record by record.
//!
//! libcephfs itself reads ahead what follows, and nothing of lazy files ([`crate::lazy_file`]). What is read here goes into
//! its cache, under the rights that it has; nothing is kept here. A failure is left to the read of the program.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};

use forebay_host::threads;
use parking_lot::Mutex;

use crate::open_file::File;

/// Reads at the same distance before the next ones are expected.
const REGULAR_READS: i64 = 2;
/// How many are read ahead for each that was regular.
const AHEAD_FOR_EACH: i64 = 2;
/// The most that is read ahead of one open file, in bytes and in reads.
const AHEAD_BYTES_MAX: i64 = 8 << 20;
const AHEAD_READS_MAX: i64 = 16;
/// Where a program reads one of so many bytes, or the distance is at most so many, all bytes are read, in large pieces: a
/// request costs a server as much as many bytes.
const BYTES_OF_ONE_MAX: i64 = 4;
const NEAR_BYTES: i64 = 32 << 10;
const PIECE_BYTES: i64 = 2 << 20;
/// Reads between two attempts where nothing can be cached, since a program on another node may write the file.
const PAUSE_READS: i64 = 1000;
/// What waits for a thread, of all files. More is not read ahead.
const WAITING_MAX: usize = 256;
const THREADS: usize = 4;

/// The reads of one open file so far.
#[derive(Default)]
pub(crate) struct Reads {
    last: i64,
    distance: i64,
    /// Successive reads at that distance.
    regular: i64,
    /// Where the last that was asked for begins, or ends if all bytes are read.
    asked: i64,
    /// So many reads come first before anything is read ahead again.
    pause: i64,
}

impl Reads {
    /// Notes a read of `length` bytes. Returns the offsets and lengths that are expected next and were not returned before.
    pub(crate) fn note(&mut self, offset: i64, length: i64) -> Vec<(i64, i64)> {
        let distance = offset.wrapping_sub(self.last);
        self.last = offset;
        if distance != self.distance {
            (self.distance, self.regular, self.asked) = (distance, 0, offset);
        }
        self.regular += 1;
        self.pause = (self.pause - 1).max(0);
        let overlaps = distance.unsigned_abs() < length as u64;
        if self.regular < REGULAR_READS || self.pause > 0 || overlaps || length == 0 {
            return Vec::new();
        }
        if (0..=NEAR_BYTES.max(BYTES_OF_ONE_MAX * length)).contains(&distance) {
            return self.pieces(offset.saturating_add(length));
        }
        self.records(offset, length)
    }

    /// The offset of the last read; none in a pause.
    pub(crate) fn last(&self) -> Option<i64> {
        (self.pause == 0).then_some(self.last)
    }

    /// What the program read was not cached, so that what is read ahead would not be either.
    pub(crate) fn pause(&mut self) {
        self.pause = PAUSE_READS;
    }

    /// Whether the last read followed the one before it, of `length` bytes.
    pub(crate) fn follow(&self, length: i64) -> bool {
        self.distance == length
    }

    /// All bytes from `end` on that are not asked for, up to the end of a piece.
    fn pieces(&mut self, end: i64) -> Vec<(i64, i64)> {
        let mut pieces = Vec::new();
        self.asked = self.asked.max(end);
        let ahead =
            self.expected().saturating_mul(self.distance).min(AHEAD_BYTES_MAX - PIECE_BYTES);
        while self.asked < end.saturating_add(ahead) {
            let next = (self.asked / PIECE_BYTES + 1).saturating_mul(PIECE_BYTES);
            pieces.push((self.asked, next - self.asked));
            self.asked = next;
        }
        pieces
    }

    /// How many reads at this distance may follow.
    fn expected(&self) -> i64 {
        self.regular.saturating_mul(AHEAD_FOR_EACH)
    }

    /// The next reads, if the distance stays.
    fn records(&mut self, offset: i64, length: i64) -> Vec<(i64, i64)> {
        let is_new = |at: &i64| if self.distance > 0 { *at > self.asked } else { *at < self.asked };
        let most = self.expected().min(AHEAD_READS_MAX).min(AHEAD_BYTES_MAX / length);
        let at = |number| offset.checked_add(self.distance.checked_mul(number)?);
        let next: Vec<i64> =
            (1..=most).filter_map(at).filter(|at| *at >= 0 && is_new(at)).collect();
        self.asked = next.last().copied().unwrap_or(self.asked);
        next.into_iter().map(|at| (at, length)).collect()
    }
}

pub(crate) struct Ahead {
    file: Weak<File>,
    offset: i64,
    length: usize,
}

/// The threads that read ahead, from the first such read on; none if the machine has no thread for them.
#[derive(Default)]
pub(crate) struct ReadAhead {
    waiting: OnceLock<Option<SyncSender<Ahead>>>,
}

impl ReadAhead {
    /// Notes a read of a program, and reads ahead what is expected next.
    pub(crate) fn note(&self, file: &Arc<File>, offset: i64, length: usize) {
        for (offset, length) in file.next_reads(offset, length as i64) {
            if let Some(waiting) = self.waiting.get_or_init(start) {
                // If the threads have enough to do, the program reads it itself.
                let _ = waiting.try_send(Ahead {
                    file: Arc::downgrade(file),
                    offset,
                    length: length as usize,
                });
            }
        }
    }
}

fn start() -> Option<SyncSender<Ahead>> {
    let (waiting, receiver) = sync_channel(WAITING_MAX);
    let receiver = Arc::new(Mutex::new(receiver));
    let started = (0..THREADS).filter_map(|_| {
        let receiver = Arc::clone(&receiver);
        threads::spawn(move || serve(&receiver)).ok()
    });
    (started.count() > 0).then_some(waiting)
}

fn serve(receiver: &Mutex<Receiver<Ahead>>) {
    let mut buffer = Vec::new();
    loop {
        let next = receiver.lock().recv();
        let Ok(Ahead { file, offset, length }) = next else { return };
        if let Some(file) = file.upgrade() {
            buffer.resize(length.max(buffer.len()), 0);
            file.read_ahead(offset, &mut buffer[..length]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: i64 = 47_008;
    const FAR: i64 = 16 * RECORD;

    #[test]
    fn records_at_a_large_distance_are_expected_once_each() {
        let mut reads = Reads::default();
        let expected: Vec<_> =
            (0..10).flat_map(|number| reads.note(number * FAR, RECORD)).collect();
        let all: Vec<_> = (3..=AHEAD_READS_MAX + 9).map(|number| (number * FAR, RECORD)).collect();
        assert_eq!(expected, all);
    }

    #[test]
    fn all_bytes_are_expected_where_records_are_near() {
        let mut reads = Reads::default();
        let expected: Vec<_> =
            (0..40).flat_map(|number| reads.note((2 * number + 1) * RECORD, RECORD)).collect();
        let (first, last) = (expected[0].0, expected[expected.len() - 1]);
        assert_eq!(first, 6 * RECORD);
        assert!(expected.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0), "{expected:?}");
        assert!(
            expected[1..]
                .iter()
                .all(|one| *one == (one.0 / PIECE_BYTES * PIECE_BYTES, PIECE_BYTES))
        );
        assert!(last.0 + last.1 <= 80 * RECORD + AHEAD_BYTES_MAX);
    }

    #[test]
    fn other_distances_begin_again() {
        let mut reads = Reads::default();
        for number in [1, 3, 4] {
            assert!(reads.note(number * FAR, RECORD).is_empty());
        }
        assert!(!reads.note(5 * FAR, RECORD).is_empty());
        assert!(reads.note(9 * FAR, RECORD).is_empty());
        assert!(!reads.note(13 * FAR, RECORD).is_empty());
    }

    #[test]
    fn reads_backwards_end_at_the_start() {
        let mut reads = Reads::default();
        for number in [9, 8] {
            assert!(reads.note(number * FAR, RECORD).is_empty());
        }
        let expected: Vec<_> =
            (3..8).rev().flat_map(|number| reads.note(number * FAR, RECORD)).collect();
        let all: Vec<_> = (0..7).rev().map(|number| (number * FAR, RECORD)).collect();
        assert_eq!(expected, all);
    }

    #[test]
    fn same_place_is_not_read_ahead() {
        let mut reads = Reads::default();
        assert!((0..5).all(|_| reads.note(0, RECORD).is_empty()));
    }
}
