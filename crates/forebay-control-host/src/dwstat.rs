//! `dwstat`: tables of what the site has, in the layout of DataWarp, from the state alone. Slurm ends it after 2 s.

mod table;
mod why;

use std::ffi::OsString;
use std::time::{Duration, UNIX_EPOCH};

use forebay_directive::closest;
use forebay_host::users;

use crate::context::Context;
use crate::dwstat::table::{Table, size};
use crate::{Phase, Reply, Session, Share};
use forebay_site::Error;

/// The names of the tables.
const NAMES: [&str; 9] = [
    "pools",
    "nodes",
    "sessions",
    "instances",
    "configurations",
    "registrations",
    "activations",
    "fragments",
    "namespaces",
];
/// What `most` stands for; `all` is everything.
const MOST: [&str; 6] =
    ["pools", "sessions", "instances", "configurations", "registrations", "activations"];

/// What `forebay why` asks for.
const WHY: &str = "why";

/// What the words ask for.
#[derive(Debug, Default, PartialEq, Eq)]
struct DwstatOptions {
    tables: Vec<&'static str>,
    is_decimal: bool,
    has_details: bool,
}

/// Prints the tables that the words after the program's name ask for.
pub fn dwstat(words: &[OsString]) -> Reply {
    if let [word, token] = words
        && word == WHY
    {
        let token = forebay_host::files::lossy(token);
        return Context::open().and_then(|context| why::why(&context, &token)).into();
    }
    asked(words).and_then(|asked| shown(&Context::open()?, &asked)).into()
}

fn asked(words: &[OsString]) -> Result<DwstatOptions, Error> {
    let mut asked = DwstatOptions::default();
    for word in words {
        let word = forebay_host::files::lossy(word);
        match word.as_str() {
            "-H" => asked.is_decimal = true,
            "--cd" => asked.has_details = true,
            "most" => asked.tables.extend(MOST),
            "all" => asked.tables.extend(NAMES),
            name => {
                // DataWarp takes the singular, too.
                let known = NAMES
                    .iter()
                    .find(|known| **known == name || known.strip_suffix('s') == Some(name));
                let known = known.ok_or_else(|| {
                    let error = Error::new(format!("dwstat: there is no table {name:?}"));
                    match closest(name, NAMES) {
                        Some(meant) => error.with_hint(format!("did you mean {meant}?")),
                        None => error
                            .with_hint(format!("the tables are {}, most, all", NAMES.join(", "))),
                    }
                })?;
                asked.tables.push(known);
            }
        }
    }
    if asked.tables.is_empty() {
        asked.tables.push(NAMES[0]);
    }
    Ok(asked)
}

fn shown(context: &Context, asked: &DwstatOptions) -> Result<String, Error> {
    let sessions = context.database.sessions()?;
    let shares = context.database.shares(None)?;
    let (mut texts, mut empty) = (Vec::new(), Vec::new());
    for name in &asked.tables {
        let table = match *name {
            "pools" => pools(context, asked)?,
            "nodes" => nodes(context, asked, &sessions, &shares)?,
            "sessions" => of_sessions(&sessions),
            "instances" => instances(&sessions, &shares, asked),
            "configurations" => configurations(&sessions, asked),
            "registrations" => registrations(context, &sessions)?,
            "activations" => activations(&sessions),
            "fragments" => fragments(&sessions, &shares, asked),
            _ => namespaces(&sessions),
        };
        if table.is_empty() {
            empty.push(*name);
        } else {
            texts.push(table.text());
        }
    }
    if !empty.is_empty() {
        texts.push(format!("did not find any {}", empty.join(", ")));
    }
    Ok(texts.join("\n\n"))
}

fn pools(context: &Context, asked: &DwstatOptions) -> Result<Table, Error> {
    let mut table = Table::new(&["pool", "units", "quantity", "free", "gran"]);
    for pool in &context.site.pools {
        let free = context.database.free_granules(pool)?;
        let shown =
            |granules: u64| size(granules.saturating_mul(pool.granularity_bytes), asked.is_decimal);
        table.add([
            pool.name.clone(),
            "bytes".to_owned(),
            shown(pool.quantity),
            shown(free),
            shown(1),
        ]);
    }
    Ok(table)
}

fn nodes(
    context: &Context,
    asked: &DwstatOptions,
    sessions: &[Session],
    shares: &[Share],
) -> Result<Table, Error> {
    let mut table =
        Table::new(&["node", "pool", "online", "drain", "gran", "capacity", "insts", "activs"]);
    let (known, drained) = (context.database.nodes()?, context.database.drained()?);
    for pool in &context.site.pools {
        for node in &pool.staging_nodes {
            let is_online = known.iter().any(|(name, is_online)| *name == node.name && *is_online);
            let (name, at) = (node.name.clone(), node.to_string());
            let is_there = |session: &Session| {
                session.node == at || of(shares, session).any(|share| share.node == at)
            };
            let own =
                sessions.iter().filter(|session| session.pool == pool.name && is_there(session));
            let (instances, active): (Vec<_>, Vec<_>) =
                (own.clone().collect(), own.filter(|one| is_active(one)).collect());
            let shown = |granules: u64| {
                size(granules.saturating_mul(pool.granularity_bytes), asked.is_decimal)
            };
            table.add([
                name,
                pool.name.clone(),
                online(is_online),
                drain(drained.contains(&pool.name)),
                shown(1),
                size(pool.directory_bytes(), asked.is_decimal),
                instances.len().to_string(),
                active.len().to_string(),
            ]);
        }
    }
    Ok(table)
}

fn online(is_online: bool) -> String {
    if is_online { "online" } else { "offline" }.to_owned()
}

fn drain(is_drained: bool) -> String {
    if is_drained { "drain" } else { "fill" }.to_owned()
}

fn of_sessions(sessions: &[Session]) -> Table {
    let header = ["sess", "state", "token", "creator", "owner", "created", "expiration", "nodes"];
    let mut table = Table::new(&header);
    for session in sessions {
        let creator = if session.is_persistent() { "CLI" } else { "SLURM" };
        table.add([
            session.id.to_string(),
            state(session, 5),
            session.token.clone(),
            creator.to_owned(),
            users::user_named(session.user),
            time(session.created_unix_s),
            "never".to_owned(),
            session.hosts.to_string(),
        ]);
    }
    table
}

fn instances(sessions: &[Session], shares: &[Share], asked: &DwstatOptions) -> Table {
    let mut table = Table::new(&[
        "inst",
        "state",
        "sess",
        "bytes",
        "nodes",
        "created",
        "expiration",
        "intact",
        "label",
        "public",
        "confs",
    ]);
    for session in with_space(sessions) {
        let id = session.id.to_string();
        table.add([
            id.clone(),
            state(session, 5),
            id,
            size(session.capacity_bytes(), asked.is_decimal),
            of(shares, session).count().max(1).to_string(),
            time(session.created_unix_s),
            "never".to_owned(),
            "true".to_owned(),
            session.token.clone(),
            session.is_persistent().to_string(),
            "1".to_owned(),
        ]);
    }
    table
}

fn configurations(sessions: &[Session], asked: &DwstatOptions) -> Table {
    let mut table = match asked.has_details {
        true => Table::new(&["conf", "state", "inst", "type", "amode", "activs", "backing_path"]),
        false => Table::new(&["conf", "state", "inst", "type", "access_type", "activs"]),
    };
    for session in with_space(sessions) {
        let id = session.id.to_string();
        let active = usize::from(is_active(session)).to_string();
        let mut cells = vec![
            id.clone(),
            state(session, 5),
            id,
            "scratch".to_owned(),
            if session.is_private() { "private" } else { "stripe" }.to_owned(),
            active,
        ];
        cells.extend(asked.has_details.then(|| "-".to_owned()));
        table.add(cells);
    }
    table
}

/// A job uses its own configuration and those of persistent allocations.
fn registrations(context: &Context, sessions: &[Session]) -> Result<Table, Error> {
    let mut table = Table::new(&["reg", "state", "sess", "conf", "wait"]);
    for session in sessions.iter().filter(|session| !session.is_persistent()) {
        let used = context.database.used_by(session.id)?;
        let own = (session.granules > 0).then_some(session.id);
        let wait = !session.plan.stage_out.is_empty();
        for conf in own.into_iter().chain(used.iter().map(|one| one.id)) {
            let id = session.id.to_string();
            table.add([id.clone(), state(session, 5), id, conf.to_string(), wait.to_string()]);
        }
    }
    Ok(table)
}

fn activations(sessions: &[Session]) -> Table {
    let mut table = Table::new(&["activ", "state", "sess", "conf", "nodes", "ccache", "mount"]);
    for session in with_space(sessions).filter(|session| is_active(session)) {
        let id = session.id.to_string();
        table.add([
            id.clone(),
            state(session, 5),
            id.clone(),
            id,
            session.hosts.to_string(),
            "no".to_owned(),
            session.namespace(),
        ]);
    }
    table
}

/// The shares of an allocation.
fn of<'a>(shares: &'a [Share], session: &Session) -> impl Iterator<Item = &'a Share> {
    let id = session.id;
    shares.iter().filter(move |share| share.session == id)
}

fn fragments(sessions: &[Session], shares: &[Share], asked: &DwstatOptions) -> Table {
    let mut table = Table::new(&["frag", "state", "inst", "capacity", "gran", "node"]);
    for session in with_space(sessions) {
        let id = session.id.to_string();
        let shown = |bytes| size(bytes, asked.is_decimal);
        let own = of(shares, session).map(|share| (&share.node, share.bytes));
        let whole = (!session.is_on_nodes()).then_some((&session.node, session.capacity_bytes()));
        for (node, bytes) in own.chain(whole) {
            table.add([
                id.clone(),
                state(session, 4),
                id.clone(),
                shown(bytes),
                shown(session.granularity_bytes),
                node.split(':').next().unwrap_or_default().to_owned(),
            ]);
        }
    }
    table
}

fn namespaces(sessions: &[Session]) -> Table {
    let mut table = Table::new(&["nss", "state", "conf", "frag", "span"]);
    for session in with_space(sessions) {
        let id = session.id.to_string();
        table.add([id.clone(), state(session, 4), id.clone(), id, "1".to_owned()]);
    }
    table
}

fn with_space(sessions: &[Session]) -> impl Iterator<Item = &Session> {
    sessions.iter().filter(|session| session.granules > 0)
}

fn is_active(session: &Session) -> bool {
    session.phase == Phase::Running
}

/// Flags: create or destroy, actualised, failed, in transition, mixed.
fn state(session: &Session, flags: usize) -> String {
    let goal = if session.phase == Phase::Removing { 'D' } else { 'C' };
    let is_moving = matches!(
        session.phase,
        Phase::Waiting | Phase::Creating | Phase::StagingIn | Phase::StagingOut | Phase::Removing
    );
    let flag = |is_set: bool, letter: char| if is_set { letter } else { '-' };
    let all = [
        goal,
        flag(session.phase > Phase::Creating, 'A'),
        flag(session.problem.is_some(), 'F'),
        flag(is_moving, 'T'),
        '-',
    ];
    all[..flags].iter().collect()
}

/// UTC.
fn time(unix_s: u64) -> String {
    let text =
        humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(unix_s)).to_string();
    text.trim_end_matches('Z').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(words: &[&str]) -> Result<DwstatOptions, String> {
        let words: Vec<_> = words.iter().map(OsString::from).collect();
        asked(&words).map_err(|error| error.to_string())
    }

    #[test]
    fn words_name_tables_and_units() {
        assert_eq!(ask(&[]).expect("default").tables, ["pools"]);
        assert_eq!(ask(&["most"]).expect("most").tables, MOST);
        assert_eq!(ask(&["all"]).expect("all").tables, NAMES);
        let two = ask(&["-H", "session", "--cd", "nodes"]).expect("two");
        assert_eq!(
            (two.tables, two.is_decimal, two.has_details),
            (vec!["sessions", "nodes"], true, true)
        );
        assert_eq!(
            ask(&["sesions"]).expect_err("wrong"),
            "dwstat: there is no table \"sesions\"; did you mean sessions?"
        );
        assert!(ask(&["--help me"]).expect_err("wrong").contains("the tables are pools, nodes"));
    }
}
