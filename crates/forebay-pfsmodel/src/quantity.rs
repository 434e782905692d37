//! Parses quantities with units, as in machine files: `62.5 MB/s`, `500 us`, `1 MiB`.
//! Never assumes a unit. Rounds to whole bytes or nanoseconds. Refuses values above 10^15, and 0 unless the caller
//! allows it.

/// A number of a machine file and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quantity<T> {
    /// The number, in the unit that the field's name ends in.
    pub value: T,
    /// A publication, a measurement, or the word "assumption" with a reason.
    pub source: String,
}

/// The kind of quantity to parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Bytes per second.
    Rate,
    /// Nanoseconds.
    Time,
    /// Bytes.
    Size,
}

const TIMES: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// The maximum value: larger ones are typing errors, and nanosecond arithmetic would lose digits.
const VALUE_MAX: f64 = 1e15;

impl Kind {
    fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Kind::Rate | Kind::Size => SIZES,
            Kind::Time => TIMES,
        }
    }

    /// The end of each unit.
    fn suffix(self) -> &'static str {
        if self == Kind::Rate { "/s" } else { "" }
    }

    /// Describes the expected text, for error messages.
    pub(crate) fn expected(self) -> String {
        let (what, example) = match self {
            Kind::Rate => ("a rate", "62.5 MB/s"),
            Kind::Time => ("a time", "500 us"),
            Kind::Size => ("a size", "1 MiB"),
        };
        let units = self.units().iter();
        let units: Vec<String> =
            units.map(|(unit, _)| format!("{unit}{}", self.suffix())).collect();
        format!("{what} with one of the units {}, such as \"{example}\"", units.join(", "))
    }

    /// Parses `text` as bytes per second, nanoseconds or bytes, rounded to a whole number.
    ///
    /// # Errors
    /// The reason as a phrase: no number, no unit, a unit of another kind, negative, zero (unless
    /// `zero_allowed`) or out of range.
    pub(crate) fn parse(self, text: &str, zero_allowed: bool) -> Result<u64, String> {
        let text = text.trim();
        let digits_end = text
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+')))
            .unwrap_or(text.len());
        let (number, unit) = (&text[..digits_end], text[digits_end..].trim());
        let number: f64 = number.parse().map_err(|_| "no number at the start".to_owned())?;
        if unit.is_empty() {
            return Err("the unit is missing".to_owned());
        }
        let mut units = self.units().iter();
        let is_it = |known: &str| unit.strip_suffix(self.suffix()) == Some(known);
        let Some((_, factor)) = units.find(|(known, _)| is_it(known)) else {
            return Err(format!("unit \"{unit}\" does not fit here"));
        };
        let value = (number * factor).round();
        if value < 0.0 {
            Err("it is negative".to_owned())
        } else if value < 1.0 && !(zero_allowed && number == 0.0) {
            Err("it is zero".to_owned())
        } else if value > VALUE_MAX {
            Err("it is out of range".to_owned())
        } else {
            // 0 <= value <= 1e15 holds here, so the conversion is exact.
            Ok(value as u64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Kind;

    #[test]
    fn quantities_are_read_with_their_units() {
        assert_eq!(Kind::Rate.parse("62.5 MB/s", false), Ok(62_500_000));
        assert_eq!(Kind::Rate.parse("1GiB/s", false), Ok(1 << 30));
        assert_eq!(Kind::Time.parse(" 500 us ", false), Ok(500_000));
        assert_eq!(Kind::Time.parse("0 us", true), Ok(0));
        assert_eq!(Kind::Size.parse("1 MiB", false), Ok(1 << 20));
    }

    #[test]
    fn each_invalid_quantity_has_its_reason() {
        let reason = |kind: Kind, text| kind.parse(text, false).unwrap_err();
        assert_eq!(reason(Kind::Rate, "62.5"), "the unit is missing");
        assert_eq!(reason(Kind::Rate, "62.5 MB"), "unit \"MB\" does not fit here");
        assert_eq!(reason(Kind::Rate, "62.5 mb/s"), "unit \"mb/s\" does not fit here");
        assert_eq!(reason(Kind::Time, "-5 us"), "it is negative");
        assert_eq!(reason(Kind::Time, "0 us"), "it is zero");
        assert_eq!(reason(Kind::Time, "0.1 ns"), "it is zero");
        assert_eq!(reason(Kind::Size, "fast"), "no number at the start");
        assert_eq!(reason(Kind::Size, "1-2 MiB"), "no number at the start");
        assert_eq!(reason(Kind::Rate, "9999999 GB/s"), "it is out of range");
    }
}
