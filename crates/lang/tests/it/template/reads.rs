//! What a template reads: from its source, and from a run.

use linchpin_lang::template::{DataPath, Template};
use serde_json::{Value, json};

use super::render;

fn shown<'p>(paths: impl IntoIterator<Item = &'p DataPath>) -> Vec<String> {
    paths.into_iter().map(ToString::to_string).collect()
}

fn data() -> Value {
    json!({
        "Dependencies": {
            "db": {"State": "Ready", "Status": {"endpoint": "tcp://db", "ports": [1, 2], "empty": {}}},
            "cache": {"State": "NotReady", "Status": {}}
        },
        "Values": {"name": "db", "labels": {"a": "b"}}
    })
}

#[test]
fn a_source_tells_the_paths_it_spells_out() {
    for (source, paths, dynamic) in [
        ("{{ .Dependencies.db.Status.endpoint }}", vec![".Dependencies.db.Status.endpoint"], false),
        ("{{ .A.b | upper | quote }}{{ $.C }}", vec![".A.b", ".C"], false),
        ("{{ with .A.b }}{{ .c }}{{ $.D }}{{ end }}", vec![".A.b", ".A.b.c", ".D"], false),
        ("{{ $x := .A.b }}{{ $x.c }}", vec![".A.b.c"], false),
        ("{{ if and .A .B }}{{ .C }}{{ else }}{{ .D }}{{ end }}", vec![".A", ".B", ".C", ".D"], false),
        ("{{ range .A.list }}{{ .x }}{{ end }}", vec![".A.list"], false),
        ("{{ (index .A \"b\").c }}", vec![".A.b.c"], false),
        ("{{ index .A \"b\" 0 }}", vec![".A.b[0]"], false),
        ("{{ get .A \"b\" }}{{ dig \"x\" \"y\" \"\" .B }}", vec![".A.b", ".B.x.y"], false),
        ("{{ index .A .B }}", vec![".A", ".B"], true),
        ("{{ toJson . }}", vec!["."], true),
        ("{{ range . }}{{ end }}", vec!["."], true),
        ("{{ define \"t\" }}{{ .x }}{{ end }}{{ template \"t\" .A }}", vec![".A.x"], false),
        ("{{ .Now }}", vec![".Now"], false),
        ("nothing {{ 1 }} {{ print \"a\" }}", vec![], false),
        ("{{ $x := .A }}{{ if .B }}{{ $x = .C }}{{ end }}{{ $x.d }}", vec![".A", ".B", ".C"], false),
    ] {
        let reads = Template::parse("f", source).unwrap().reads();
        assert_eq!(reads.dynamic, dynamic, "{source}: {reads:?}");
        assert_eq!(shown(&reads.paths), paths, "{source}");
    }
}

#[test]
fn a_template_that_calls_itself_further_down_reads_more_than_can_be_listed() {
    let source = "{{ define \"t\" }}{{ .x }}{{ template \"t\" .y }}{{ end }}{{ template \"t\" .A }}";
    let reads = Template::parse("f", source).unwrap().reads();
    assert!(reads.dynamic);
    assert!(reads.paths.contains(&DataPath::new(["A", "y", "x"])));
}

#[test]
fn a_run_tells_the_paths_it_used_and_no_others() {
    for (source, reads, shapes) in [
        ("{{ .Dependencies.db.Status.endpoint }}", vec![".Dependencies.db.Status.endpoint"], vec![]),
        ("{{ .dependencies.DB.status.Endpoint }}", vec![".Dependencies.db.Status.endpoint"], vec![]),
        (
            "{{ if eq .Dependencies.db.State \"Ready\" }}{{ .Values.name }}{{ else }}{{ .Nope }}{{ end }}",
            vec![".Dependencies.db.State", ".Values.name"],
            vec![],
        ),
        (
            "{{ with .Dependencies.db }}{{ .Status.endpoint }}{{ end }}",
            vec![".Dependencies.db.Status.endpoint"],
            vec![".Dependencies.db"],
        ),
        (
            "{{ range $k, $v := .Dependencies }}{{ $v.State }}{{ end }}",
            vec![".Dependencies.cache.State", ".Dependencies.db.State"],
            vec![".Dependencies"],
        ),
        (
            "{{ (index .Dependencies .Values.name).State }}",
            vec![".Dependencies.db.State", ".Values.name"],
            vec![],
        ),
        ("{{ len .Dependencies.db.Status.ports }}", vec![], vec![".Dependencies.db.Status.ports"]),
        ("{{ toJson .Values.labels }}", vec![".Values.labels"], vec![]),
        ("{{ list .Values.labels | toJson }}", vec![".Values.labels"], vec![]),
        ("{{ $x := dict \"l\" .Values.labels }}{{ $x.l.a }}", vec![".Values.labels.a"], vec![]),
        (
            "{{ hasKey .Values \"nope\" }}{{ get .Values \"name\" }}",
            vec![".Values.name", ".Values.nope"],
            vec![],
        ),
        ("{{ index .Values \"nope\" }}", vec![".Values.nope"], vec![]),
        ("{{ .Now }}", vec![".Now"], vec![]),
        (
            "{{ define \"t\" }}{{ .State }}{{ end }}{{ template \"t\" .Dependencies.db }}",
            vec![".Dependencies.db.State"],
            vec![],
        ),
        ("{{ default \"x\" .Dependencies.db.Status.empty }}", vec![], vec![".Dependencies.db.Status.empty"]),
    ] {
        let rendered = render(source, &data()).unwrap();
        assert_eq!(shown(&rendered.reads), reads, "{source}");
        assert_eq!(shown(&rendered.shapes), shapes, "{source}");
    }
}

#[test]
fn a_failed_run_tells_what_it_had_read() {
    let error = render("{{ .Values.name }}{{ .Dependencies.db.Status.url }}", &data()).unwrap_err();
    assert_eq!(shown(error.reads()), [".Dependencies.db.Status.url", ".Values.name"]);
}

#[test]
fn a_path_knows_its_prefix() {
    let path = DataPath::new(["Dependencies", "my-db", "Items", "0"]);
    assert_eq!(path.to_string(), ".Dependencies[\"my-db\"].Items[0]");
    assert!(path.starts_with(&DataPath::new(["Dependencies", "my-db"])));
    assert!(!path.starts_with(&DataPath::new(["Dependencies", "my"])));
    assert_eq!(DataPath::default().to_string(), ".");
}
