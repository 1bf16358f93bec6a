//! What `show stat <backend> 6 -1` says: the servers of a backend, their states and sessions.
//!
//! An answer counts only if it is whole: with its head, the line of the backend itself, and its end. Everything else is
//! trouble.

use std::collections::BTreeMap;

use linchpin_consist::Trouble;
use linchpin_words::{hash::Fnv, text::quote};

/// What a server is allowed, and able, to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerState {
    /// It gets requests.
    Ready,
    /// It would, but its check fails.
    Down,
    /// It gets those of clients that are bound to it.
    Drain,
    /// It gets none.
    Maint,
}

impl ServerState {
    /// As it is shown and compared.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Down => "down",
            Self::Drain => "drain",
            Self::Maint => "maint",
        }
    }
}

/// One server of a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServerRow {
    pub(super) state: ServerState,
    /// `ip:port`, an IPv6 address in brackets.
    pub(super) address: String,
    pub(super) id: u32,
    /// Sessions on it and requests in its queue.
    pub(super) sessions: u64,
    /// What its check says.
    pub(super) check: String,
}

/// Servers by backend and name.
pub(super) type Backends = BTreeMap<String, BTreeMap<String, ServerRow>>;

/// The number that a server gets which is added for an employer: HAProxy shows it, so that whose a server is can be known
/// after any restart of ours. `del server` takes away servers of the configuration too; they have other numbers.
pub(super) fn mark(scope: &str, server: &str) -> u32 {
    let hash = Fnv::of(format!("{scope}/{server}").as_bytes());
    let folded = u32::try_from((hash ^ (hash >> 32)) & 0x3fff_ffff).unwrap_or_default();
    0x4000_0000 | folded
}

/// Reads an answer; empty where HAProxy has no such backend.
pub(super) fn read(text: &str) -> Result<Backends, Trouble> {
    if text.trim() == "No such proxy." {
        return Ok(Backends::new());
    }
    let garbage = |why: &str| Trouble(format!("haproxy's answer to `show stat` {why}"));
    let body = text.strip_suffix("\n\n").ok_or_else(|| garbage("has no end"))?;
    let mut lines = body.lines();
    let head = lines.next().and_then(|head| head.strip_prefix("# "));
    let head = head.ok_or_else(|| garbage(&format!("is {}", quote(text.trim()))))?;
    let head: Vec<&str> = head.split(',').collect();
    let column = |name: &str| {
        let place = head.iter().position(|column| *column == name);
        place.ok_or_else(|| garbage(&format!("has no column {name}")))
    };
    let [proxy, server, queued, sessions] =
        [column("pxname")?, column("svname")?, column("qcur")?, column("scur")?];
    let [status, id, address, check] =
        [column("status")?, column("sid")?, column("addr")?, column("check_status")?];
    let mut backends = Backends::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let cells = cells(line);
        let cell = |place: usize| cells.get(place).map(String::as_str).unwrap_or_default();
        if cells.len() < head.len() - 1 || cell(proxy).is_empty() {
            return Err(garbage("has a line that is cut off"));
        }
        let servers = backends.entry(cell(proxy).to_owned()).or_default();
        if cell(server) == "BACKEND" {
            // The line of the backend comes behind its servers: without it they may not be all.
            servers.insert(WHOLE.to_owned(), none());
            continue;
        }
        let number = |place: usize| match cell(place) {
            "" => Ok(0),
            text => text.parse::<u64>().map_err(|_| garbage("has a number that is none")),
        };
        let row = ServerRow {
            state: state(cell(status)).ok_or_else(|| garbage("has a server without a status"))?,
            address: cell(address).to_owned(),
            id: u32::try_from(number(id)?).map_err(|_| garbage("has a number that is none"))?,
            sessions: number(queued)?.saturating_add(number(sessions)?),
            check: cell(check).to_owned(),
        };
        servers.insert(cell(server).to_owned(), row);
    }
    for servers in backends.values_mut() {
        servers.remove(WHOLE).ok_or_else(|| garbage("ends before the line of the backend"))?;
    }
    if backends.is_empty() {
        return Err(garbage("names no backend"));
    }
    Ok(backends)
}

/// A place for the line of the backend itself; no server can have this name.
const WHOLE: &str = "";

fn none() -> ServerRow {
    ServerRow { state: ServerState::Maint, address: String::new(), id: 0, sessions: 0, check: String::new() }
}

fn state(status: &str) -> Option<ServerState> {
    match status.split(' ').next().unwrap_or_default() {
        "" => None,
        "MAINT" => Some(ServerState::Maint),
        "DRAIN" => Some(ServerState::Drain),
        "UP" | "no" | "OPEN" => Some(ServerState::Ready),
        _ => Some(ServerState::Down),
    }
}

/// The cells of a line; those in quotes may have commas and doubled quotes in them.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for character in line.chars() {
        match (character, quoted) {
            ('"', _) => quoted = !quoted,
            (',', false) => cells.push(String::new()),
            (character, _) => {
                if let Some(cell) = cells.last_mut() {
                    cell.push(character);
                }
            }
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEAD: &str = "# pxname,svname,qcur,scur,status,sid,check_status,last_chk,addr,algo,";

    fn whole(rows: &[&str]) -> String {
        format!("{HEAD}\n{}\nshop_web,BACKEND,0,0,UP,0,,,,roundrobin,\n\n", rows.join("\n"))
    }

    #[test]
    fn servers_are_read_with_their_sessions_and_states() {
        let text = whole(&[
            "shop_web,web-1,1,2,UP 1/3,7,L4OK,\"a, \"\"b\"\"\",10.0.0.7:80,,",
            "shop_web,web-2,0,0,no check,8,,,[fd00::7]:80,,",
            "shop_web,web-3,0,0,MAINT,9,,,10.0.0.9:80,,",
            "shop_web,web-4,0,1,DRAIN,9,,,10.0.0.9:80,,",
            "shop_web,web-5,0,0,DOWN,9,L4CON,,10.0.0.9:80,,",
        ]);
        let servers = read(&text).unwrap().remove("shop_web").unwrap();
        let states: Vec<_> = servers.values().map(|row| (row.state.word(), row.sessions)).collect();
        assert_eq!(states, [("ready", 3), ("ready", 0), ("maint", 0), ("drain", 1), ("down", 0)]);
        assert_eq!((servers["web-2"].address.as_str(), servers["web-1"].id), ("[fd00::7]:80", 7));
        assert_eq!(servers["web-5"].check, "L4CON");
        assert_eq!(read("No such proxy.\n\n"), Ok(Backends::new()));
    }

    #[test]
    fn an_answer_that_is_not_whole_is_trouble() {
        let good = whole(&["shop_web,web-1,0,0,UP,7,,,10.0.0.7:80,,"]);
        assert!(read(&good).is_ok());
        for end in (0..good.len()).filter(|end| good.is_char_boundary(*end)) {
            assert!(read(&good[..end]).is_err(), "cut at {end}: {:?}", &good[..end]);
        }
        for wrong in [
            "Permission denied\n\n",
            "Unknown command: 'show stat'\n\n",
            "# pxname,svname\nshop_web,BACKEND\n\n",
            &good.replace(",UP,7", ",,7"),
            &good.replace(",UP,7", ",UP,x"),
            &format!("{HEAD}\n\n"),
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn marks_differ_and_are_numbers_that_haproxy_takes() {
        let one = mark("Service/shop/web", "web-1");
        assert_ne!(one, mark("Service/shop/web", "web-2"));
        assert_ne!(one, mark("Service/shop/api", "web-1"));
        assert!((0x4000_0000..0x8000_0000).contains(&one));
    }

    proptest! {
        #[test]
        fn nothing_that_is_said_ends_the_process(text in "(?s).{0,200}", rows in prop::collection::vec(".{0,60}", 0..4)) {
            let _ = read(&text);
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            let _ = read(&whole(&rows));
        }
    }
}
