//! Secrets of cephx.

/// The type of an AES key in `CryptoKey` of Ceph (src/auth/Crypto.h), the only one of cephx in all versions
/// up to 19.
const TYPE_AES: u16 = 1;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The secret of one name of a cluster, as it stands in a keyring.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// The secret of 16 random bytes, made at a time.
    #[must_use]
    pub fn from_random(bytes: [u8; 16], created_unix_s: u32) -> Self {
        let mut encoded = Vec::with_capacity(28);
        encoded.extend(TYPE_AES.to_le_bytes());
        encoded.extend(created_unix_s.to_le_bytes());
        encoded.extend(0_u32.to_le_bytes()); // nanoseconds
        encoded.extend(16_u16.to_le_bytes());
        encoded.extend(bytes);
        Self(base64(&encoded))
    }

    /// The text of the secret.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The lines of a keyring: the name, its secret, and what it may do (`mon`, `allow *`).
    #[must_use]
    pub fn keyring(&self, name: &str, capabilities: &[(&str, &str)]) -> String {
        let mut text = format!("[{name}]\n\tkey = {}\n", self.0);
        for (service, capability) in capabilities {
            text.push_str(&format!("\tcaps {service} = \"{capability}\"\n"));
        }
        text
    }
}

/// Shows no secret.
impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Key")
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let sextet = (bits >> (18 - 6 * at)) & 63;
            let letter = char::from(ALPHABET[sextet as usize]);
            text.push(if at <= group.len() as u32 { letter } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ceph-authtool --gen-print-key` of version 16 printed the text; the other two are its parts. Its
    /// nanoseconds, which no one reads, are 0 here.
    #[test]
    fn key_has_the_layout_of_ceph_authtool() {
        let bytes = [
            0x28, 0x78, 0x36, 0x18, 0x93, 0xce, 0x36, 0xa1, 0xf6, 0xed, 0xc5, 0xca, 0x8b, 0x46,
            0x60, 0x12,
        ];
        let text = Key::from_random(bytes, 0x6b06_24b2).0;
        assert_eq!(text, "AQCyJAZrAAAAABAAKHg2GJPONqH27cXKi0ZgEg==");
    }

    #[test]
    fn keyring_names_key_and_capabilities() {
        let key = Key::from_random([7; 16], 1);
        assert_eq!(
            key.keyring("client.job", &[("mon", "allow r")]),
            format!("[client.job]\n\tkey = {}\n\tcaps mon = \"allow r\"\n", key.text())
        );
        assert!(!format!("{key:?}").contains(key.text()));
    }

    #[test]
    fn base64_has_the_test_vectors_of_rfc_4648() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, encoded) in vectors {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}
