//! Actions in other clusters wait until those can be reached, and are woken then.

use std::sync::Arc;

use linchpin_engine::contract::{Actor, ClusterRef, Question, Seen, Via, Want, Why};
use linchpin_words::Reason;
use serde_json::json;

use crate::{
    build::{NAMESPACE, Steps, apply, plan},
    play::{Play, steps_of},
};

fn elsewhere() -> Via {
    let cluster = ClusterRef::Kubeconfig {
        namespace: NAMESPACE.to_owned(),
        name: "edge".to_owned(),
        key: "value".to_owned(),
        impersonate: None,
    };
    Via {
        cluster,
        actor: Actor::ServiceAccount { namespace: NAMESPACE.to_owned(), name: "builder".to_owned() },
    }
}

#[test]
fn an_action_waits_for_its_cluster_and_asks_to_be_woken() {
    let mut play = Play::new(plan(1, vec![apply("a").with(|action| action.via = elsewhere())]));
    assert!(play.step().is_empty());
    let question = Want::new(Question::Version { via: elsewhere() });
    assert!(play.decision().wants.contains(&question));

    let pending = Why::new(Reason::ClusterPending, "its kubeconfig is not there yet");
    play.answer(question.clone(), Seen::Unknown(pending));
    assert!(play.step().is_empty());
    let blocked = &play.decision().report.blocked;
    assert_eq!(blocked[0].reason, "ClusterPending");
    assert!(blocked[0].message.contains("its kubeconfig is not there yet"), "{}", blocked[0].message);

    play.answer(question.clone(), Seen::Version(Arc::new(json!({"gitVersion": "v1.36.0"}))));
    let effects = play.step();
    assert_eq!(steps_of(&effects), ["a"]);
    play.succeed(&effects[0]);
    play.step();
    assert!(!play.decision().wants.contains(&question), "what is done is not watched");
}

#[test]
fn a_cluster_that_refuses_to_tell_its_version_may_still_be_acted_in() {
    let mut play = Play::new(plan(1, vec![apply("a").with(|action| action.via = elsewhere())]));
    let refused = Why::new(Reason::Forbidden, "no");
    play.answer(Want::new(Question::Version { via: elsewhere() }), Seen::Unknown(refused));
    assert_eq!(steps_of(&play.step()), ["a"]);
}
