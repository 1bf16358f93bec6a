//! What is next for one server of one HAProxy: a pure function of what it is and what it is to be.
//!
//! Into traffic: add (HAProxy makes it in maintenance), ready. Out of traffic: drain, wait until no session is left,
//! maintenance, which also ends what cookies still brought; only then is it taken away, or given another address.

use super::stat::{ServerRow, ServerState};

/// What a server is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerGoal {
    /// In traffic, at this address.
    Ready(String),
    /// There, at this address, and out of traffic.
    Out(String),
    /// Not there.
    Gone,
}

/// What is next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ServerStep {
    /// Nothing: it is as it is to be.
    Done,
    /// These commands, then another look.
    Run(Vec<String>),
    /// Sessions are left: so many.
    Drains(u64),
    /// Something that is not in our hands.
    Wait(String),
}

/// One server: its name in commands, and what it is added with.
#[derive(Clone, Debug)]
pub(super) struct NamedServer<'a> {
    /// `backend/server`.
    pub(super) name: &'a str,
    /// Our mark.
    pub(super) mark: u32,
    /// Words for `add server`.
    pub(super) words: &'a str,
    /// Whether HAProxy is to check it.
    pub(super) checks: bool,
}

pub(super) fn next(server: &NamedServer<'_>, row: Option<&ServerRow>, want: &ServerGoal) -> ServerStep {
    let NamedServer { name, .. } = server;
    let run = |command: String| ServerStep::Run(vec![command]);
    let Some(row) = row else {
        return match want {
            ServerGoal::Gone => ServerStep::Done,
            ServerGoal::Ready(address) | ServerGoal::Out(address) => ServerStep::Run(add(server, address)),
        };
    };
    if row.id != server.mark {
        return ServerStep::Wait(format!("haproxy has a server {name} that was not added for this employer"));
    }
    let moved = match want {
        ServerGoal::Ready(address) | ServerGoal::Out(address) => (*address != row.address).then_some(address),
        ServerGoal::Gone => None,
    };
    if matches!(want, ServerGoal::Ready(_)) && moved.is_none() {
        return match row.state {
            ServerState::Ready => ServerStep::Done,
            ServerState::Down => ServerStep::Wait(format!("haproxy's check of {name} fails ({})", row.check)),
            ServerState::Drain | ServerState::Maint => run(format!("set server {name} state ready")),
        };
    }
    match (row.state, row.sessions) {
        // One whose check fails may come up again.
        (ServerState::Ready, _) | (ServerState::Down, 1..) => run(format!("set server {name} state drain")),
        (ServerState::Drain | ServerState::Down, 0) => run(format!("set server {name} state maint")),
        (ServerState::Drain | ServerState::Maint, 1..) => ServerStep::Drains(row.sessions),
        (ServerState::Maint, 0) => match (want, moved) {
            (ServerGoal::Gone, _) => run(format!("del server {name}")),
            (_, Some(address)) => match address.rsplit_once(':') {
                Some((host, port)) => {
                    let host = host.trim_start_matches('[').trim_end_matches(']');
                    run(format!("set server {name} addr {host} port {port}"))
                }
                None => ServerStep::Wait(format!("{name} is to have an address that is none")),
            },
            _ => ServerStep::Done,
        },
    }
}

fn add(server: &NamedServer<'_>, address: &str) -> Vec<String> {
    let NamedServer { name, mark, words, checks } = server;
    let mut commands = vec![format!("add server {name} {address} {words} id {mark}")];
    if *checks {
        commands.push(format!("enable health {name}"));
    }
    commands
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SERVER: NamedServer<'_> =
        NamedServer { name: "shop_web/web-1", mark: 7, words: "weight 100", checks: false };

    fn row(state: ServerState, sessions: u64) -> ServerRow {
        ServerRow { state, address: "10.0.0.7:80".to_owned(), id: 7, sessions, check: "L4CON".to_owned() }
    }

    fn ready() -> ServerGoal {
        ServerGoal::Ready("10.0.0.7:80".to_owned())
    }

    fn run(command: &str) -> ServerStep {
        ServerStep::Run(vec![command.to_owned()])
    }

    #[test]
    fn a_server_comes_in_by_add_and_ready() {
        assert_eq!(
            next(&SERVER, None, &ready()),
            run("add server shop_web/web-1 10.0.0.7:80 weight 100 id 7")
        );
        let checked = NamedServer { checks: true, words: "weight 100 check", ..SERVER };
        let ServerStep::Run(commands) = next(&checked, None, &ready()) else { panic!() };
        assert_eq!(commands[1], "enable health shop_web/web-1");
        let ready = |state| next(&SERVER, Some(&row(state, 0)), &ready());
        assert_eq!(ready(ServerState::Maint), run("set server shop_web/web-1 state ready"));
        assert_eq!(ready(ServerState::Drain), run("set server shop_web/web-1 state ready"));
        assert_eq!(ready(ServerState::Ready), ServerStep::Done);
        assert!(matches!(ready(ServerState::Down), ServerStep::Wait(why) if why.contains("L4CON")));
    }

    #[test]
    fn a_server_goes_out_by_drain_no_session_maint_and_delete() {
        let out = |state, sessions| next(&SERVER, Some(&row(state, sessions)), &ServerGoal::Gone);
        assert_eq!(out(ServerState::Ready, 3), run("set server shop_web/web-1 state drain"));
        assert_eq!(out(ServerState::Drain, 3), ServerStep::Drains(3));
        assert_eq!(out(ServerState::Drain, 0), run("set server shop_web/web-1 state maint"));
        assert_eq!(out(ServerState::Maint, 1), ServerStep::Drains(1));
        assert_eq!(out(ServerState::Maint, 0), run("del server shop_web/web-1"));
        assert_eq!(next(&SERVER, None, &ServerGoal::Gone), ServerStep::Done);
        let off = ServerGoal::Out("10.0.0.7:80".to_owned());
        assert_eq!(next(&SERVER, Some(&row(ServerState::Maint, 0)), &off), ServerStep::Done);
    }

    #[test]
    fn a_pod_that_comes_back_elsewhere_is_drained_before_its_address_changes() {
        let moved = ServerGoal::Ready("[fd00::7]:81".to_owned());
        let at = |state, sessions| next(&SERVER, Some(&row(state, sessions)), &moved);
        assert_eq!(at(ServerState::Ready, 0), run("set server shop_web/web-1 state drain"));
        assert_eq!(at(ServerState::Drain, 0), run("set server shop_web/web-1 state maint"));
        assert_eq!(at(ServerState::Maint, 0), run("set server shop_web/web-1 addr fd00::7 port 81"));
    }

    #[test]
    fn a_server_of_the_configuration_is_never_touched() {
        for want in [ready(), ServerGoal::Out(String::new()), ServerGoal::Gone] {
            for state in [ServerState::Ready, ServerState::Maint, ServerState::Drain, ServerState::Down] {
                let foreign = ServerRow { id: 1, ..row(state, 0) };
                assert!(matches!(next(&SERVER, Some(&foreign), &want), ServerStep::Wait(_)));
            }
        }
    }

    /// What HAProxy makes of a command.
    fn obey(row: &mut Option<ServerRow>, command: &str) {
        let words: Vec<&str> = command.split(' ').collect();
        match (words[0], row.as_mut()) {
            ("add", None) => {
                *row = Some(ServerRow { address: words[3].to_owned(), ..self::row(ServerState::Maint, 0) });
            }
            ("del", Some(there)) => {
                assert_eq!((there.state, there.sessions), (ServerState::Maint, 0));
                *row = None;
            }
            ("set", Some(there)) if words[3] == "addr" => {
                assert_eq!((there.state, there.sessions), (ServerState::Maint, 0));
                there.address = format!("{}:{}", words[4], words[6]);
            }
            ("set", Some(there)) => {
                there.state = match words[4] {
                    "ready" => ServerState::Ready,
                    "drain" => ServerState::Drain,
                    _ => {
                        assert_eq!(there.sessions, 0, "maintenance before the last session ended");
                        ServerState::Maint
                    }
                };
            }
            _ => panic!("{command}"),
        }
    }

    proptest! {
        #[test]
        fn from_any_state_it_gets_where_it_is_to_be_without_cutting_a_session(
            state in prop::sample::select(vec![None, Some(ServerState::Ready), Some(ServerState::Drain), Some(ServerState::Maint), Some(ServerState::Down)]),
            sessions in 0..3_u64,
            want in prop::sample::select(vec![ready(), ServerGoal::Ready("10.0.0.8:80".to_owned()), ServerGoal::Out("10.0.0.7:80".to_owned()), ServerGoal::Gone]),
        ) {
            let mut there = state.map(|state| row(state, sessions));
            for _ in 0..10 {
                match next(&SERVER, there.as_ref(), &want) {
                    ServerStep::Done => return Ok(()),
                    ServerStep::Run(commands) => commands.iter().for_each(|command| obey(&mut there, command)),
                    ServerStep::Drains(_) => if let Some(there) = &mut there { there.sessions -= 1 },
                    ServerStep::Wait(_) => if let Some(there) = &mut there { there.state = ServerState::Ready },
                }
            }
            prop_assert!(false, "it never ends");
        }
    }
}
