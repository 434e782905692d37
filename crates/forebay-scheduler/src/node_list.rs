//! Lists of nodes as Slurm writes them, such as `n[1-16,20]`. Reads text alone.

/// A list stands for at most so many nodes.
const NODES_MAX: usize = 100_000;

/// The names that a list such as `n[01-16,20],login` stands for, in its order.
///
/// # Errors
/// If a bracket or a number is wrong, if it names no node, or if it stands for more than 100,000.
pub fn expand_node_list(list: &str) -> Result<Vec<String>, String> {
    let mut is_within = false;
    let words = list.split(|character| {
        is_within = character == '[' || (is_within && character != ']');
        character == ',' && !is_within
    });
    let mut names = Vec::new();
    for word in words.map(str::trim).filter(|word| !word.is_empty()) {
        let expanded = expand(word).filter(|more| names.len() + more.len() <= NODES_MAX);
        names.extend(expanded.ok_or_else(|| {
            format!("{word:?} is no list of nodes: write for example n[1-16,20]")
        })?);
    }
    if names.is_empty() {
        return Err(format!("{list:?} names no node: write for example n1,n2 or n[1-16,20]"));
    }
    Ok(names)
}

fn expand(word: &str) -> Option<Vec<String>> {
    let Some((before, rest)) = word.split_once('[') else {
        return (!word.contains(']')).then(|| vec![word.to_owned()]);
    };
    let (numbers, after) = rest.split_once(']')?;
    let ends = expand(after)?;
    let mut names = Vec::new();
    for part in numbers.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (number(first)?, number(last)?);
        let count = to.checked_sub(from)?.checked_add(1)?.checked_mul(ends.len())?;
        if names.len() + count > NODES_MAX {
            return None;
        }
        let width = first.len();
        let digits = (from..=to).map(|number| format!("{before}{number:0width$}"));
        names.extend(digits.flat_map(|start| ends.iter().map(move |end| format!("{start}{end}"))));
    }
    Some(names)
}

fn number(text: &str) -> Option<usize> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
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
        for wrong in
            ["n[1", "n1]", "n[]", "n[a-b]", "n[3-1]", "n[1-2", "n[1-999999999]", "n[1-9]]", "n[[1]"]
        {
            let message = expand_node_list(wrong).unwrap_err();
            assert!(message.contains("is no list of nodes"), "{wrong}: {message}");
        }
        assert!(expand_node_list(" ,").unwrap_err().contains("names no node"));
        assert!(expand_node_list("a[1-300]b[1-400]").is_err());
    }
}
