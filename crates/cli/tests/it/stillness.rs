//! Waiting costs nothing: no request but the watches that are open already.

use crate::{seconds, world::scenario};
use linchpin_testkit::audit::Audit;
use std::thread;

#[test]
fn twenty_that_wait_make_no_request() {
    let scenario = scenario("still");
    for number in 0..20 {
        let dependency = if number % 2 == 0 {
            format!("configmap/shared-{}", number % 3)
        } else {
            format!("secret/own-{number}")
        };
        scenario.resource_dependency(
            &format!("rd-{number}"),
            &format!(
                "{{dependencies: [{{resource: {dependency}}}, {{resource: nothing.not-served.example.com/x, optional: true}}], \
                 actions: [{{type: create, resource: {{apiVersion: v1, kind: ConfigMap, metadata: {{name: made-{number}}}}}}}]}}"
            ),
        );
    }
    for number in 0..20 {
        scenario.blocked(&format!("rd-{number}"), "NotFound");
    }
    // Statuses and events that were under way may still be written.
    thread::sleep(seconds(3));
    let quiet = Audit::from_now(&crate::world::world().cluster.audit_log());
    thread::sleep(seconds(10));
    assert_eq!(quiet.requests_for("still"), []);
    let watches = quiet.events().into_iter().filter(|event| {
        event.is_by_operator()
            && event.verb == "watch"
            && event.stage == "ResponseStarted"
            && event.acting_as.as_deref() == Some(scenario.actor().as_str())
    });
    assert_eq!(watches.collect::<Vec<_>>(), [], "watches are not begun again");
    // And they are awake.
    scenario.config_map("shared-0", "");
    for number in [0, 6, 12, 18] {
        scenario.completed(&format!("rd-{number}"));
    }
}
