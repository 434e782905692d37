//! Parses numbers, times and sizes of schedulers.

/// A number above 0. For a range (`2-4`, `2,4`), its first number.
pub(crate) fn count(name: &str, value: Option<&str>) -> Result<u32, String> {
    let value = value.unwrap_or("");
    let least = value.split(['-', ',']).next().unwrap_or(value);
    match least.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!("{name} needs a whole number above 0, not \"{value}\"")),
    }
}

/// The weighted sum of numbers separated by colons. `forms` holds the weights for one number, for
/// two, and so on.
pub(crate) fn mixed_radix(text: &str, forms: &[&[u64]]) -> Option<u64> {
    let numbers: Vec<u64> =
        text.split(':').map(|number| number.parse().ok()).collect::<Option<_>>()?;
    let weights = forms.get(numbers.len() - 1)?;
    let mut products = numbers.iter().zip(*weights).map(|(n, weight)| n.checked_mul(*weight));
    products.try_fold(0_u64, |sum, product| sum.checked_add(product?))
}

/// A size: `4G`, `4gb`. Without a letter, `unit` gives its unit in bytes.
pub(crate) fn bytes(text: &str, unit: u64) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (number, has_b) = match lower.strip_suffix('b') {
        Some(number) => (number, true),
        None => (lower.as_str(), false),
    };
    let letter = number.char_indices().next_back().filter(|(_, c)| c.is_alphabetic());
    let (number, factor) = match letter {
        Some((at, letter)) => (&number[..at], 1_u64 << (10 * (1 + "kmgt".find(letter)?))),
        None => (number, if has_b { 1 } else { unit }),
    };
    number.parse::<u64>().ok()?.checked_mul(factor)
}

/// `H:M:S` or a shorter form, in units of the last number.
pub(crate) fn parse_hms(text: &str) -> Option<f64> {
    text.split(':').try_fold(0.0, |sum, part| {
        let part: u32 = part.parse().ok()?;
        Some(sum * 60.0 + f64::from(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_up_to_three_parts_are_read() {
        assert_eq!(parse_hms("00:10:05"), Some(605.0));
        assert_eq!(parse_hms("90"), Some(90.0));
        assert_eq!(parse_hms("1:x"), None);
    }
}
