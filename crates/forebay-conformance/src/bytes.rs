//! Bytes and file contents in the lines between coordinator and worker.
//! Assumes that both sides compute the same pattern. No byte of a pattern is 0, so a hole always differs from it.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Bytes, in JSON a string with one character per byte (ISO 8859-1), so that names and text stay readable.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0.iter().copied().map(char::from).collect::<String>())
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = text.chars().map(u8::try_from).collect::<Result<_, _>>();
        bytes.map(Self).map_err(|_| de::Error::custom("a character above 255 is no byte"))
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "\"{}\"", self.0.escape_ascii())
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl From<&str> for Bytes {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<String> for Bytes {
    fn from(text: String) -> Self {
        Self(text.into_bytes())
    }
}

/// Contents of a file: given, or computed by both sides, so that lines stay short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Data {
    /// These bytes.
    Given(Bytes),
    /// `bytes` bytes of the pattern `seed`.
    Pattern {
        /// Which pattern. Two patterns differ in nearly every byte.
        seed: u64,
        /// The length.
        bytes: usize,
    },
}

impl Data {
    /// A pattern.
    pub fn pattern(seed: u64, bytes: usize) -> Self {
        Self::Pattern { seed, bytes }
    }

    /// The contents.
    pub fn contents(&self) -> Vec<u8> {
        match self {
            Self::Given(bytes) => bytes.0.clone(),
            Self::Pattern { seed, bytes } => {
                (0..*bytes).map(|at| pattern_byte(*seed, at)).collect()
            }
        }
    }
}

impl From<&str> for Data {
    fn from(text: &str) -> Self {
        Self::Given(text.into())
    }
}

/// The byte at an offset of a pattern, never 0: a hole differs from each pattern in every byte.
fn pattern_byte(seed: u64, at: usize) -> u8 {
    let mixed =
        (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ at as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    1 + ((mixed >> 32) % 255) as u8
}

/// The first offset at which the contents differ; their common length if one is shorter.
pub fn first_difference(one: &[u8], other: &[u8]) -> Option<usize> {
    let common = one.len().min(other.len());
    let differs = (0..common).find(|&at| one[at] != other[at]);
    differs.or((one.len() != other.len()).then_some(common))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_json() {
        let all = Bytes((0..=255).collect());
        let text = serde_json::to_string(&all).expect("write");
        assert_eq!(serde_json::from_str::<Bytes>(&text).expect("read"), all);
        assert!(serde_json::from_str::<Bytes>("\"\u{0100}\"").is_err());
    }

    #[test]
    fn patterns_differ_and_have_no_zero() {
        let (one, other) =
            (Data::pattern(1, 65_536).contents(), Data::pattern(2, 65_536).contents());
        assert!(!one.contains(&0));
        let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        assert!(same < 65_536 / 100, "{same} equal bytes");
        assert_ne!(one[..4096], one[4096..8192]);
    }

    #[test]
    fn first_difference_finds_bytes_and_lengths() {
        assert_eq!(first_difference(b"abc", b"abc"), None);
        assert_eq!(first_difference(b"abc", b"abd"), Some(2));
        assert_eq!(first_difference(b"abc", b"ab"), Some(2));
    }
}
