//! Requirements on the network hold while a probe is met, and say in its words why not.

use linchpin_engine::contract::{ProbePace, Question, Seen, Want, Why};
use linchpin_words::{
    Reason, Shared,
    probe::{Miss, Probe, ProbeTarget},
};

use crate::{
    build::{Steps, apply, plan, require, via},
    play::{Play, steps_of},
};

fn probe() -> Want {
    let probe =
        Shared::new(Probe { place: ProbeTarget::host("db.example.com", 5432).unwrap(), request: None });
    Want::new(Question::Probe { via: via(), probe, pace: ProbePace::Calm })
}

#[test]
fn an_action_waits_until_a_probe_is_met() {
    let requirement = require("db").asking(|requirement| requirement.want = probe());
    let mut play = Play::new(plan(1, vec![requirement, apply("a").after(&["db"])]));
    assert!(play.step().is_empty());
    assert!(play.decision().wants.contains(&probe()));
    for (seen, reason, words) in [
        (Seen::Probe(Err(Miss::Refused)), "Refused", "connection refused"),
        (Seen::Probe(Err(Miss::Status(503))), "HttpStatus", "HTTP 503"),
        (Seen::Unknown(Why::new(Reason::ProbeDenied, "not there")), "ProbeDenied", "not there"),
    ] {
        play.answer(probe(), seen);
        assert!(play.step().is_empty(), "{reason}");
        let blocked = &play.decision().report.blocked;
        assert_eq!(blocked[0].reason, reason);
        assert!(blocked[0].message.contains(words), "{}", blocked[0].message);
    }
    play.answer(probe(), Seen::Probe(Ok(())));
    assert_eq!(steps_of(&play.step()), ["a"]);
}
