//! Lists of nodes as Slurm writes them, such as `n[1-16,20]`. Reads text alone.
//! Never looks a name up, and keeps a name that is given twice.

/// The most nodes that a list may name.
const NODES_MAX: usize = 100_000;
/// The most digits of a number in brackets.
const DIGITS_MAX: usize = 9;
const NO_LIST: &str = "is no list of nodes: write for example n[1-16,20]";
const TOO_LONG: &str = "names more than 100,000 nodes";

/// The names that a list such as `n[01-16,20],login` stands for, in its order.
///
/// # Errors
/// If a bracket or a number is wrong, if it names no node, or more than 100,000.
pub fn expand_node_list(list: &str) -> Result<Vec<String>, String> {
    let mut is_within = false;
    let words = list.split(|character| {
        is_within = character == '[' || (is_within && character != ']');
        character == ',' && !is_within
    });
    let mut names = Vec::new();
    for word in words.map(str::trim).filter(|word| !word.is_empty()) {
        let expanded = expand(word).map_err(|what| format!("{word:?} {what}"))?;
        if names.len() + expanded.len() > NODES_MAX {
            return Err(format!("{list:?} {TOO_LONG}"));
        }
        names.extend(expanded);
    }
    if names.is_empty() {
        return Err(format!("{list:?} names no node: write for example n1,n2 or n[1-16,20]"));
    }
    Ok(names)
}

fn expand(word: &str) -> Result<Vec<String>, &'static str> {
    let (mut names, mut rest) = (vec![String::new()], word);
    while let Some((before, after)) = rest.split_once('[') {
        let (numbers, after) = after.split_once(']').ok_or(NO_LIST)?;
        if before.contains(']') {
            return Err(NO_LIST);
        }
        let numbers = expand_numbers(numbers)?;
        if names.len().saturating_mul(numbers.len()) > NODES_MAX {
            return Err(TOO_LONG);
        }
        let longer = |name: &String| {
            numbers.iter().map(|number| format!("{name}{before}{number}")).collect::<Vec<_>>()
        };
        names = names.iter().flat_map(longer).collect();
        rest = after;
    }
    if rest.contains(']') {
        return Err(NO_LIST);
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    Ok(names)
}

/// The numbers of `01-16,20`, each as wide as the first of its range.
fn expand_numbers(text: &str) -> Result<Vec<String>, &'static str> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (number(first)?, number(last)?);
        let count = to.checked_sub(from).ok_or(NO_LIST)?;
        if numbers.len() + count >= NODES_MAX {
            return Err(TOO_LONG);
        }
        let width = first.len();
        numbers.extend((from..=to).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

fn number(text: &str) -> Result<usize, &'static str> {
    let are_digits = text.len() <= DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| are_digits).ok_or(NO_LIST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(list: &str) -> String {
        expand_node_list(list).unwrap().join(" ")
    }

    #[test]
    fn list_stands_for_its_nodes_in_order() {
        assert_eq!(joined("n2,n1"), "n2 n1");
        assert_eq!(joined("n[1-3,7],login"), "n1 n2 n3 n7 login");
        assert_eq!(joined("n[08-11]-ib"), "n08-ib n09-ib n10-ib n11-ib");
        assert_eq!(joined("r[1-2]n[1,3]"), "r1n1 r1n3 r2n1 r2n3");
        assert_eq!(joined("n[1-2]:7000, n9"), "n1:7000 n2:7000 n9");
    }

    #[test]
    fn wrong_list_is_named() {
        for wrong in [
            "n[1",
            "n1]",
            "n[]",
            "n[a-b]",
            "n[3-1]",
            "n[1-2",
            "n[1-9]]",
            "n[[1]",
            "n[1-]",
            "n[0000000001]",
            "n[+1]",
        ] {
            let message = expand_node_list(wrong).unwrap_err();
            assert!(message.contains("is no list of nodes"), "{wrong}: {message}");
        }
        assert!(expand_node_list(" ,").unwrap_err().contains("names no node"));
        for long in ["n[1-999999999]", "a[1-300]b[1-400]", "n[1-100000],login"] {
            let message = expand_node_list(long).unwrap_err();
            assert!(message.contains("names more than 100,000 nodes"), "{long}: {message}");
        }
        assert_eq!(expand_node_list(&"[1]".repeat(10_000)).unwrap(), ["1".repeat(10_000)]);
    }
}
