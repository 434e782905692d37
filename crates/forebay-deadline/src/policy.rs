//! Decides from the time left whether to warn, to signal or to end the job.
//! Assumes a rate above zero. Never reads the clock and never acts: the guard does.

/// The current situation. Times are in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Snapshot {
    /// The time until the scheduler ends the job.
    pub(crate) left_s: f64,
    /// Files to stage out that are not at their destination.
    pub(crate) files: u64,
    /// The bytes of these files.
    pub(crate) bytes: u64,
    /// The time of the measurement itself.
    pub(crate) look_s: f64,
}

/// The parameters of the calculation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters {
    /// The rate of stage-out.
    pub(crate) bytes_per_s: f64,
    /// The time to keep free before the end.
    pub(crate) margin_s: f64,
    /// The time that processes of the job may need to end.
    pub(crate) grace_s: f64,
    /// The time of the signal before the end of the job; none for no signal.
    pub(crate) signal_s: Option<f64>,
}

/// The actions so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct History {
    /// Outstanding bytes at the last warning; 0 before the first warning.
    pub(crate) warned_bytes: u64,
    /// Whether the signal was sent.
    pub(crate) signalled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Action {
    /// Measure again after this time in seconds.
    GoOn(f64),
    /// Warn the user about the remaining time.
    Warn,
    /// Send the signal.
    Signal,
    /// End the job, so that stage-out begins.
    End,
}

/// The fixed time for each file, to create, sync and rename it.
const FILE_S: f64 = 0.005;
/// The minimum and maximum interval between measurements.
const LOOK_S: (f64, f64) = (1.0, 10.0);
/// Measurements take at most this fraction (one part in 50) of the time.
const LOOK_SHARE: f64 = 50.0;

impl Snapshot {
    /// The time that stage-out needs.
    pub(crate) fn needed_s(&self, terms: &Parameters) -> f64 {
        #[allow(clippy::cast_precision_loss)]
        let (bytes, files) = (self.bytes as f64, self.files as f64);
        bytes / terms.bytes_per_s + files * FILE_S
    }

    fn reserved_s(&self, terms: &Parameters) -> f64 {
        self.needed_s(terms) + terms.margin_s + terms.grace_s
    }

    /// Whether stage-out needs at least half of the time left.
    pub(crate) fn is_near(&self, terms: &Parameters) -> bool {
        self.reserved_s(terms) >= self.left_s / 2.0
    }
}

/// Decides the next action.
pub(crate) fn decide(now: &Snapshot, terms: &Parameters, history: &History) -> Action {
    let spare_s = now.left_s - now.reserved_s(terms);
    let is_safe = now.files == 0;
    if spare_s <= 0.0 && !is_safe {
        return Action::End;
    }
    let to_signal = terms.signal_s.filter(|_| !history.signalled);
    if to_signal.is_some_and(|before_s| spare_s <= before_s) {
        return Action::Signal;
    }
    let news = history.warned_bytes == 0 || now.bytes / 2 >= history.warned_bytes;
    if !is_safe && now.is_near(terms) && news {
        return Action::Warn;
    }
    let (least_s, most_s) = LOOK_S;
    let often_s = (spare_s / 4.0).clamp(least_s, most_s);
    // A longer interval because of slow measurements must not delay an action.
    let next_s = spare_s - to_signal.unwrap_or(0.0);
    Action::GoOn(often_s.max(now.look_s * LOOK_SHARE).min(next_s.max(least_s)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;
    const TERMS: Parameters =
        Parameters { bytes_per_s: 1e6, margin_s: 20.0, grace_s: 10.0, signal_s: None };

    fn at(left_s: f64, bytes: u64) -> Snapshot {
        Snapshot { left_s, files: u64::from(bytes > 0), bytes, look_s: 0.001 }
    }

    fn fresh(now: Snapshot, terms: Parameters) -> Action {
        decide(&now, &terms, &History::default())
    }

    #[test]
    fn job_with_enough_time_continues() {
        assert_eq!(fresh(at(3600.0, 100_000_000), TERMS), Action::GoOn(10.0));
        assert_eq!(fresh(at(3600.0, 0), TERMS), Action::GoOn(10.0));
    }

    #[test]
    fn job_is_ended_when_stage_out_margin_and_grace_fill_the_time_left() {
        // 70 s of copying, 20 s of margin, 10 s of grace.
        let seventy = 70_000_000;
        let warned = History { warned_bytes: seventy, ..History::default() };
        let before = decide(&at(101.0, seventy), &TERMS, &warned);
        assert_eq!(before, Action::GoOn(1.0));
        assert_eq!(decide(&at(100.0, seventy), &TERMS, &warned), Action::End);
        assert_eq!(fresh(at(5.0, 1), TERMS), Action::End);
        assert_eq!(fresh(at(-5.0, 1), TERMS), Action::End);
    }

    #[test]
    fn many_small_files_take_longer_than_their_bytes() {
        let mut many = at(100.0, MIB);
        many.files = 20_000;
        assert_eq!(fresh(many, TERMS), Action::End);
    }

    #[test]
    fn job_whose_results_are_safe_is_never_ended() {
        assert!(matches!(fresh(at(1.0, 0), TERMS), Action::GoOn(_)));
        assert!(matches!(fresh(at(-1.0, 0), TERMS), Action::GoOn(_)));
    }

    #[test]
    fn warning_at_half_of_the_time_is_repeated_at_twice_the_unsaved_data() {
        let history = |warned_bytes| History { warned_bytes, ..History::default() };
        let decided = |bytes, before| decide(&at(200.0, bytes), &TERMS, &history(before));
        assert!(matches!(decided(69_000_000, 0), Action::GoOn(_)));
        assert_eq!(decided(71_000_000, 0), Action::Warn);
        assert!(matches!(decided(140_000_000, 71_000_000), Action::GoOn(_)));
        assert_eq!(decided(143_000_000, 71_000_000), Action::Warn);
    }

    #[test]
    fn signal_is_sent_once_before_the_job_is_ended() {
        let terms = Parameters { signal_s: Some(120.0), ..TERMS };
        // 50 s of copying: the job ends when 80 s are left.
        let fifty = 50_000_000;
        let warned = History { warned_bytes: fifty, ..History::default() };
        let signalled = History { signalled: true, ..warned };
        assert_eq!(decide(&at(201.0, fifty), &terms, &warned), Action::GoOn(1.0));
        assert_eq!(decide(&at(200.0, fifty), &terms, &warned), Action::Signal);
        let after = decide(&at(200.0, fifty), &terms, &signalled);
        assert!(matches!(after, Action::GoOn(_)));
        assert_eq!(decide(&at(80.0, fifty), &terms, &signalled), Action::End);
        // Also without outstanding data: the user may want a last checkpoint.
        assert_eq!(fresh(at(150.0, 0), terms), Action::Signal);
    }

    #[test]
    fn slow_measurements_are_made_rarely_but_in_time() {
        let mut slow = at(100_000.0, 1_000_000);
        slow.look_s = 20.0;
        assert_eq!(fresh(slow, TERMS), Action::GoOn(1000.0));
        let mut late = at(500.0, 1_000_000);
        late.look_s = 20.0;
        let Action::GoOn(seconds) = fresh(late, TERMS) else {
            panic!("it goes on");
        };
        assert!(seconds < 500.0 - 30.0 && seconds > 400.0, "{seconds}");
    }
}
