//! Fields under the names Go structs would give them.

use linchpin_lang::template::Cause;
use serde_json::json;

use super::{render, text};

#[test]
fn a_go_style_field_finds_the_json_key() {
    let data = json!({"Dependencies": {"controlplane_its1": {"State": "Ready", "Status": {"endpoint": "https://its1:6443"}}}});
    assert_eq!(
        text("{{ .Dependencies.controlplane_its1.Status.Endpoint | b64enc }}", &data),
        "aHR0cHM6Ly9pdHMxOjY0NDM="
    );
}

#[test]
fn the_seed_expressions_render() {
    let data = json!({"Dependencies": {"namespace_kubestellar_system": {"State": "Ready"}}});
    let guard =
        "{{ if eq .Dependencies.namespace_kubestellar_system.State \"Ready\" }}true{{ else }}false{{ end }}";
    assert_eq!(text(guard, &data), "true");
    assert_eq!(text("{{ .Now }}", &data), "2026-03-04T15:06:07Z");
}

#[test]
fn the_caller_may_give_its_own_now() {
    assert_eq!(text("{{ .Now }}", &json!({"Now": "then"})), "then");
    assert_eq!(text("{{ $.Now }}{{ with 1 }}{{ $.Now }}{{ end }}", &json!({})).len(), 40);
}

#[test]
fn the_exact_key_wins_then_the_small_first_letter_then_the_only_one_but_for_case() {
    for (data, expected) in [
        (json!({"Port": 1, "port": 2, "PORT": 3}), "1"),
        (json!({"port": 2, "PORT": 3}), "2"),
        (json!({"PORT": 3}), "3"),
    ] {
        assert_eq!(text("{{ .Port }}", &data), expected, "{data}");
    }
    assert_eq!(text("{{ .APIVersion }}", &json!({"apiVersion": "v1"})), "v1");
    assert_eq!(text("{{ .Öl }}", &json!({"öl": 1})), "1");
}

#[test]
fn two_keys_that_differ_in_case_only_are_no_answer() {
    let error = render("{{ .Port }}", &json!({"PORT": 3, "pOrt": 4})).unwrap_err();
    assert!(matches!(error.cause(), Cause::Type(_)));
    assert!(error.to_string().contains("\"PORT\" or \"pOrt\""), "{error}");
}

#[test]
fn the_fallback_is_for_data_and_not_for_dicts() {
    assert!(render("{{ (dict \"port\" 1).Port }}", &json!({})).is_err());
    assert!(render("{{ index .m \"Port\" | required \"x\" }}", &json!({"m": {"port": 1}})).is_err());
}

#[test]
fn a_missing_path_is_named_and_told_from_other_errors() {
    let data =
        json!({"Dependencies": {"db": {"Status": {"phase": null, "list": [{}], "text": "x"}}}, "m": {}});
    for (source, path) in [
        ("{{ .Dependencies.db.Status.endpoint }}", ".Dependencies.db.Status.endpoint"),
        ("{{ .Dependencies.cache.Status.endpoint }}", ".Dependencies.cache"),
        ("{{ .Dependencies.db.Status.phase.x }}", ".Dependencies.db.Status.phase.x"),
        ("{{ .Dependencies.db.Status.phase | upper }}", ".Dependencies.db.Status.phase"),
        ("{{ (index .Dependencies \"my-db\").Status }}", ".Dependencies[\"my-db\"].Status"),
        ("{{ index .Dependencies \"my-db\" \"Status\" }}", ".Dependencies[\"my-db\"]"),
        ("{{ index .Dependencies \"my-db\" | b64enc }}", ".Dependencies[\"my-db\"]"),
        ("{{ index .Dependencies .Dependencies.db.Status.text \"x\" }}", ".Dependencies[…]"),
        ("{{ (index .Dependencies (printf \"%s\" \"y\")).x }}", ".Dependencies[…].x"),
        ("{{ $d := .Dependencies.db }}{{ $d.Spec }}", ".Dependencies.db.Spec"),
        ("{{ range .Dependencies.db.Status.list }}{{ .x }}{{ end }}", ".Dependencies.db.Status.list[0].x"),
        ("{{ with .Dependencies }}{{ range . }}{{ .Spec }}{{ end }}{{ end }}", ".Dependencies.db.Spec"),
        (
            "{{ define \"t\" }}{{ .Spec }}{{ end }}{{ template \"t\" .Dependencies.db }}",
            ".Dependencies.db.Spec",
        ),
    ] {
        let error = render(source, &data).unwrap_err();
        assert_eq!(error.missing().map(ToString::to_string).as_deref(), Some(path), "{source}: {error}");
        assert!(error.reads().contains(error.missing().unwrap()), "{source}");
    }
    for source in [
        "{{ .Dependencies.db.Status.text.x }}",
        "{{ (dict).x }}",
        "{{ upper 1 }}",
        "{{ (fromJson \"{}\").x }}",
    ] {
        let error = render(source, &data).unwrap_err();
        assert_eq!(error.missing(), None, "{source}: {error}");
    }
}
