//! From single rights to the fewest rules, and those as YAML.
//!
//! Rights that one object of ours needs in one namespace make one Role and one binding, named after the object
//! (`linchpin:rd:web`), so that applying them for one object takes nothing from another; rights on kinds without
//! namespaces make one `ClusterRole` and one binding. An account that may be missing is printed too. Verbs on the same things are merged, names with the same verbs are listed together,
//! and a right on all objects of a kind takes the place of the same right on one. The same rights in any order give the
//! same text.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use linchpin_doors::Registry;
use linchpin_engine::contract::Right;
use linchpin_words::{ObjectRef, hash::sha256_hex, text::line_of};

use crate::asked::short_name;

/// A ServiceAccount: namespace and name.
pub(super) type AccountName = (String, String);

/// Things that verbs are about: group, resource, and one name or all.
type Thing = (String, String, Option<String>);

/// Things, and what is done to each.
type Verbs = BTreeMap<Thing, BTreeSet<String>>;

/// What accounts need, and what for.
#[derive(Debug, Default)]
pub(super) struct Grants {
    /// By who needs them, account and namespace; no namespace for kinds that have none.
    rights: BTreeMap<(ObjectRef, AccountName, Option<String>), Verbs>,
    /// Where other rights are there already: a Role of the usual name may be what gives them.
    partial: BTreeSet<(ObjectRef, AccountName, Option<String>)>,
    /// Accounts that are surely there.
    present: BTreeSet<AccountName>,
    elsewhere: BTreeMap<(AccountName, String), BTreeSet<String>>,
    users: BTreeMap<AccountName, BTreeSet<String>>,
    notes: BTreeSet<String>,
}

impl Grants {
    /// Remembers who acts as this account.
    pub(super) fn used_by(&mut self, account: &AccountName, owner: &ObjectRef) {
        self.users.entry(account.clone()).or_default().insert(owner.to_string());
    }

    /// An account is there: it need not be made.
    pub(super) fn is_there(&mut self, account: AccountName) {
        self.present.insert(account);
    }

    /// A right is there already: what is missing beside it is given by a Role of its own, for the one that gives this right
    /// would lose it if another one took its name.
    pub(super) fn has(&mut self, owner: &ObjectRef, account: &AccountName, right: &Right) {
        self.partial.insert((owner.clone(), account.clone(), right.namespace.clone()));
    }

    /// Adds a right in this cluster.
    pub(super) fn add(&mut self, owner: &ObjectRef, account: &AccountName, right: &Right) {
        let resource = match &right.subresource {
            Some(subresource) => format!("{}/{subresource}", right.resource),
            None => right.resource.clone(),
        };
        let place = (owner.clone(), account.clone(), right.namespace.clone());
        let thing = (right.group.clone(), resource, right.name.clone());
        self.rights.entry(place).or_default().entry(thing).or_default().insert(right.verb.clone());
    }

    /// Adds a right in another cluster: it cannot be given here.
    pub(super) fn add_elsewhere(&mut self, account: &AccountName, cluster: &str, right: &Right) {
        let place = (account.clone(), cluster.to_owned());
        self.elsewhere.entry(place).or_default().insert(right.to_string());
    }

    /// Whether no right in this cluster is among them.
    pub(super) fn is_empty(&self) -> bool {
        self.rights.is_empty()
    }

    /// Adds a remark for the person who applies the output.
    pub(super) fn note(&mut self, note: Option<String>) {
        self.notes.extend(note);
    }

    /// Everything as a stream of documents, with a heading of comments.
    pub(super) fn yaml(&self, notes: &[String], kinds: &Registry) -> String {
        let mut out = String::new();
        for (account, users) in &self.users {
            let users: Vec<&str> = users.iter().map(String::as_str).collect();
            let (namespace, name) = account;
            comment(
                &mut out,
                &format!("What ServiceAccount {namespace}/{name} needs for {}.", users.join(", ")),
            );
        }
        for note in notes.iter().chain(&self.notes) {
            comment(&mut out, note);
        }
        for ((_, cluster), rights) in &self.elsewhere {
            let rights: Vec<&str> = rights.iter().map(String::as_str).collect();
            comment(&mut out, &format!("In the {cluster}, its credential must allow: {}", rights.join(", ")));
        }
        if self.rights.is_empty() {
            comment(&mut out, "No rights are needed.");
        }
        // Every namespace has an account `default`.
        let missing =
            self.users.keys().filter(|account| account.1 != "default" && !self.present.contains(*account));
        for (namespace, name) in missing {
            let (namespace, name) = (word(namespace), word(name));
            let _ = write!(
                out,
                "---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {{name: {name}, namespace: {namespace}}}\n"
            );
        }
        for (place, things) in &self.rights {
            let (owner, account, namespace) = place;
            let mut name = role_name(owner, namespace.as_deref(), kinds);
            if self.partial.contains(place) {
                let content = sha256_hex(format!("{:?}", rules(things)).as_bytes());
                let _ = write!(name, ":{}", &content[..8]);
            }
            out.push_str(&role(&name, account, namespace.as_deref(), things));
        }
        out
    }
}

/// Adds a comment of one line, whatever is in it: what is printed is applied.
fn comment(out: &mut String, text: &str) {
    let _ = writeln!(out, "# {}", line_of(text, usize::MAX));
}

/// What the roles of an object are called: `linchpin:rd:web` in its own namespace, `linchpin:rd:shop:web` elsewhere.
fn role_name(owner: &ObjectRef, namespace: Option<&str>, kinds: &Registry) -> String {
    let kind = short_name(&owner.kind, kinds);
    match &owner.namespace {
        Some(own) if Some(own.as_str()) != namespace => format!("linchpin:{kind}:{own}:{}", owner.name),
        _ => format!("linchpin:{kind}:{}", owner.name),
    }
}

fn role(name: &str, account: &AccountName, namespace: Option<&str>, things: &Verbs) -> String {
    let name = word(name);
    let (kind, place) = match namespace {
        Some(namespace) => ("Role", format!(", namespace: {}", word(namespace))),
        None => ("ClusterRole", String::new()),
    };
    let mut out = format!(
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata: {{name: {name}{place}}}\nrules:\n"
    );
    for rule in rules(things) {
        let names = if rule.names.is_empty() {
            String::new()
        } else {
            format!(", resourceNames: {}", list(&rule.names))
        };
        let _ = writeln!(
            out,
            "- {{apiGroups: [{}], resources: {}{names}, verbs: {}}}",
            word(&rule.group),
            list(&rule.resources),
            list(&rule.verbs),
        );
    }
    let _ = write!(
        out,
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}Binding\nmetadata: {{name: {name}{place}}}\n\
         roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {name}}}\n\
         subjects: [{{kind: ServiceAccount, name: {}, namespace: {}}}]\n",
        word(&account.1),
        word(&account.0),
    );
    out
}

/// One rule of a Role.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rule {
    group: String,
    resources: BTreeSet<String>,
    names: BTreeSet<String>,
    verbs: BTreeSet<String>,
}

/// The fewest rules that give exactly these rights.
fn rules(things: &Verbs) -> BTreeSet<Rule> {
    let mut by_verbs: BTreeMap<(&str, &str, bool, BTreeSet<String>), BTreeSet<String>> = BTreeMap::new();
    for ((group, resource, name), verbs) in things {
        let all = things.get(&(group.clone(), resource.clone(), None)).filter(|_| name.is_some());
        let verbs: BTreeSet<String> =
            verbs.iter().filter(|verb| all.is_none_or(|all| !all.contains(*verb))).cloned().collect();
        if !verbs.is_empty() {
            let names = by_verbs.entry((group, resource, name.is_some(), verbs)).or_default();
            names.extend(name.clone());
        }
    }
    let mut merged: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
    for ((group, resource, _, verbs), names) in by_verbs {
        merged.entry((group, names, verbs)).or_default().insert(resource.to_owned());
    }
    merged
        .into_iter()
        .map(|((group, names, verbs), resources)| Rule { group: group.to_owned(), resources, names, verbs })
        .collect()
}

fn list(words: &BTreeSet<String>) -> String {
    let words: Vec<String> = words.iter().map(|text| word(text)).collect();
    format!("[{}]", words.join(", "))
}

/// A text as YAML, quoted unless it can be nothing but a text.
fn word(text: &str) -> String {
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "inf"];
    let plain = text.starts_with(|first: char| first.is_ascii_lowercase())
        && text.chars().all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || "-./".contains(one))
        && !WORDS.contains(&text);
    if plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

#[cfg(test)]
mod tests {
    use linchpin_doors::registry;

    use super::*;

    fn right(verb: &str, resource: &str, name: Option<&str>) -> Right {
        Right {
            verb: verb.to_owned(),
            group: String::new(),
            resource: resource.to_owned(),
            subresource: None,
            namespace: Some("shop".to_owned()),
            name: name.map(str::to_owned),
        }
    }

    fn owner(namespace: &str) -> ObjectRef {
        let kind = linchpin_words::GroupKind::new("tools.kubestellar.io", "ResourceDependency");
        ObjectRef::namespaced(kind, namespace, "web")
    }

    #[test]
    fn roles_are_named_after_the_object_and_an_account_that_may_be_missing_is_made() {
        assert_eq!(role_name(&owner("shop"), Some("shop"), &registry()), "linchpin:rd:web");
        assert_eq!(role_name(&owner("shop"), Some("data"), &registry()), "linchpin:rd:shop:web");
        assert_eq!(role_name(&owner("shop"), None, &registry()), "linchpin:rd:shop:web");
        let account = |name: &str| ("shop".to_owned(), name.to_owned());
        let mut grants = Grants::default();
        for name in ["default", "there", "web"] {
            grants.used_by(&account(name), &owner("shop"));
        }
        grants.is_there(account("there"));
        let yaml = grants.yaml(&[], &registry());
        assert_eq!(yaml.matches("kind: ServiceAccount").count(), 1, "{yaml}");
        assert!(yaml.contains("metadata: {name: web, namespace: shop}"), "{yaml}");
    }

    #[test]
    fn what_is_missing_beside_other_rights_takes_no_role_from_them() {
        let account = ("shop".to_owned(), "web".to_owned());
        let named = |missing: &[&Right], there: &[&Right]| {
            let mut grants = Grants::default();
            for right in missing {
                grants.add(&owner("shop"), &account, right);
            }
            for right in there {
                grants.has(&owner("shop"), &account, right);
            }
            let yaml = grants.yaml(&[], &registry());
            let names =
                yaml.lines().filter_map(|line| line.strip_prefix("metadata: {name: ")?.split(',').next());
            names.map(str::to_owned).collect::<Vec<_>>()
        };
        let (go, made) = (right("get", "configmaps", Some("go")), right("get", "configmaps", Some("made")));
        assert_eq!(named(&[&go, &made], &[])[0], "\"linchpin:rd:web\"");
        let (one, other) = (named(&[&go], &[&made]), named(&[&made], &[&go]));
        assert!(one[0].starts_with("\"linchpin:rd:web:") && one[0] == one[1], "{one:?}");
        assert_ne!(one[0], other[0], "and two such Roles do not take each other's name");
    }

    fn rules_of(rights: &[Right]) -> Vec<String> {
        let mut grants = Grants::default();
        for right in rights {
            grants.add(&owner("shop"), &("shop".to_owned(), "web".to_owned()), right);
        }
        let yaml = grants.yaml(&[], &registry());
        yaml.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect()
    }

    #[test]
    fn verbs_and_names_are_merged_and_what_is_given_for_all_is_not_given_again() {
        let rights = [
            right("watch", "configmaps", Some("b")),
            right("list", "configmaps", Some("a")),
            right("list", "configmaps", Some("b")),
            right("watch", "configmaps", Some("a")),
            right("list", "pods", None),
            right("list", "pods", Some("x")),
            right("get", "pods", Some("x")),
        ];
        let expected = [
            r#"{apiGroups: [""], resources: [pods], verbs: [list]}"#,
            r#"{apiGroups: [""], resources: [configmaps], resourceNames: [a, b], verbs: [list, watch]}"#,
            r#"{apiGroups: [""], resources: [pods], resourceNames: [x], verbs: [get]}"#,
        ];
        let mut found = rules_of(&rights);
        let mut wanted = expected.map(str::to_owned).to_vec();
        found.sort();
        wanted.sort();
        assert_eq!(found, wanted);
        let backwards: Vec<Right> = rights.iter().rev().cloned().collect();
        assert_eq!(rules_of(&rights), rules_of(&backwards), "the order does not matter");
    }

    #[test]
    fn names_of_one_kind_are_never_given_for_another() {
        let rights = [right("get", "configmaps", Some("a")), right("get", "secrets", Some("b"))];
        assert_eq!(rules_of(&rights).len(), 2);
    }

    #[test]
    fn what_could_be_read_as_something_else_is_quoted() {
        assert_eq!(word("web-1.v2"), "web-1.v2");
        for text in ["", "true", "1e3", "a: b", "linchpin:shop:web"] {
            assert_eq!(word(text), format!("{text:?}"));
        }
    }
}
