//! What was lost with storage daemons whose data had no copy: placement groups of pools, and which objects those have.
//! Pure; the daemons of a group come from the monitors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use forebay_host::files;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The attribute of the root of a mount by which the agent of the node tells the mount. Its value is [`Losses`] as JSON.
pub const LOST_GROUPS_ATTRIBUTE: &std::ffi::CStr = c"user.forebay.lost-groups";

/// The groups whose data were lost with one daemon, by pool.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostGroups {
    /// By the name of the pool.
    pub pools: BTreeMap<String, LostOfPool>,
    /// The pool for new files of these pools.
    pub new_pool: String,
}

/// All losses of a file system, the earliest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Losses(Vec<LostGroups>);

/// The lost groups of one pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LostOfPool {
    /// The number of the pool.
    pub number: u64,
    /// How many groups it has.
    pub groups: u32,
    /// Those that are lost.
    pub lost: BTreeSet<u32>,
}

/// How the bytes of a file are distributed to objects (the CephFS documents, "File layouts").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLayout {
    /// Bytes that are next to each other in an object.
    pub stripe_unit_bytes: u64,
    /// Objects that take units in turn.
    pub stripe_count: u64,
    /// The size of an object.
    pub object_bytes: u64,
    /// The name of the pool.
    pub pool: String,
}

impl FileLayout {
    /// Reads the value of `ceph.file.layout`: `stripe_unit=N stripe_count=N object_size=N pool=NAME`.
    ///
    /// # Errors
    /// If a member is missing or wrong.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let member = |name: &str| {
            let mut words = text.split_whitespace();
            words.find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
        };
        let number = |name: &str| member(name)?.parse().ok().filter(|number| *number > 0);
        let read = || {
            Some(Self {
                stripe_unit_bytes: number("stripe_unit")?,
                stripe_count: number("stripe_count")?,
                object_bytes: number("object_size")?,
                pool: member("pool")?.to_owned(),
            })
        };
        let layout = read().filter(|layout| layout.object_bytes >= layout.stripe_unit_bytes);
        layout.ok_or_else(|| Error::Layout(text.to_owned()))
    }

    /// The number of the object that has the byte at this offset.
    fn object_at(&self, offset: u64) -> u64 {
        let unit = offset / self.stripe_unit_bytes;
        let units_of_object = self.object_bytes / self.stripe_unit_bytes;
        let set = unit / self.stripe_count / units_of_object;
        set * self.stripe_count + unit % self.stripe_count
    }

    /// The offsets of units that have bytes of `length` bytes from `offset` on.
    fn units(&self, offset: u64, length: u64) -> impl Iterator<Item = u64> + use<'_> {
        let first = offset / self.stripe_unit_bytes;
        let end = match length {
            0 => first,
            _ => offset.saturating_add(length).div_ceil(self.stripe_unit_bytes),
        };
        (first..end).map(|unit| unit * self.stripe_unit_bytes)
    }
}

fn parse<T: DeserializeOwned>(text: &[u8]) -> Result<T, Error> {
    let wrong = |error: serde_json::Error| Error::Answer {
        prefix: "config-key get".to_owned(),
        reason: error.to_string(),
    };
    serde_json::from_slice(text).map_err(wrong)
}

impl Losses {
    /// Reads the value of [`LOST_GROUPS_ATTRIBUTE`].
    ///
    /// # Errors
    /// If it is not such a value.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        parse(text)
    }

    /// Reads the file that a mount reads when it starts. Nothing is lost if there is none.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read(file: &Path) -> Result<Self, Error> {
        match files::read_json(file) {
            Err(error) if error.is_not_found() => Ok(Self::default()),
            read => Ok(read?),
        }
    }

    /// Adds the loss of one more daemon. A loss that is written down twice is one, with all that was found.
    pub fn add(&mut self, loss: LostGroups) {
        match self.0.iter_mut().find(|known| known.new_pool == loss.new_pool) {
            Some(known) => known.extend(loss.pools),
            None if loss.pools.is_empty() => {}
            None => self.0.push(loss),
        }
    }

    /// Adds losses that were written down elsewhere.
    pub fn add_all(&mut self, losses: Self) {
        losses.0.into_iter().for_each(|loss| self.add(loss));
    }

    /// Whether nothing is lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The pool for new files since the last loss.
    #[must_use]
    pub fn new_pool(&self) -> Option<&str> {
        self.0.last().map(|loss| loss.new_pool.as_str())
    }

    /// Whether files of the pool may have lost data.
    #[must_use]
    pub fn has_pool(&self, pool: &str) -> bool {
        self.0.iter().any(|loss| loss.pools.contains_key(pool))
    }

    /// Whether data of a file were lost: of `length` bytes from `offset` on. `emptied`: the pool for new files when the file
    /// was last emptied, if it was; earlier losses did not take what it has since.
    #[must_use]
    pub fn has(
        &self,
        (ino, layout): (u64, &FileLayout),
        (offset, length): (u64, u64),
        emptied: Option<&str>,
    ) -> bool {
        let at = emptied.and_then(|pool| self.0.iter().position(|loss| loss.new_pool == pool));
        let later = self.0.iter().skip(at.map_or(0, |at| at + 1));
        later.into_iter().any(|loss| loss.has(ino, layout, offset, length))
    }
}

impl LostGroups {
    /// Reads what the monitors keep.
    ///
    /// # Errors
    /// If it is something else.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        parse(text)
    }

    fn extend(&mut self, pools: BTreeMap<String, LostOfPool>) {
        for (name, of_pool) in pools {
            match self.pools.get_mut(&name) {
                Some(known) => known.lost.extend(of_pool.lost),
                None => drop(self.pools.insert(name, of_pool)),
            }
        }
    }

    fn has(&self, ino: u64, layout: &FileLayout, offset: u64, length: u64) -> bool {
        let Some(pool) = self.pools.get(&layout.pool) else { return false };
        let mut last = None;
        let objects = layout.units(offset, length).map(|unit| layout.object_at(unit));
        let mut changes = objects.filter(|object| last.replace(*object) != Some(*object));
        changes.any(|object| {
            let name = format!("{ino:x}.{object:08x}");
            pool.lost.contains(&group_of(name.as_bytes(), pool.groups))
        })
    }
}

/// The placement group of an object (`ceph_stable_mod` in src/include/rados.h of Ceph).
fn group_of(object: &[u8], groups: u32) -> u32 {
    let hash = name_hash(object);
    let mask = groups.next_power_of_two() - 1;
    if hash & mask < groups { hash & mask } else { hash & (mask >> 1) }
}

/// The hash of an object's name: Robert Jenkins' of 1996, as published in his page "A Hash Function for Hash Table
/// Lookup", with 0 as the initial value.
fn name_hash(name: &[u8]) -> u32 {
    let word =
        |bytes: &[u8]| bytes.iter().rev().fold(0_u32, |word, byte| word << 8 | u32::from(*byte));
    let [mut a, mut b, mut c] = [0x9e37_79b9, 0x9e37_79b9, 0_u32];
    let mut parts = name.chunks_exact(12);
    for part in &mut parts {
        a = a.wrapping_add(word(&part[..4]));
        b = b.wrapping_add(word(&part[4..8]));
        c = c.wrapping_add(word(&part[8..]));
        [a, b, c] = mixed([a, b, c]);
    }
    let mut rest = [0; 12];
    let bytes = parts.remainder();
    // The lowest byte of the last word is the length.
    let (first, last) = bytes.split_at(bytes.len().min(8));
    rest[..first.len()].copy_from_slice(first);
    rest[9..9 + last.len()].copy_from_slice(last);
    a = a.wrapping_add(word(&rest[..4]));
    b = b.wrapping_add(word(&rest[4..8]));
    c = c.wrapping_add(word(&rest[8..])).wrapping_add(name.len() as u32);
    mixed([a, b, c])[2]
}

fn mixed([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    for [of_a, of_b, of_c] in [[13, 8, 13], [12, 16, 5], [3, 10, 15]] {
        a = a.wrapping_sub(b).wrapping_sub(c) ^ c >> of_a;
        b = b.wrapping_sub(c).wrapping_sub(a) ^ a << of_b;
        c = c.wrapping_sub(a).wrapping_sub(b) ^ b >> of_c;
    }
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(stripe_count: u64, object_bytes: u64) -> FileLayout {
        FileLayout { stripe_unit_bytes: 100, stripe_count, object_bytes, pool: "data".to_owned() }
    }

    fn lost(pool: &str, groups: u32, lost: &[u32], new_pool: &str) -> LostGroups {
        let of_pool = LostOfPool { number: 2, groups, lost: lost.iter().copied().collect() };
        LostGroups { pools: [(pool.to_owned(), of_pool)].into(), new_pool: new_pool.to_owned() }
    }

    /// As `osd map` of Ceph 16.2.15 prints them (`raw_pgid`).
    #[test]
    fn names_have_the_hashes_of_ceph() {
        for (name, hash) in HASHES {
            assert_eq!(name_hash(name.as_bytes()), hash, "{name}");
        }
    }

    const HASHES: [(&str, u32); 13] = [
        ("a", 0x29ee_c818),
        ("abcdefgh", 0x053f_775e),
        ("abcdefghi", 0x3a7b_0a5f),
        ("abcdefghijkl", 0x0b1b_3ea5),
        ("100000000000.00000000", 0x71c6_a5fa),
        ("1000000000000.0000000a", 0xc148_14e1),
        ("fffffffffffff.00000000", 0xb237_97bd),
        ("1000000000000000.00000001", 0x1567_de70),
        ("10000000000.00000001ab", 0x5d10_a548),
        ("10000000000.00000000", 0xf0b5_6f30),
        ("10000000205.00000000", 0x01cc_b3fd),
        ("10000000207.00000000", 0xf289_5a87),
        ("100000005f0.00000000", 0x33c1_45a5),
    ];

    #[test]
    fn groups_beyond_a_power_of_two_are_folded() {
        // The hash ends with 0x30 = 48.
        let name = b"10000000000.00000000";
        assert_eq!([64, 48, 49, 32].map(|groups| group_of(name, groups)), [48, 16, 48, 16]);
    }

    #[test]
    fn bytes_are_in_the_objects_of_their_units() {
        let plain = layout(1, 100);
        assert_eq!([0, 99, 100, 250].map(|offset| plain.object_at(offset)), [0, 0, 1, 2]);
        // Two objects take units in turn, and have two units each.
        let striped = layout(2, 200);
        let objects: Vec<_> = (0..8).map(|unit| striped.object_at(unit * 100)).collect();
        assert_eq!(objects, [0, 1, 0, 1, 2, 3, 2, 3]);
        assert_eq!(plain.units(150, 100).collect::<Vec<_>>(), [100, 200]);
        assert_eq!(plain.units(150, 0).count(), 0);
    }

    #[test]
    fn parts_of_a_file_are_lost_and_others_not() {
        let (ino, layout) = (0x100_0000_0000, layout(1, 100));
        let group = group_of(b"10000000000.00000001", 64);
        let one = lost("data", 64, &[group], "data.2");
        assert!(one.has(ino, &layout, 100, 1) && one.has(ino, &layout, 0, 101));
        assert!(!one.has(ino, &layout, 0, 100));
        assert!(!one.has(ino, &FileLayout { pool: "data.2".to_owned(), ..layout }, 100, 1));
    }

    #[test]
    fn later_losses_add_up() {
        let mut all = Losses::default();
        assert!(all.is_empty() && all.new_pool().is_none());
        all.add(lost("data", 64, &[1, 4], "data.2"));
        all.add(lost("data", 64, &[2, 4], "data.3"));
        all.add(lost("data.2", 32, &[0], "data.4"));
        // A step that was carried out twice finds the groups elsewhere.
        all.add(LostGroups { pools: BTreeMap::new(), new_pool: "data.3".to_owned() });
        all.add(lost("data", 64, &[7], "data.3"));
        assert_eq!(all.0.len(), 3);
        assert_eq!(all.0[1].pools["data"].lost, [2, 4, 7].into());
        assert!(all.has_pool("data.2") && !all.has_pool("data.4"));
        assert_eq!(all.new_pool(), Some("data.4"));
        let text = serde_json::to_vec(&all).unwrap();
        assert_eq!(Losses::parse(&text).unwrap(), all);
        assert!(LostGroups::parse(b"{}").is_err() && Losses::parse(b"{}").is_err());
    }

    #[test]
    fn file_that_was_emptied_has_lost_nothing_with_earlier_losses() {
        let (ino, layout) = (0x100_0000_0000, layout(1, 100));
        let group = |object: &str| group_of(format!("10000000000.{object}").as_bytes(), 64);
        let mut all = Losses::default();
        all.add(lost("data", 64, &[group("00000000"), group("00000001")], "data.2"));
        all.add(lost("data", 64, &[group("00000001")], "data.3"));
        let has = |offset, emptied| all.has((ino, &layout), (offset, 1), emptied);
        assert!(has(0, None) && has(100, None));
        assert!(!has(0, Some("data.2")) && has(100, Some("data.2")));
        assert!(!has(0, Some("data.3")) && !has(100, Some("data.3")));
    }

    #[test]
    fn layouts_are_read() {
        let text = "stripe_unit=65536 stripe_count=1 object_size=65536 pool=data";
        let layout = FileLayout::parse(text).unwrap();
        assert_eq!((layout.stripe_unit_bytes, layout.pool.as_str()), (65536, "data"));
        for wrong in ["", "stripe_unit=0 stripe_count=1 object_size=1 pool=data", "stripe_unit=1"] {
            assert!(FileLayout::parse(wrong).is_err(), "{wrong}");
        }
    }
}
