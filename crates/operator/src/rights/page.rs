//! The table as a page for people: `docs/rights.md`.

use std::{env, fmt::Write as _, fs, path::PathBuf};

use super::{RightScope, TABLE};

const HEAD: &str = "\
# What the operator may do

Written from the table in `crates/operator/src/rights.rs`; `make docs` writes it, a test compares. These are the rights of
the operator itself, exactly: the chart, `linchpin manifests` and `linchpin rbac --operator` give no others, and
`linchpin check` compares a live installation with them. No right is a wildcard, and of Secrets the operator reads the one
with the certificate of its webhooks. Rights for webhooks are given where they are served, and those for the certificate
unless cert-manager makes it.

Everything that an object of ours directs (reading what it waits for, writing what it makes) is done as a ServiceAccount of
that object's own namespace, with that account's rights: `linchpin rbac -f FILE` prints what it needs. Access reviews
(`SelfSubjectAccessReview`, `SelfSubjectReview`) are asked as oneself and need no right.

";

/// The text of the page.
fn markdown() -> String {
    let mut out = HEAD.to_owned();
    let parts = [
        (
            RightScope::Cluster,
            "In the whole cluster",
            "ClusterRole `linchpin`. Rows marked *by namespace* become Roles `linchpin-watched` in the \
          namespaces of `watchNamespaces`, if there are any.",
        ),
        (RightScope::Release, "In the release's namespace", "Role `linchpin`."),
        (
            RightScope::Tenant,
            "In each tenant's namespace",
            "ClusterRole `linchpin-tenant`, bound in each namespace that the operator serves; with \
          `tenancy.mode: Cluster` bound in all of them. Without the binding nothing of a namespace is read, and its objects \
          are `NotATenant`.",
        ),
    ];
    for (scope, title, about) in parts {
        let _ = writeln!(out, "## {title}\n\n{about}\n");
        out.push_str("| group | resources | only | verbs | door | what for |\n|---|---|---|---|---|---|\n");
        for row in TABLE.iter().filter(|row| row.scope == scope) {
            let group: Vec<String> = row
                .groups
                .iter()
                .map(|group| if group.is_empty() { "(core)".to_owned() } else { format!("`{group}`") })
                .collect();
            let code =
                |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            let door = row.door.map(|door| format!("`{door}`")).unwrap_or_default();
            let by_namespace = if row.by_namespace { " *by namespace*" } else { "" };
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {door}{by_namespace} | {} |",
                group.join(", "),
                code(row.resources),
                code(row.names),
                row.verbs.join(", "),
                row.why
            );
        }
        out.push('\n');
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

#[test]
fn the_page_about_rights_is_made_from_the_table() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/rights.md");
    if env::var_os("LINCHPIN_UPDATE").is_some() {
        fs::write(&file, markdown()).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == markdown(),
        "docs/rights.md is out of date: run this test with LINCHPIN_UPDATE=1 and commit what it writes"
    );
}
