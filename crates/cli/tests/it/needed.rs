//! Which rights of a process were used, told from the audit log: a right that nothing uses is one too many.
//!
//! Every rule is judged resource by resource and verb by verb. What was used is needed: without it that request is refused,
//! and no request of ours may be. A verb that goes with one that was used is excused by [`EXCUSES`], with its reason.

use std::collections::BTreeSet;

use linchpin_operator::{
    rights::{RightRow, TABLE, manifests::rule},
    settings::DoorName,
};
use linchpin_testkit::audit::Event;
use serde_json::Value;

/// Verbs that no request needs as long as nothing goes wrong: the verb, another one of the same rule and resource that was
/// used, the ends of the resources that it holds for, and why.
const EXCUSES: &[(&str, &str, &[&str], &str)] = &[
    ("list", "watch", &[""], "a server that cannot stream what there is has it listed first"),
    ("get", "watch", &[""], "who may follow all objects of a kind may read one"),
    ("patch", "update", &["/status"], "a status is written as a whole; the chart gives both ways"),
    ("patch", "create", &["events"], "an event that happens again is counted in place"),
    ("patch", "update", &["leases"], "the chart gives both ways of renewing"),
    ("update", "create", &["secrets"], "a certificate is renewed after weeks"),
    ("update", "create", &["webhookconfigurations"], "they are written anew with another certificate"),
    ("patch", "create", &["webhookconfigurations"], "they are written anew with another certificate"),
    ("update", "create", &["consistbindings"], "the chart gives all rights on what is the process's own"),
    ("patch", "create", &["consistbindings"], "the chart gives all rights on what is the process's own"),
];

/// Rights of the table that serve nobody yet: nothing of ours is marked on these kinds.
const MARKS: &[&str] = &["readinessprofiles", "globaldependencies", "capabilities"];

/// A right: its groups, its resource, its names and its verb.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Right {
    groups: Vec<String>,
    resource: String,
    names: Vec<String>,
    verb: String,
}

impl Right {
    fn all_of(rule: &Value) -> Vec<Self> {
        let words = |field: &str| -> Vec<String> {
            let list = rule[field].as_array().into_iter().flatten();
            list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
        };
        let (groups, names) = (words("apiGroups"), words("resourceNames"));
        let of = |resource: &String, verb: &String| Self {
            groups: groups.clone(),
            resource: resource.clone(),
            names: names.clone(),
            verb: verb.clone(),
        };
        let verbs = words("verbs");
        words("resources")
            .iter()
            .flat_map(|resource| verbs.iter().map(move |verb| of(resource, verb)))
            .collect()
    }

    /// Whether a request, made in the process's own name and answered, needed it. What is applied and was not there is created.
    fn is_used_by(&self, event: &Event) -> bool {
        let resource = match event.subresource.as_str() {
            "" => event.resource.clone(),
            subresource => format!("{}/{subresource}", event.resource),
        };
        let is_named = self.names.is_empty() || self.names.contains(&event.name);
        let creates = self.verb == "create" && event.verb == "patch" && event.code == 201;
        event.acting_as.is_none()
            && (200..300).contains(&event.code)
            && is_named
            && self.groups.contains(&event.group)
            && self.resource == resource
            && (self.verb == event.verb || creates)
    }
}

/// The rights that these rules give and that none of these requests used, those that are excused aside.
pub(crate) fn unused(requests: &[Event], rules: impl IntoIterator<Item = Value>) -> BTreeSet<String> {
    let acts = requests.iter().any(|event| event.acting_as.is_some());
    let is_used = |right: &Right| {
        (acts && right.verb == "impersonate") || requests.iter().any(|event| right.is_used_by(event))
    };
    let is_excused = |right: &Right| {
        let goes_with = |verb: &str| is_used(&Right { verb: verb.to_owned(), ..right.clone() });
        let excuses = EXCUSES.iter().filter(|(verb, _, ends, _)| {
            right.verb == *verb && ends.iter().any(|end| right.resource.ends_with(end))
        });
        (right.verb == "patch" && MARKS.contains(&right.resource.as_str()))
            || excuses.into_iter().any(|(_, other, ..)| goes_with(other))
    };
    let all: BTreeSet<Right> = rules.into_iter().flat_map(|rule| Right::all_of(&rule)).collect();
    let idle = all.into_iter().filter(|right| !is_used(right) && !is_excused(right));
    idle.map(|right| format!("{} {} {:?} {:?}", right.verb, right.resource, right.groups, right.names))
        .collect()
}

/// The rules of the operator's table for these doors, and for whatever is served.
pub(crate) fn rules(doors: &[DoorName]) -> Vec<Value> {
    let tried = TABLE.iter().filter(|row| row.door.is_none_or(|door| doors.contains(&door)));
    tried.map(rule).collect()
}

/// The rules of a door that could go: no request was made that is refused without them, whatever the other rules give.
pub(crate) fn removable(requests: &[Event], judged: impl Fn(&RightRow) -> bool) -> Vec<String> {
    let gives = |row: &RightRow, event: &Event| {
        let rights = Right::all_of(&rule(row));
        let acts = event.acting_as.is_some() && rights.iter().any(|right| right.verb == "impersonate");
        acts || rights.iter().any(|right| right.is_used_by(event))
    };
    let is_needed = |row: &RightRow| {
        let others: Vec<&RightRow> = TABLE.iter().filter(|other| *other != row).collect();
        requests.iter().any(|event| gives(row, event) && !others.iter().any(|other| gives(other, event)))
    };
    let idle = TABLE.iter().filter(|row| judged(row) && !is_needed(row));
    idle.map(|row| format!("{:?} {:?} {:?} {:?}", row.groups, row.resources, row.names, row.verbs)).collect()
}

#[test]
fn where_nothing_was_asked_every_rule_could_go() {
    assert_eq!(removable(&[], |_| true).len(), TABLE.len());
}
