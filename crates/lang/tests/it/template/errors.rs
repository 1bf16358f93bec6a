//! Errors say where and what, and never a value.

use linchpin_lang::template::{Cause, Template};
use serde_json::json;

use super::{clock, render};

#[test]
fn an_error_is_one_line_with_place_path_and_source() {
    let source = "a: 1\nb: 2\n  endpoint: {{ .Dependencies.db.Status.endpoint | b64enc }}\n";
    let template = Template::parse("actions[2].template", source).unwrap();
    let data = json!({"Dependencies": {"db": {"Status": {}}}});
    let error = template.render(&data, &clock()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "actions[2].template:3:16: no value at .Dependencies.db.Status.endpoint \
         (near \"{{ .Dependencies.db.Status.endpoint | b64enc }}\")"
    );
    assert_eq!(error.position(), (3, 16));
    assert_eq!(error.snippet(), "{{ .Dependencies.db.Status.endpoint | b64enc }}");
    assert_eq!(error.field(), "actions[2].template");
}

#[test]
fn a_parse_error_points_at_what_is_wrong() {
    for (source, position, message) in [
        ("x {{ if .a }}", (1, 3), "this {{if}} is not closed with {{end}}"),
        ("ü\n {{ nope }}", (2, 5), "the function nope is not defined"),
        ("{{ if }}x{{ end }}", (1, 7), "a value is missing in {{if}}"),
        ("{{ $x }}", (1, 4), "the variable $x is not declared"),
        ("{{ end }}", (1, 1), "this {{end}} closes nothing"),
        ("a{{ .b ", (1, 2), "this action is not closed with }}"),
    ] {
        let error = Template::parse("f", source).unwrap_err();
        assert!(error.message().contains(message), "{source}: {error}");
        assert_eq!(error.position(), position, "{source}: {error}");
        assert!(!error.snippet().is_empty(), "{source}");
    }
}

#[test]
fn functions_that_would_reach_outside_are_refused_with_the_reason() {
    for (name, reason) in [
        ("env", "environment"),
        ("expandenv", "environment"),
        ("getHostByName", "network"),
        ("randAlphaNum", "random"),
        ("uuidv4", "random"),
        ("genCA", "certificates"),
        ("lookup", "dependency"),
        ("call", "no functions"),
        ("include", "{{template}}"),
    ] {
        let error = Template::parse("f", &format!("{{{{ {name} \"HOME\" }}}}")).unwrap_err();
        assert!(error.message().contains(reason), "{error}");
    }
}

#[test]
fn a_long_source_is_cut_in_the_message() {
    let error =
        render(&format!("{{{{ printf \"{}\" .missing }}}}", "x".repeat(500)), &json!({})).unwrap_err();
    assert_eq!(error.snippet().chars().count(), 80);
    assert!(!error.to_string().contains('\n'));
}

/// Every way to fail that was thought of, over data that is nothing but a secret.
#[test]
fn a_secret_is_never_in_an_error() {
    let secret = "c4n4ry-s3cr3t";
    let data = json!({
        "s": secret, "l": [secret, {secret: secret}], "m": {"k": secret, "o": {"p": secret}}, "n": null, "i": 771_771, "f": 77.125,
        "b64": "YzRuNHJ5LXMzY3IzdAo=!", "re": format!("({secret}"),
    });
    let mut failed = 0;
    for source in [
        "{{ .s.x }}",
        "{{ .l.x }}",
        "{{ .m.x }}",
        "{{ .n.x }}",
        "{{ .i.x }}",
        "{{ index .l 9 }}",
        "{{ index .s 99 }}",
        "{{ index .m 1 }}",
        "{{ index .m .s .s }}",
        "{{ .s 1 }}",
        "{{ range .s }}{{ end }}",
        "{{ range .f }}{{ end }}",
        "{{ range $a, $b := .i }}{{ end }}",
        "{{ eq .s .i }}",
        "{{ eq .m .m }}",
        "{{ lt .m .s }}",
        "{{ upper .i }}",
        "{{ upper .m }}",
        "{{ repeat .i .s }}",
        "{{ repeat -1 .s }}",
        "{{ fail .s }}",
        "{{ fail (printf \"no %s\" .s) }}",
        "{{ .s | fail }}",
        "{{ required .s .n }}",
        "{{ b64dec .b64 }}",
        "{{ .s | b64dec }}",
        "{{ regexFind .re .s }}",
        "{{ regexMatch .re .s }}",
        "{{ mustFromJson .s }}",
        "{{ fromYaml .s }}",
        "{{ fromYaml .re }}",
        "{{ first .s }}",
        "{{ get .s \"a\" }}",
        "{{ set .m \"a\" .s }}",
        "{{ dig .s .s .m }}",
        "{{ dig \"k\" \"x\" .s .m }}",
        "{{ slice .s 3 1 }}",
        "{{ slice .s 99 }}",
        "{{ div .i 0 }}",
        "{{ date \"2006\" .s }}",
        "{{ now | date .s | upper | fail }}",
        "{{ dateInZone \"2006\" now .s }}",
        "{{ dateModify .s now }}",
        "{{ len .i }}",
        "{{ template \"t\" .s }}",
        "{{ printf \"%p\" .s }}",
        "{{ printf \"%x\" .f }}",
        "{{ indent -1 .s }}",
        "{{ ternary 1 2 .s }}",
        "{{ substr 5 9999 .s | trunc 1 | until }}",
        "{{ repeat 100000000 .s }}",
        "{{ (dict .s 1).nope }}",
        "{{ (index .l 1).nope }}",
        "{{ .s | index .m .s }}{{ .nope }}",
        "{{ $x := .s }}{{ $x.nope }}",
        "{{ append .s .s }}",
        "{{ concat .s }}",
        "{{ atoi .i }}",
        "{{ .m.k.z }}",
        "{{ .m.o.p.q }}",
        "{{ join .i .l }}",
    ] {
        let Err(error) = render(source, &data) else { continue };
        failed += 1;
        let shown = format!("{error} {error:?}");
        assert!(!shown.contains(secret), "{source}: {shown}");
        assert!(!shown.contains("771771") && !shown.contains("77.125"), "{source}: {shown}");
    }
    assert!(failed > 50, "only {failed} of the templates failed");
}

#[test]
fn a_template_can_refuse_with_its_own_literal_words() {
    let error = render("{{ required \"the image is needed\" .n }}", &json!({"n": ""})).unwrap_err();
    assert_eq!(error.cause(), &Cause::Refused { message: "the image is needed".to_owned() });
}
