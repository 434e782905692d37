//! The user documentation names all entries of the tables.

use forebay_directive::{COMMANDS, FOREIGN, MODES, MODIFIERS, NNF_COMMANDS, Value};

const PAGE: &str = include_str!("../../../../docs/reference/directives.md");

#[test]
fn reference_page_names_every_command_key_and_word() {
    let mut missing: Vec<String> = Vec::new();
    let mut need = |text: String| {
        if !PAGE.contains(&text) {
            missing.push(text);
        }
    };
    let commands = COMMANDS.iter().chain(NNF_COMMANDS);
    for command in commands.clone() {
        need(format!("{} {}", command.prefix, command.name));
        command.flags.iter().for_each(|flag| need(format!("[{flag}]")));
    }
    for key in commands.flat_map(|command| command.keys).chain(MODIFIERS) {
        need(
            key.name.trim_end_matches('*').to_owned()
                + if key.name.ends_with('*') { "" } else { "=" },
        );
        need(key.alias.unwrap_or_default().to_owned());
        if let Value::Words(words) | Value::WordList(words) = key.value {
            words.iter().for_each(|word| need(word.name.to_owned()));
        }
    }
    MODES.iter().for_each(|mode| need(format!("`{}`", mode.name)));
    FOREIGN.iter().for_each(|(name, _)| need((*name).to_owned()));
    assert!(missing.is_empty(), "docs/reference/directives.md lacks {missing:?}");
}
