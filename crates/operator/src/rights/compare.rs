//! Rules of live roles against the table: what is missing, and what is more than that.
//!
//! Both sides are taken apart to single permissions (group, resource, name, verb), so how rules are merged or ordered
//! makes no difference. Pure; `linchpin check` reads the roles.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use super::{ForWebhooks, NAME, RightScope, manifests::rule, rows};
use crate::settings::Doors;

/// One thing that a rule allows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The API group; empty for the core.
    pub group: String,
    /// The plural.
    pub resource: String,
    /// The only object it is about; empty: all.
    pub name: String,
    /// The verb.
    pub verb: String,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, resource, name, verb } = self;
        write!(f, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        if name.is_empty() { Ok(()) } else { write!(f, " {name}") }
    }
}

/// What a role lacks and what it has too much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// In the table and not in the role.
    pub missing: BTreeSet<Permission>,
    /// In the role and not in the table.
    pub extra: BTreeSet<Permission>,
}

/// Compares the rules of a role with what the table gives in a scope. `wanted` chooses among the scope's rows; `configured` is
/// what the webhook configurations of the installation are called before their ending.
pub fn compare(
    scope: RightScope,
    doors: &Doors,
    configured: &str,
    rules: &Value,
    wanted: impl Fn(&super::RightRow) -> bool,
) -> Difference {
    let mut expected: BTreeSet<Permission> = BTreeSet::new();
    for row in rows(scope, doors).filter(|row| wanted(row)) {
        let called = |mut permission: Permission| {
            if row.webhooks == ForWebhooks::Served
                && let Some(ending) = permission.name.strip_prefix(NAME)
            {
                permission.name = format!("{configured}{ending}");
            }
            permission
        };
        expected.extend(permissions(&rule(row)).into_iter().map(called));
    }
    let found: BTreeSet<Permission> = rules.as_array().into_iter().flatten().flat_map(permissions).collect();
    Difference {
        missing: expected.difference(&found).cloned().collect(),
        extra: found.difference(&expected).cloned().collect(),
    }
}

/// All that a rule allows, one by one.
pub fn permissions(rule: &Value) -> Vec<Permission> {
    let words = |field: &str| -> Vec<String> {
        let list = rule[field].as_array().into_iter().flatten();
        list.filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let mut names = words("resourceNames");
    if names.is_empty() {
        names.push(String::new());
    }
    let (groups, resources, verbs) = (words("apiGroups"), words("resources"), words("verbs"));
    let mut found = Vec::new();
    for group in &groups {
        for resource in &resources {
            for name in &names {
                found.extend(verbs.iter().map(|verb| Permission {
                    group: group.clone(),
                    resource: resource.clone(),
                    name: name.clone(),
                    verb: verb.clone(),
                }));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_missing_and_what_is_more_is_named_however_rules_are_merged() {
        let doors: Doors = "appBundle".parse().unwrap();
        let whole = json!(rows(RightScope::Tenant, &doors).map(rule).collect::<Vec<_>>());
        assert_eq!(compare(RightScope::Tenant, &doors, NAME, &whole, |_| true), Difference::default());
        let apart = json!([
            {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["get", "list"]},
            {"apiGroups": [""], "resources": ["serviceaccounts"], "verbs": ["watch"]},
            {"apiGroups": ["", "apps"], "resources": ["secrets"], "resourceNames": ["x"], "verbs": ["get"]},
        ]);
        let result = compare(RightScope::Tenant, &doors, NAME, &apart, |_| true);
        let words = |all: &BTreeSet<Permission>| all.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(words(&result.missing), ["impersonate serviceaccounts"]);
        assert_eq!(words(&result.extra), ["get secrets x", "get secrets.apps x"]);
    }

    #[test]
    fn webhook_configurations_are_called_like_the_installation() {
        let doors: Doors = "bootDependency".parse().unwrap();
        let of = |name: &str| {
            let names = [format!("{name}-mutating"), format!("{name}-validating")];
            let rules = json!([{"apiGroups": ["admissionregistration.k8s.io"], "resourceNames": names,
                "resources": ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"],
                "verbs": ["get", "list", "watch", "patch"]}]);
            let webhooks = |row: &super::super::RightRow| row.webhooks == ForWebhooks::Served;
            compare(RightScope::Cluster, &doors, "shop-linchpin", &rules, webhooks)
        };
        assert_eq!(of("shop-linchpin"), Difference::default());
        assert_eq!(of("linchpin").missing.len(), 16);
    }

    #[test]
    fn a_star_is_more_than_the_table_ever_gives() {
        let star = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        let result = compare(RightScope::Release, &Doors::default(), NAME, &star, |_| true);
        assert_eq!(result.extra.len(), 1);
        assert!(!result.missing.is_empty(), "a star is not what the chart gives");
    }
}
