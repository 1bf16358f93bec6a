//! What `linchpin plan` says of manifests that the API server would not take.

use crate::operator::linchpin;
use serde_json::json;

#[test]
fn an_entry_that_names_nothing_or_two_things_is_not_linked_and_says_what_it_needs() {
    let db = json!({"sync": {"name": "db"}});
    let both = json!({"name": "both", "sync": {"name": "db"}, "object": {"resource": "secret/key"}});
    let sync = |name: &str, dependencies: serde_json::Value| {
        json!({"apiVersion": "linchpin.dev/v1alpha1", "kind": "Sync", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"source": {"objects": []}, "dependencies": dependencies}})
    };
    let mut one = db;
    one["name"] = json!("one");
    let given = [sync("web", json!([one, both, {"name": "none"}])), sync("db", json!([]))];
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), given.map(|sync| sync.to_string()).join("\n---\n")).unwrap();
    let output = linchpin().args(["plan", "-f"]).arg(file.path()).output().unwrap();
    let expected = "ok   shop/web  one  Sync shop/db (given)
none shop/web  both  it needs exactly one of sync, object, objects and capability
none shop/web  none  it needs exactly one of sync, object, objects and capability
layer 1: shop/db
layer 2: shop/web
";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    assert_eq!(output.status.code(), Some(1));
}
