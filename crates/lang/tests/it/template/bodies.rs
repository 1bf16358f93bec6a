//! Objects whose strings are templates.

use linchpin_lang::template::{Cause, RenderClock, RenderError, RenderedValue, ValueTemplate, limits};
use serde_json::{Value, json};

use super::clock;

fn render_value(
    field: &str,
    value: &Value,
    data: &Value,
    clock: &RenderClock,
) -> Result<RenderedValue, RenderError> {
    ValueTemplate::parse(field, value).unwrap().render(data, clock)
}

fn rendered(value: &Value, data: &Value) -> Value {
    render_value("resource", value, data, &clock()).unwrap().value
}

#[test]
fn a_string_that_is_one_action_keeps_the_type_of_its_value() {
    let data = json!({"n": 3, "f": 1.5, "b": true, "l": [1, {"a": null}], "m": {"z": 1, "a": 2}, "s": "text", "null": null});
    for (source, expected) in [
        ("{{ .n }}", json!(3)),
        ("{{ add .n 1 }}", json!(4)),
        ("{{ .f }}", json!(1.5)),
        ("{{ .b }}", json!(true)),
        ("{{ .l }}", json!([1, {"a": null}])),
        ("{{ .m }}", json!({"z": 1, "a": 2})),
        ("{{ .s }}", json!("text")),
        ("{{ .null }}", json!(null)),
        ("{{ dict \"a\" (list 1 .m) }}", json!({"a": [1, {"z": 1, "a": 2}]})),
        ("{{- .n -}}", json!(3)),
        ("{{ .n | toString }}", json!("3")),
        (" {{ .n }}", json!(" 3")),
        ("{{ .n }}{{ .n }}", json!("33")),
        ("{{ $x := .n }}", json!("")),
        ("{{ if .b }}1{{ end }}", json!("1")),
    ] {
        assert_eq!(rendered(&json!({"spec": {"x": source}}), &data)["spec"]["x"], expected, "{source}");
    }
}

#[test]
fn metadata_and_data_hold_text_whatever_the_value_is() {
    let body = json!({
        "metadata": {"name": "{{ .n }}", "labels": {"v": "{{ .n }}"}},
        "data": {"port": "{{ .n }}"},
        "stringData": {"port": "{{ .n }}"},
        "spec": {"replicas": "{{ .n }}", "data": {"port": "{{ .n }}"}, "template": {"metadata": {"labels": {"v": "{{ .n }}"}}}},
        "list": ["{{ .n }}", "plain", 7, null]
    });
    let expected = json!({
        "metadata": {"name": "3", "labels": {"v": "3"}},
        "data": {"port": "3"},
        "stringData": {"port": "3"},
        "spec": {"replicas": 3, "data": {"port": 3}, "template": {"metadata": {"labels": {"v": "3"}}}},
        "list": [3, "plain", 7, null]
    });
    assert_eq!(rendered(&body, &json!({"n": 3})), expected);
}

#[test]
fn what_holds_no_template_stays_as_it_is() {
    let body = json!({"a": [1, "}} { {", {"b": "c"}], "{{ .k }}": "keys are not templates"});
    let template = ValueTemplate::parse("f", &body).unwrap();
    assert!(template.is_plain());
    assert_eq!(template.render(&json!({}), &clock()).unwrap().value, body);
}

#[test]
fn the_order_of_fields_is_kept() {
    let body = json!({"z": "{{ 1 }}", "a": 2, "m": "x"});
    assert_eq!(rendered(&body, &json!({})).to_string(), r#"{"z":1,"a":2,"m":"x"}"#);
}

#[test]
fn errors_name_the_field_inside_the_body() {
    let body = json!({"spec": {"containers": [{"image": "{{ .Values.image }}"}]}});
    let error = render_value("actions[0].resource", &body, &json!({"Values": {}}), &clock()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "actions[0].resource.spec.containers[0].image:1:4: no value at .Values.image (near \"{{ .Values.image }}\")"
    );
    let error = ValueTemplate::parse("f", &json!({"a": {"b": "{{ nope }}"}})).unwrap_err();
    assert_eq!(error.field(), "f.a.b");
}

#[test]
fn reads_of_all_strings_come_together() {
    let body = json!({"a": "{{ .Values.x }}", "b": ["{{ .Dependencies.db.State }}!"]});
    let data = json!({"Values": {"x": 1}, "Dependencies": {"db": {"State": "Ready"}}});
    let template = ValueTemplate::parse("f", &body).unwrap();
    let paths: Vec<String> = template.reads().paths.iter().map(ToString::to_string).collect();
    assert_eq!(paths, [".Dependencies.db.State", ".Values.x"]);
    let reads: Vec<String> =
        template.render(&data, &clock()).unwrap().reads.iter().map(ToString::to_string).collect();
    assert_eq!(reads, [".Dependencies.db.State", ".Values.x"]);
    let error =
        template.render(&json!({"Values": {"x": 1}, "Dependencies": {"db": {}}}), &clock()).unwrap_err();
    assert_eq!(error.reads().len(), 2);
}

#[test]
fn the_limits_hold_for_the_whole_body() {
    let data = json!({"t": "x".repeat(limits::OUTPUT_BYTES / 2)});
    let one = json!(["{{ .t }}!"]);
    assert!(render_value("f", &one, &data, &clock()).is_ok());
    let three = json!(["{{ .t }}!", "{{ .t }}!", "{{ .t }}!"]);
    let Err(error) = render_value("f", &three, &data, &clock()) else { panic!("rendered") };
    assert!(matches!(error.cause(), Cause::Limit { what: "bytes of output", .. }));
    let steps = json!(vec!["{{ range 30000 }}{{ end }}"; 10]);
    let Err(error) = render_value("f", &steps, &data, &clock()) else { panic!("rendered") };
    assert!(matches!(error.cause(), Cause::Limit { what: "steps", .. }));
    let mut deep = json!("{{ 1 }}");
    for _ in 0..1_000 {
        deep = json!([deep]);
    }
    assert!(ValueTemplate::parse("f", &deep).is_err());
}
