//! Which reads a program is expected to make next: those at a regular distance. Pure.

use std::collections::VecDeque;

/// Reads at the same distance before the next ones are expected.
const REGULAR_READS: i64 = 2;
/// How many are read ahead for each that was regular.
const AHEAD_FOR_EACH: i64 = 2;
/// The most that is read ahead of one open file: in reads, and in bytes where all are read and where records are.
const AHEAD_READS_MAX: i64 = 16;
const PIECES_BYTES_MAX: i64 = 8 << 20;
const RECORDS_BYTES_MAX: i64 = 4 << 20;
/// All bytes are read, in large pieces, if a program reads at least one of so many bytes, or if its reads are at most so many
/// bytes apart. A request costs a server as much as many bytes.
const BYTES_OF_ONE_MAX: i64 = 4;
const NEAR_BYTES: i64 = 32 << 10;
const PIECE_BYTES: i64 = 2 << 20;
/// The kernel makes several requests of so many bytes of a larger read. They follow each other, and the next read need not.
const REQUEST_BYTES_MAX: i64 = 1 << 20;
/// Reads between two attempts where nothing can be cached, since a program on another node may write the file: at first,
/// how much longer it gets each time, and at most.
const PAUSE_READS_FIRST: i64 = 16;
const PAUSE_GROWS: i64 = 4;
const PAUSE_READS_MAX: i64 = 256;
/// Pieces of a file that all its readers on the node know to be asked for.
const PIECES_KNOWN: usize = 32;

/// The reads of one open file so far.
#[derive(Default)]
pub(crate) struct Reads {
    last: i64,
    distance: i64,
    /// Successive reads at that distance.
    regular: i64,
    /// Where the last that was asked for begins, or ends if all bytes are read.
    asked: i64,
    /// What [`AskedPieces::forgotten`] was then.
    forgotten: u64,
    /// So many reads come first before anything is read ahead again, and so many came before the last attempt.
    pause: i64,
    last_pause: i64,
}

impl Reads {
    /// Notes a read of `length` bytes, after the cache was `forgotten` so often. Returns the offsets and lengths that are
    /// expected next and were not returned before. `has_own` says that libcephfs reads ahead what follows.
    pub(crate) fn note(
        &mut self,
        (offset, length): (i64, i64),
        has_own: bool,
        forgotten: u64,
    ) -> Vec<(i64, i64)> {
        let distance = offset.wrapping_sub(self.last);
        self.last = offset;
        if distance != self.distance {
            (self.distance, self.regular) = (distance, 0);
        }
        if self.regular == 0 || forgotten != self.forgotten {
            (self.asked, self.forgotten) = (offset, forgotten);
        }
        self.regular += 1;
        self.pause = (self.pause - 1).max(0);
        let overlaps = distance.unsigned_abs() < length as u64;
        let follows = distance == length && (has_own || length >= REQUEST_BYTES_MAX);
        if self.regular < REGULAR_READS || self.pause > 0 || overlaps || follows || length == 0 {
            return Vec::new();
        }
        if self.is_near(length) {
            return self.pieces(offset.saturating_add(length));
        }
        self.records(offset, length)
    }

    /// The offset of the last read; none in a pause.
    pub(crate) fn last_unless_paused(&self) -> Option<i64> {
        (self.pause == 0).then_some(self.last)
    }

    /// Whether what the program read was cached. If not, what is read ahead would not be either.
    pub(crate) fn note_cached(&mut self, is_cached: bool) {
        let longer = (self.last_pause * PAUSE_GROWS).clamp(PAUSE_READS_FIRST, PAUSE_READS_MAX);
        self.last_pause = if is_cached { 0 } else { longer };
        self.pause = self.last_pause;
    }

    /// Nobody reads what was returned from this place on.
    pub(crate) fn give_up(&mut self, (offset, length): (i64, i64)) {
        self.asked = if self.is_near(length) { offset } else { offset.wrapping_sub(self.distance) };
    }

    /// Whether all bytes are read.
    fn is_near(&self, length: i64) -> bool {
        (0..=NEAR_BYTES.max(BYTES_OF_ONE_MAX.saturating_mul(length))).contains(&self.distance)
    }

    /// All bytes from `end` on that are not asked for, up to the end of a piece.
    fn pieces(&mut self, end: i64) -> Vec<(i64, i64)> {
        let mut pieces = Vec::new();
        self.asked = self.asked.max(end);
        let ahead =
            self.expected().saturating_mul(self.distance).min(PIECES_BYTES_MAX - PIECE_BYTES);
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
        let most = self.expected().min(AHEAD_READS_MAX).min(RECORDS_BYTES_MAX / length);
        let at = |number| offset.checked_add(self.distance.checked_mul(number)?);
        let next: Vec<i64> =
            (1..=most).filter_map(at).filter(|at| *at >= 0 && is_new(at)).collect();
        self.asked = next.last().copied().unwrap_or(self.asked);
        next.into_iter().map(|at| (at, length)).collect()
    }
}

/// The pieces of one inode that were asked for last, by any of its readers on this node.
#[derive(Default)]
pub(crate) struct AskedPieces {
    ends: VecDeque<i64>,
    forgotten: u64,
}

impl AskedPieces {
    /// How often the cache was forgotten.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Nothing that was read ahead is cached any more.
    pub(crate) fn forget(&mut self) {
        self.forgotten += 1;
        self.ends.clear();
    }

    /// Nobody reads these.
    pub(crate) fn give_up(&mut self, places: &[(i64, i64)]) {
        let is_given_up =
            |end: i64| places.iter().any(|(offset, length)| offset.saturating_add(*length) == end);
        self.ends.retain(|end| !is_given_up(*end));
    }

    /// Whether another reader has asked for this piece. Records are no pieces: each has one reader.
    pub(crate) fn check_and_add(&mut self, (offset, length): (i64, i64)) -> bool {
        let end = offset.saturating_add(length);
        if end % PIECE_BYTES != 0 {
            return false;
        }
        if self.ends.contains(&end) {
            return true;
        }
        if self.ends.len() == PIECES_KNOWN {
            self.ends.pop_front();
        }
        self.ends.push_back(end);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: i64 = 47_008;
    const FAR: i64 = 16 * RECORD;

    fn note(reads: &mut Reads, offset: i64) -> Vec<(i64, i64)> {
        reads.note((offset, RECORD), false, 0)
    }

    #[test]
    fn records_at_a_large_distance_are_expected_once_each() {
        let mut reads = Reads::default();
        let expected: Vec<_> = (0..10).flat_map(|number| note(&mut reads, number * FAR)).collect();
        let all: Vec<_> = (3..=AHEAD_READS_MAX + 9).map(|number| (number * FAR, RECORD)).collect();
        assert_eq!(expected, all);
    }

    #[test]
    fn all_bytes_are_expected_where_records_are_near() {
        let mut reads = Reads::default();
        let expected: Vec<_> =
            (0..40).flat_map(|number| note(&mut reads, (2 * number + 1) * RECORD)).collect();
        let (first, last) = (expected[0].0, expected[expected.len() - 1]);
        assert_eq!(first, 6 * RECORD);
        assert!(expected.windows(2).all(|two| two[0].0 + two[0].1 == two[1].0), "{expected:?}");
        assert!(
            expected[1..]
                .iter()
                .all(|one| *one == (one.0 / PIECE_BYTES * PIECE_BYTES, PIECE_BYTES))
        );
        assert!(last.0 + last.1 <= 80 * RECORD + PIECES_BYTES_MAX);
    }

    #[test]
    fn other_distances_begin_again() {
        let mut reads = Reads::default();
        for number in [1, 3, 4] {
            assert!(note(&mut reads, number * FAR).is_empty());
        }
        assert!(!note(&mut reads, 5 * FAR).is_empty());
        assert!(note(&mut reads, 9 * FAR).is_empty());
        assert!(!note(&mut reads, 13 * FAR).is_empty());
    }

    #[test]
    fn reads_backwards_end_at_the_start() {
        let mut reads = Reads::default();
        for number in [9, 8] {
            assert!(note(&mut reads, number * FAR).is_empty());
        }
        let expected: Vec<_> =
            (3..8).rev().flat_map(|number| note(&mut reads, number * FAR)).collect();
        let all: Vec<_> = (0..7).rev().map(|number| (number * FAR, RECORD)).collect();
        assert_eq!(expected, all);
    }

    #[test]
    fn same_place_is_not_read_ahead() {
        let mut reads = Reads::default();
        assert!((0..5).all(|_| note(&mut reads, 0).is_empty()));
    }

    #[test]
    fn what_the_kernel_or_libcephfs_makes_follow_is_not_read_ahead() {
        for (length, has_own) in [(REQUEST_BYTES_MAX, false), (RECORD, true)] {
            let mut reads = Reads::default();
            let mut at = (0..9).map(|number| number * length);
            assert!(at.all(|offset| reads.note((offset, length), has_own, 0).is_empty()));
        }
        let mut reads = Reads::default();
        let mut at = (0..9).map(|number| number * RECORD);
        assert!(at.any(|offset| !note(&mut reads, offset).is_empty()));
    }

    #[test]
    fn what_was_forgotten_or_given_up_is_expected_again() {
        let mut reads = Reads::default();
        let expected: Vec<_> = (0..40).flat_map(|number| note(&mut reads, number * FAR)).collect();
        assert_eq!(note(&mut reads, 40 * FAR), [(56 * FAR, RECORD)]);
        assert_eq!(reads.note((41 * FAR, RECORD), false, 1).len(), 16);
        let again = note(&mut reads, 42 * FAR);
        reads.give_up(again[0]);
        assert_eq!(reads.note((43 * FAR, RECORD), false, 0).first(), Some(&(44 * FAR, RECORD)));
        assert!(!expected.is_empty());
    }

    #[test]
    fn pauses_get_longer_until_something_is_cached() {
        let mut reads = Reads::default();
        let mut number = 0;
        let mut reads_until_next = |reads: &mut Reads| {
            let first = number;
            loop {
                number += 1;
                if !note(reads, number * FAR).is_empty() {
                    return number - first;
                }
            }
        };
        reads_until_next(&mut reads);
        for expected in [16, 64, 256, 256] {
            reads.note_cached(false);
            assert_eq!(reads.last_unless_paused(), None);
            assert_eq!(reads_until_next(&mut reads), expected);
        }
        reads.note_cached(true);
        reads.note_cached(false);
        assert_eq!(reads_until_next(&mut reads), 16);
    }

    #[test]
    fn pieces_are_asked_for_by_one_reader() {
        let mut asked = AskedPieces::default();
        let piece = (PIECE_BYTES + 5, PIECE_BYTES - 5);
        assert!(
            !asked.check_and_add(piece)
                && asked.check_and_add(piece)
                && asked.check_and_add((PIECE_BYTES, PIECE_BYTES))
        );
        assert!(!asked.check_and_add((0, RECORD)) && !asked.check_and_add((0, RECORD)));
        asked.forget();
        assert!(!asked.check_and_add(piece) && asked.forgotten() == 1);
        for number in 2..40 {
            assert!(!asked.check_and_add((number * PIECE_BYTES, PIECE_BYTES)));
        }
        assert!(!asked.check_and_add(piece));
    }

    #[test]
    fn offsets_at_the_limits_do_not_overflow() {
        for (offset, length) in [(i64::MAX - 5, 5), (i64::MAX, i64::MAX), (i64::MIN, 1)] {
            let mut reads = Reads::default();
            for number in 0..9 {
                reads.note((offset.wrapping_sub(number), length), false, 0);
                reads.note((offset.wrapping_add(length.wrapping_mul(number)), length), false, 0);
            }
        }
    }
}
