//! Rendered text read as Kubernetes reads YAML.

use linchpin_lang::template::{limits, parse_documents};
use serde_json::json;

#[test]
fn several_documents_are_read_and_empty_ones_left_out() {
    let text = "---\n# only a comment\n---\na: 1\n---\n\n---\nb: [x, 2.5, true, null]\n...\n";
    assert_eq!(parse_documents("f", text).unwrap(), [json!({"a": 1}), json!({"b": ["x", 2.5, true, null]})]);
    assert_eq!(parse_documents("f", "").unwrap(), Vec::<serde_json::Value>::new());
    assert_eq!(parse_documents("f", "\n---\n---\n").unwrap(), Vec::<serde_json::Value>::new());
}

#[test]
fn scalars_are_read_as_kubectl_reads_them() {
    let text = "mode: 0644\nyes: yes\non: \"on\"\nnumber: 1e3\nzero: 0\nbig: 9007199254740993\nhex: 0x1F\nempty:\ntilde: ~\nversion: \"1.10\"\ndate: 2026-03-04\n";
    let documents = parse_documents("f", text).unwrap();
    assert_eq!(documents[0]["mode"], json!(420));
    assert_eq!(documents[0]["yes"], json!(true));
    assert_eq!(documents[0]["on"], json!("on"));
    assert_eq!(documents[0]["big"], json!(9_007_199_254_740_993_i64));
    assert_eq!(documents[0]["hex"], json!(31));
    assert_eq!(documents[0]["empty"], json!(null));
    assert_eq!(documents[0]["version"], json!("1.10"));
    assert_eq!(documents[0]["date"], json!("2026-03-04"));
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    let documents = parse_documents("f", "base: &b {x: 1, y: 2}\nsub:\n  <<: *b\n  y: 3\n").unwrap();
    assert_eq!(documents[0]["sub"], json!({"x": 1, "y": 3}));
}

#[test]
fn a_mistake_is_named_by_line_and_column_and_never_by_its_text() {
    for (text, line) in [
        ("a: 1\nb: s3cr3t: x\n", 2),
        ("a: s3cr3t\na: s3cr3t\n", 2),
        ("a: [s3cr3t\n", 2),
        ("a: \"s3cr3t\n", 1),
        ("a: *s3cr3t\n", 1),
        ("a: {{ s3cr3t }}\n", 1),
        ("a: !!int s3cr3t\n", 1),
    ] {
        let error = parse_documents("actions[0].template", text).unwrap_err();
        assert!(error.to_string().starts_with("actions[0].template:"), "{error}");
        assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error}");
        assert!(error.position().0.abs_diff(line) <= 1, "{text:?}: {error}");
    }
}

#[test]
fn size_depth_count_and_aliases_are_bounded() {
    let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(parse_documents("f", &deep(limits::DOCUMENT_DEPTH)).is_ok());
    assert!(parse_documents("f", &deep(limits::DOCUMENT_DEPTH + 1)).is_err());
    assert!(parse_documents("f", &deep(limits::DOCUMENT_DEPTH * 100)).is_err());
    let documents = |count: usize| parse_documents("f", &"--- {a: 1}\n".repeat(count));
    assert!(documents(limits::DOCUMENTS).is_ok());
    assert!(documents(limits::DOCUMENTS + 1).is_err() && documents(limits::DOCUMENTS * 100).is_err());
    let comment = |bytes: usize| parse_documents("f", &format!("#{}", "x".repeat(bytes - 1)));
    assert!(comment(limits::DOCUMENT_BYTES).is_ok());
    assert!(comment(limits::DOCUMENT_BYTES + 1).is_err() && comment(limits::DOCUMENT_BYTES * 100).is_err());
    let values = |count: usize| parse_documents("f", &format!("[{}]", "1,".repeat(count)));
    // The list itself is a value too.
    assert!(values(limits::DOCUMENT_NODES - 1).is_ok());
    assert!(values(limits::DOCUMENT_NODES).is_err());
    let first = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]".to_owned();
    let more = (1..12).map(|level| {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        format!("a{level}: &a{level} [{aliases}]")
    });
    let laughs = std::iter::once(first).chain(more).collect::<Vec<_>>().join("\n");
    let error = parse_documents("f", &laughs).unwrap_err();
    assert!(error.message().contains("the aliases expand to too much"), "{error}");
}
