//! The documentation: its links lead somewhere, its commands work, its generated parts are current.

mod quickstart;

use crate::{
    boot_dependency::free_address,
    eventually, seconds,
    tree::{apply, phase, serving_with, watched},
};
use linchpin_testkit::{Api, grant_webhooks};
use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// All pages that people read, by their path from the root.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![root().join("docs"), root().join("examples")];
    let mut files: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]
        .iter()
        .map(|name| root().join(name))
        .collect();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        found.insert(file.strip_prefix(root()).unwrap().to_owned(), text);
    }
    found
}

/// A page without its fenced blocks.
fn prose(text: &str) -> String {
    let mut inside = false;
    let lines = text.lines().filter(|line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The anchor of a heading, as forges make it.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    let prose = prose(text);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    headings.map(|line| anchor(line.trim_start_matches('#').trim())).collect()
}

/// Where the links of a page lead.
fn links(text: &str) -> Vec<String> {
    let prose = prose(text);
    let mut found = Vec::new();
    for part in prose.split("](").skip(1) {
        if let Some((target, _)) = part.split_once(')') {
            found.push(target.to_owned());
        }
    }
    found
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut dead = Vec::new();
    for (page, text) in &pages {
        for link in links(text) {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let (file, heading) =
                link.split_once('#').map_or((link.as_str(), None), |(file, it)| (file, Some(it)));
            let target = if file.is_empty() {
                root().join(page)
            } else {
                root().join(page).parent().unwrap().join(file)
            };
            let Ok(target) = target.canonicalize() else {
                dead.push(format!("{}: {link}", page.display()));
                continue;
            };
            let known = target.strip_prefix(root()).ok().and_then(|target| pages.get(target));
            if let (Some(heading), Some(known)) = (heading, known)
                && !anchors(known).contains(heading)
            {
                dead.push(format!("{}: {link}: no such heading", page.display()));
            }
        }
    }
    assert!(dead.is_empty(), "{dead:#?}");
}

#[test]
fn every_page_is_in_the_index() {
    let pages = pages();
    let index = &pages[Path::new("docs/README.md")];
    for page in pages.keys() {
        let Ok(name) = page.strip_prefix("docs") else { continue };
        let name = name.to_str().unwrap();
        if name != "README.md" && !name.contains('/') {
            assert!(index.contains(&format!("]({name})")), "docs/README.md does not name {name}");
        }
    }
}

/// Every id that `linchpin check` prints has a heading, and each alert a runbook.
#[test]
fn every_check_and_every_alert_has_a_heading() {
    let pages = pages();
    let headings = anchors(&pages[Path::new("docs/troubleshooting.md")]);
    for id in [
        "kubernetes",
        "installation",
        "definitions",
        "operator",
        "rights",
        "webhooks",
        "objects",
        "api-reachable",
        "api-version",
        "can-install",
        "no-other-install",
        "no-foreign-crds",
        "crds-served",
        "crds-current",
        "operator-ready",
        "operator-version",
        "lease-renewed",
        "rights-current",
        "rights-not-wider",
        "webhook-answers",
        "webhook-ca",
        "certificate-valid",
        "tenants-bound",
        "nothing-stalled",
        "no-finalizers",
        "no-held-pods",
    ] {
        assert!(headings.contains(id), "{id}");
    }
    let runbooks = anchors(&pages[Path::new("docs/operations.md")]);
    let alerts = [
        "LinchpinAbsent",
        "LinchpinNoLeader",
        "LinchpinForbidden",
        "LinchpinStalled",
        "LinchpinWebhookErrors",
        "LinchpinCertificateExpiring",
        "LinchpinApiErrors",
    ];
    let rules = fs::read_to_string(root().join("charts/linchpin/files/alerts.yaml")).unwrap();
    let rules: serde_json::Value = serde_saphyr::from_str(&rules).unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    let given: Vec<&str> = rules.iter().map(|rule| rule["alert"].as_str().unwrap()).collect();
    assert_eq!(given, alerts);
    for rule in rules {
        let name = rule["alert"].as_str().unwrap().to_lowercase();
        assert_eq!(rule["annotations"]["runbook"], format!("docs/operations.md#{name}"));
        assert!(runbooks.contains(&name), "{name}");
    }
}

/// Blocks of a page: how they are marked, the line before them, and what is in them.
fn blocks(text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let mut before = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(mark) = line.strip_prefix("```") {
            let body: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
            found.push((mark.to_owned(), before.clone(), body.join("\n")));
        }
        if !line.is_empty() {
            line.clone_into(&mut before);
        }
    }
    found
}

#[test]
fn a_block_is_run_by_a_test_or_says_why_it_is_only_shown() {
    for (page, text) in pages() {
        for (mark, before, body) in blocks(&text) {
            let is_run = page == Path::new("docs/quickstart.md");
            assert!(mark != "sh" || is_run, "{}: no test runs this: {body}", page.display());
            if mark == "console" {
                assert!(before.starts_with("<!-- console: "), "{}: {body}", page.display());
            }
        }
    }
}

#[test]
fn the_page_of_concepts_says_of_every_kind_what_it_is_for() {
    let page = &pages()[Path::new("docs/concepts.md")];
    let (_, table) = page.split_once("## Which kind for which job\n").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    // Some are made by us, and one goes with another kind.
    let beside = ["BundleRevision", "ConsistBinding", "PodTransitionRule"];
    let kinds = linchpin_doors::registry().definitions().into_iter().map(|one| one.spec.names.kind);
    for kind in kinds.filter(|kind| !beside.contains(&kind.as_str())) {
        assert!(table.contains(&format!("[{kind}](")), "{kind}:\n{table}");
    }
}

#[test]
fn a_backup_has_every_kind_that_people_write() {
    let page = &pages()[Path::new("docs/operations.md")];
    let (_, backup) = page.split_once("## Backup\n").unwrap();
    let (backup, _) = backup.split_once("\n## ").unwrap();
    let named: BTreeSet<&str> = backup.split(|letter: char| !letter.is_ascii_lowercase()).collect();
    for definition in linchpin_doors::registry().definitions() {
        let kind = definition.spec.names;
        // Bindings are made anew by whom they belong to.
        let short = kind.short_names.unwrap_or_default();
        let is_named =
            named.contains(kind.plural.as_str()) || short.iter().any(|name| named.contains(name.as_str()));
        assert!(is_named || kind.kind == "ConsistBinding", "{}: {backup}", kind.kind);
    }
}

/// The example of the page, as it stands there.
#[test]
fn what_kapp_is_to_wait_for_are_all_kinds_of_ours_that_wait() {
    let page = fs::read_to_string(root().join("docs/integrations.md")).unwrap();
    let config =
        blocks(&page).into_iter().map(|(_, _, text)| text).find(|text| text.contains("waitRules")).unwrap();
    let config: serde_json::Value = serde_saphyr::from_str(&config).unwrap();
    let named = config["waitRules"][0]["resourceMatchers"].as_array().unwrap().iter().map(|one| {
        let matcher = &one["apiVersionKindMatcher"];
        format!("{} {}", matcher["apiVersion"].as_str().unwrap(), matcher["kind"].as_str().unwrap())
    });
    let kinds = linchpin_doors::registry();
    let waiting = kinds.waiting().map(|kind| kind.names().gvk.clone());
    let waiting = waiting.map(|gvk| format!("{} {}", gvk.api_version(), gvk.kind));
    assert_eq!(named.collect::<BTreeSet<_>>(), waiting.collect::<BTreeSet<_>>());
}

#[test]
fn pods_are_restarted_when_a_configuration_changes_as_the_page_says() {
    let page = &pages()[Path::new("docs/concepts.md")];
    let (_, example) = page.split_once("**Restart pods when a configuration changes**").unwrap();
    let (_, _, spec) = &blocks(example)[0];
    let spec = spec.replacen("spec:", "spec:\n  serviceAccountName: web", 1);
    let _operator = serving_with("docs-restart", &[]);
    apply(
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: app, namespace: docs-restart}, data: {colour: red}}
---
{apiVersion: apps/v1, kind: Deployment, metadata: {name: app, namespace: docs-restart}, spec: {selector: {matchLabels: {app: app}},
  template: {metadata: {labels: {app: app}}, spec: {containers: [{name: app, image: app}]}}}}",
    );
    apply(&format!(
        "apiVersion: tools.kubestellar.io/v1\nkind: ResourceDependency\nmetadata: {{name: app, namespace: docs-restart}}\n{spec}"
    ));
    let api = Api::connect(&watched().kubeconfig());
    let template = || {
        let deployment = api.get("Deployment", "docs-restart", "app").unwrap();
        deployment["spec"]["template"]["metadata"]["annotations"]["checksum/config"].clone()
    };
    eventually("the hash is there", seconds(30), || template().is_string());
    let before = template();
    let change = serde_json::json!({"data": {"colour": "blue"}});
    api.merge("ConfigMap", "docs-restart", "app", "", &change).unwrap();
    eventually("it is another one", seconds(30), || template().is_string() && template() != before);
}

/// What the page says of each metric: name, type, labels are seen at the operator's own port, with webhooks and after
/// everything that is counted has happened once.
#[test]
fn the_metrics_page_lists_what_the_operator_serves() {
    const MARK: &str = "<!-- Everything below is generated: make docs writes it. -->\n";
    let address = free_address();
    let (bind, url) =
        (format!("--webhook-bind-address={address}"), format!("--webhook-url=https://{address}"));
    grant_webhooks(&Api::connect(&watched().kubeconfig()));
    let operator = serving_with("docs-metrics", &[&bind, &url, "--wait-image=w:1"]);
    apply(
        "
{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: web, namespace: docs-metrics},
  spec: {serviceAccountName: web, actions: [{name: make, type: create, resource: {apiVersion: v1, kind: ConfigMap, metadata: {name: made}}}]}}
---
{apiVersion: tools.kubestellar.io/v1, kind: ResourceDependency, metadata: {name: late, namespace: docs-metrics},
  spec: {serviceAccountName: web, dependencies: [{resource: configmap/none, timeout: 1s}]}}
",
    );
    eventually("it is done", seconds(30), || phase("docs-metrics", "rd/web") == "Completed");
    eventually("the other one fails", seconds(30), || phase("docs-metrics", "rd/late") == "Failed");
    let failed = "linchpin_objects_failed{kind=\"ResourceDependency\"} 1";
    assert!(operator.metrics().lines().any(|line| line == failed), "{}", operator.metrics());
    let boots = |number: u32| {
        format!(
            "{{apiVersion: core.bootchain-operator.ruicoelho.dev/v1alpha1, kind: BootDependency, metadata: {{name: web-{number}, namespace: docs-metrics}},
  spec: {{serviceAccountName: web, dependsOn: [{{host: 192.0.2.1, port: 1, timeout: 1s}}]}}}}"
        )
    };
    let (mut number, wanted) = (0, ["linchpin_webhook_requests_total{", "linchpin_probe_seconds_count{"]);
    eventually("a webhook is asked and a probe made", seconds(60), || {
        number += 1;
        apply(&boots(number));
        let metrics = operator.metrics();
        wanted.iter().all(|begin| metrics.lines().any(|line| line.starts_with(begin)))
    });
    let metrics = operator.metrics();
    let mut rows: BTreeMap<String, (String, String)> = BTreeMap::new();
    for line in metrics.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        if let ["#", what, name, rest] = words.as_slice() {
            let row = rows.entry((*name).to_owned()).or_default();
            match *what {
                "HELP" => rest.trim_end_matches('.').clone_into(&mut row.1),
                "TYPE" => (*rest).clone_into(&mut row.0),
                _ => {}
            }
        }
    }
    // As it is queried: OpenMetrics puts an ending behind the names of some types.
    let row = |(name, (kind, help)): (&String, &(String, String))| {
        let ending = match kind.as_str() {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        format!("| `{name}{ending}` | {kind} | {help}. |")
    };
    let lines: Vec<String> = rows.iter().map(row).collect();
    let generated = format!("\n| metric | type | meaning |\n|---|---|---|\n{}\n", lines.join("\n"));
    let path = root().join("docs/metrics.md");
    let page = fs::read_to_string(&path).unwrap();
    let (introduction, stored) = page.split_once(MARK).unwrap();
    // What follows is what another process counts, and written there.
    let (stored, rest) = stored.split_at(stored.find("\n## ").unwrap());
    if env::var_os("LINCHPIN_UPDATE").is_some() {
        fs::write(&path, format!("{introduction}{MARK}{generated}{rest}")).unwrap();
        return;
    }
    assert!(
        stored == generated,
        "docs/metrics.md is out of date: run make docs and commit what it writes\n{generated}"
    );
}
