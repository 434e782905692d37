//! Parses sizes in Slurm's format.

/// The reason why a text is not a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// It does not start with a digit.
    #[error("it does not begin with a number")]
    NoNumber,
    /// The unit is unknown.
    #[error("its unit is not one of K, M, G, T, P, KiB, MiB, GiB, TiB, PiB, KB, MB, GB, TB, PB")]
    Unit,
    /// It is a number of nodes, which needs a pool of nodes.
    #[error("it counts nodes, which only a pool can give")]
    Nodes,
    /// Zero bytes.
    #[error("it is zero")]
    Zero,
    /// It does not fit into 64 bits.
    #[error("it is larger than 2^63 bytes")]
    TooLarge,
}

/// Parses a size such as `2TiB`, `1000GB`, `3.5TB`, `600G` or `4096` to bytes.
///
/// A number without unit means bytes. `K M G T P` and `KiB ...` are powers of 1024, `KB ...` powers
/// of 1000. Case does not matter (Slurm, `bb_get_size_num`). Unlike Slurm, which reads `3.5TB` as 3
/// bytes, Forebay supports decimals. The result is rounded up to a byte.
///
/// # Errors
/// See [`SizeError`].
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(SizeError::NoNumber);
    }
    let whole: u128 = text[..digits].parse().map_err(|_| SizeError::TooLarge)?;
    let rest = &text[digits..];
    let fraction = rest
        .strip_prefix('.')
        .map_or("", |tail| &tail[..tail.bytes().take_while(u8::is_ascii_digit).count()]);
    let unit = if fraction.is_empty() { rest } else { &rest[1 + fraction.len()..] };
    let factor = factor(unit)?;
    let mut bytes = whole.checked_mul(factor).ok_or(SizeError::TooLarge)?;
    if !fraction.is_empty() {
        let fraction = &fraction[..fraction.len().min(18)];
        let scale = 10u128.pow(u32::try_from(fraction.len()).unwrap_or(18));
        let part: u128 = fraction.parse().map_err(|_| SizeError::NoNumber)?;
        bytes += (part * factor).div_ceil(scale);
    }
    match u64::try_from(bytes) {
        Ok(0) => Err(SizeError::Zero),
        Ok(bytes) if bytes < 1 << 63 => Ok(bytes),
        _ => Err(SizeError::TooLarge),
    }
}

fn factor(unit: &str) -> Result<u128, SizeError> {
    let unit = unit.to_ascii_lowercase();
    if matches!(unit.as_str(), "n" | "node" | "nodes") {
        return Err(SizeError::Nodes);
    }
    let Some(letter) = unit.chars().next() else {
        return Ok(1);
    };
    let power = match letter {
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        'p' => 5,
        _ => return Err(SizeError::Unit),
    };
    match &unit[1..] {
        "" | "ib" => Ok(1024u128.pow(power)),
        "b" => Ok(1000u128.pow(power)),
        _ => Err(SizeError::Unit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_use_slurm_units_and_exact_decimals() {
        for (text, bytes) in [
            ("1", 1),
            ("4096", 4096),
            ("1K", 1024),
            ("1kib", 1024),
            ("1KB", 1000),
            ("2TiB", 2 << 40),
            ("1000GB", 1_000_000_000_000),
            ("600G", 600 << 30),
            ("3.5TB", 3_500_000_000_000),
            ("0.5KiB", 512),
            ("0.1", 1),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn invalid_size_is_refused_with_its_reason() {
        for (text, error) in [
            ("", SizeError::NoNumber),
            ("GiB", SizeError::NoNumber),
            ("-1G", SizeError::NoNumber),
            ("0", SizeError::Zero),
            ("0GiB", SizeError::Zero),
            ("1X", SizeError::Unit),
            ("1 G", SizeError::Unit),
            ("1.G", SizeError::Unit),
            ("1GiBs", SizeError::Unit),
            ("4nodes", SizeError::Nodes),
            ("9999999P", SizeError::TooLarge),
            ("99999999999999999999999999999999999999999", SizeError::TooLarge),
        ] {
            assert_eq!(parse_size(text), Err(error), "{text}");
        }
    }
}
