//! Maps the bytes of a file to targets, by RAID-0 arithmetic.

/// The striping of a file, fixed when the file is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Number of targets, at least 1.
    pub stripe_count: u32,
    /// Bytes of one stripe on one target, at least 1.
    pub stripe_size_bytes: u64,
    /// Target of the file's first byte.
    pub first_target: u32,
}

/// The part of a request on one target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetBytes {
    /// Index of the target.
    pub target: u32,
    /// Bytes of the request on this target.
    pub bytes: u64,
}

impl Layout {
    /// The target of stripe unit `unit` of the file (unit 0 starts at byte 0).
    pub fn target_of_unit(&self, unit: u64, targets: u32) -> u32 {
        let step = unit % u64::from(self.stripe_count);
        // Less than `targets`, which is a u32.
        ((u64::from(self.first_target) + step) % u64::from(targets)) as u32
    }

    /// Splits a range over the targets. Each target occurs once, in the order in which the range
    /// first reaches it. The parts have `length_bytes` bytes in total.
    pub fn bytes_by_target(
        &self,
        offset_bytes: u64,
        length_bytes: u64,
        targets: u32,
    ) -> impl Iterator<Item = TargetBytes> + use<> {
        let layout = *self;
        let (size, width) = (layout.stripe_size_bytes, u64::from(layout.stripe_count));
        let first = offset_bytes / size;
        let end = offset_bytes.saturating_add(length_bytes);
        // The unit after the last one of the range; an empty range has none.
        let after = if length_bytes == 0 { first } else { (end - 1) / size + 1 };
        (0..width.min(after - first)).map(move |part| {
            let unit = first + part;
            let units = (after - 1 - unit) / width + 1;
            let head = if part == 0 { offset_bytes - first * size } else { 0 };
            let tail = if unit + (units - 1) * width == after - 1 {
                after.saturating_mul(size).saturating_sub(end)
            } else {
                0
            };
            let bytes = units.saturating_mul(size).saturating_sub(head).saturating_sub(tail);
            TargetBytes { target: layout.target_of_unit(unit, targets), bytes }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Layout, TargetBytes};

    fn slow_lanes(layout: &Layout, offset: u64, length: u64, targets: u32) -> Vec<(u32, u64)> {
        let mut bytes = vec![0u64; targets as usize];
        for position in offset..offset + length {
            let unit = position / layout.stripe_size_bytes;
            let step = (unit % u64::from(layout.stripe_count)) as u32;
            bytes[((layout.first_target + step) % targets) as usize] += 1;
        }
        (0u32..).zip(bytes).filter(|(_, bytes)| *bytes > 0).collect()
    }

    /// Compares all small cases with a count of single bytes.
    #[test]
    fn bytes_per_target_agree_with_counting_single_bytes() {
        for (stripe_count, stripe_size_bytes, first_target) in
            [(1, 4, 2), (2, 3, 4), (3, 5, 0), (5, 2, 3), (4, 1, 1)]
        {
            let layout = Layout { stripe_count, stripe_size_bytes, first_target };
            for offset in 0..32 {
                for length in 0..48 {
                    let mut got: Vec<(u32, u64)> = layout
                        .bytes_by_target(offset, length, 5)
                        .map(|TargetBytes { target, bytes }| (target, bytes))
                        .collect();
                    got.sort_unstable();
                    assert_eq!(
                        got,
                        slow_lanes(&layout, offset, length, 5),
                        "{layout:?} at {offset}+{length}"
                    );
                }
            }
        }
    }

    #[test]
    fn huge_request_costs_at_most_one_step_per_stripe() {
        let layout = Layout { stripe_count: 4, stripe_size_bytes: 65_536, first_target: 0 };
        let bytes_by_target: Vec<TargetBytes> = layout.bytes_by_target(0, 1 << 50, 8).collect();
        assert_eq!(bytes_by_target.len(), 4);
        assert_eq!(bytes_by_target.iter().map(|part| part.bytes).sum::<u64>(), 1 << 50);
    }
}
