//! Everything has a ceiling: at it all is well, above it there is an error, far above it too, and quickly.

use std::time::{Duration, Instant};

use linchpin_lang::template::{Cause, Template, limits};
use serde_json::{Value, json};

use super::{clock, render};

/// Runs on a stack of 2 MiB, as the operator's threads have.
fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    std::thread::Builder::new().stack_size(2 * 1024 * 1024).spawn(work).unwrap().join().unwrap()
}

fn limit(source: &str, data: &Value) -> &'static str {
    let started = Instant::now();
    let error = render(source, data).unwrap_err();
    assert!(started.elapsed() < Duration::from_secs(20), "{source} took {:?}", started.elapsed());
    match error.cause() {
        Cause::Limit { what, .. } => what,
        other => panic!("{source}: {other:?}"),
    }
}

#[test]
fn a_source_may_be_64_kib() {
    let at = "x".repeat(limits::SOURCE_BYTES);
    assert!(Template::parse("f", &at).is_ok());
    assert!(Template::parse("f", &(at.clone() + "x")).is_err());
    assert!(Template::parse("f", &at.repeat(100)).is_err());
}

#[test]
fn nesting_is_bounded_for_parentheses_and_blocks_alike() {
    let parentheses = |depth: usize| format!("{{{{ {}1{} }}}}", "(".repeat(depth), ")".repeat(depth));
    let blocks = |depth: usize| format!("{}x{}", "{{if true}}".repeat(depth), "{{end}}".repeat(depth));
    for make in [parentheses, blocks as fn(usize) -> String] {
        on_a_small_stack(move || {
            assert!(render(&make(limits::NESTING), &json!({})).is_ok());
            let error = Template::parse("f", &make(limits::NESTING + 1)).unwrap_err();
            assert!(error.message().contains("nested at most 64"), "{error}");
            assert!(Template::parse("f", &make(limits::NESTING * 100)).is_err());
        });
    }
    let unclosed = "{{if (((((".repeat(6_000);
    on_a_small_stack(move || assert!(Template::parse("f", &unclosed).is_err()));
}

#[test]
fn a_chain_of_fields_may_have_64_names() {
    let mut data = json!("found");
    for _ in 0..limits::FIELDS {
        data = json!({"a": data});
    }
    let whole = |names: usize| format!("{{{{ {} }}}}", ".a".repeat(names));
    let variable = |names: usize| format!("{{{{ $x := . }}}}{{{{ $x{} }}}}", ".a".repeat(names));
    let result = |names: usize| format!("{{{{ (index . \"a\"){} }}}}", ".b".repeat(names));
    for source in [whole(limits::FIELDS), variable(limits::FIELDS)] {
        assert_eq!(super::text(&source, &data), "found");
    }
    assert!(Template::parse("f", &result(limits::FIELDS)).is_ok());
    for make in [whole, variable as fn(usize) -> String, result] {
        for names in [limits::FIELDS + 1, limits::FIELDS * 100] {
            let error = Template::parse("f", &make(names)).unwrap_err();
            assert!(error.message().contains("a chain may have at most 64 fields"), "{error}");
        }
    }
}

/// Blocks in blocks add their fields up, and every action inside has all of them in front.
#[test]
fn very_long_paths_are_reported_by_a_place_above_them() {
    let with = format!("{{{{with {}}}}}", ".a".repeat(60));
    let inner = (0..5_800).map(|number| format!("{{{{.x{number}}}}}")).collect::<Vec<_>>().concat();
    let source = format!("{}{inner}{}", with.repeat(60), "{{end}}".repeat(60));
    assert!(
        source.len() > limits::SOURCE_BYTES * 9 / 10,
        "{} bytes: nearly as bad as it can get",
        source.len()
    );
    let reads = Template::parse("f", &source).unwrap().reads();
    let longest = reads.paths.iter().map(|path| path.segments().len()).max();
    assert_eq!(longest, Some(limits::FIELDS));
    assert!(reads.paths.len() < 10, "{} paths", reads.paths.len());
}

#[test]
fn a_long_chain_of_else_if_is_not_nesting() {
    let source = format!("{{{{if .no}}}}{}{{{{else}}}}end{{{{end}}}}", "{{else if .no}}x".repeat(1_000));
    on_a_small_stack(move || assert_eq!(super::text(&source, &json!({"no": false})), "end"));
}

#[test]
fn steps_are_bounded() {
    let turns = |count: u64| render(&format!("{{{{ range {count} }}}}{{{{ end }}}}"), &json!({}));
    // The range itself is a step, its value another, and every turn one.
    let most = (0..8).map(|spare| limits::STEPS - spare).find(|count| turns(*count).is_ok());
    assert!(most.is_some_and(|most| turns(most + 1).is_err()), "the limit is where it is said to be");
    assert!(turns(limits::STEPS * 100).is_err());
    assert_eq!(limit("{{ range 1000000000 }}{{ end }}", &json!({})), "steps");
    assert_eq!(
        limit("{{ range 9000000000000000000 }}{{ range 9000000000000000000 }}{{ end }}{{ end }}", &json!({})),
        "steps"
    );
    assert_eq!(limit("{{ range until 1000000000 }}{{ end }}", &json!({})), "steps");
    let big = json!({"l": vec![1; 100_000], "t": "a".repeat(1_000_000)});
    assert_eq!(limit("{{ range 100000 }}{{ $x := first $.l }}{{ end }}", &big), "steps");
    assert_eq!(limit("{{ range 100000 }}{{ $x := contains \"b\" $.t }}{{ end }}", &big), "steps");
    assert_eq!(limit("{{ range 100000 }}{{ $x := regexMatch \"(a+)+$b\" $.t }}{{ end }}", &big), "steps");
    assert_eq!(
        limit("{{ range $i, $x := .l }}{{ $x := regexMatch (printf \"a%d\" $i) \"\" }}{{ end }}", &big),
        "steps"
    );
    assert_eq!(limit("{{ uniq (until 20000) }}", &big), "steps");
}

#[test]
fn output_is_bounded() {
    let text = json!({"t": "x".repeat(limits::OUTPUT_BYTES), "s": "x"});
    assert_eq!(super::text("{{ .t }}", &text).len(), limits::OUTPUT_BYTES);
    assert_eq!(limit("{{ .t }}{{ .s }}", &text), "bytes of output");
    assert_eq!(limit("{{ range 100 }}{{ $.t }}{{ end }}", &text), "bytes of output");
    assert_eq!(limit("{{ print .t .s }}", &text), "bytes of output");
    assert_eq!(limit("{{ printf \"%1000000d%1000000d\" 1 1 }}", &text), "bytes of output");
}

#[test]
fn very_wide_numbers_are_only_long() {
    for verb in ["%0900000f", "%.900000f", "%.900000e", "%900000d", "%0900000d", "%900000s", "%900000v"] {
        let length = super::text(&format!("{{{{ printf \"{verb}\" 1.5 | len }}}}"), &json!({}));
        assert!(length.parse::<usize>().unwrap() >= 900_000, "{verb}: {length}");
    }
    assert_eq!(super::text("{{ printf \"%.900000g\" 1.5 }}", &json!({})), "1.5");
}

#[test]
fn values_made_on_the_way_are_bounded() {
    let none = json!({});
    assert!(render("{{ repeat 8388608 \"x\" | len }}", &none).is_ok());
    assert_eq!(limit("{{ repeat 8388609 \"x\" | len }}", &none), "bytes of values");
    assert_eq!(limit("{{ repeat 838860800 \"x\" | len }}", &none), "bytes of values");
    assert_eq!(limit("{{ repeat 9000000000000000000 \"xyz\" }}", &none), "bytes of values");
    assert_eq!(limit("{{ indent 9000000000000000000 \"xyz\" }}", &none), "bytes of values");
    assert_eq!(
        limit("{{ $s := \"x\" }}{{ range 100 }}{{ $s = cat $s $s }}{{ end }}", &none),
        "bytes of values"
    );
    assert_eq!(
        limit("{{ $s := \"xx\" }}{{ range 100 }}{{ $s = replace \"x\" $s $s }}{{ end }}", &none),
        "bytes of values"
    );
    assert_eq!(
        limit("{{ $l := list 1 }}{{ range 100 }}{{ $l = concat $l $l }}{{ end }}", &none),
        "bytes of values"
    );
    let doubling = "{{ $s := \"x\" }}{{ range 100 }}{{ $s = print $s $s }}{{ end }}";
    assert_eq!(limit(doubling, &none), "bytes of output");
}

/// Each of these would build far more than its input before anything else could stop it.
#[test]
fn no_single_call_builds_more_than_the_limit() {
    let data =
        json!({"t": "x".repeat(1_000_000), "m": vec!["y".repeat(1_000); 900], "json": "1,".repeat(500_000)});
    for source in [
        "{{ splitList \"\" (repeat 7000000 \"x\") }}".to_owned(),
        "{{ split \"x\" .t }}".to_owned(),
        "{{ regexReplaceAll \"x+\" .t (repeat 100000 \"$0\") }}".to_owned(),
        "{{ fromJson (repeat 4000000 \"1,\") }}".to_owned(),
        "{{ fromJson (printf \"[%s1]\" .json) }}{{ fromJson (printf \"[%s1]\" .json) }}".to_owned(),
        format!("{{{{ quote{} }}}}", " .m".repeat(1_000)),
        format!("{{{{ cat{} }}}}", " .m".repeat(1_000)),
    ] {
        assert_eq!(limit(&source, &data), "bytes of values", "{source:.60}");
    }
}

#[test]
fn a_run_that_reads_very_much_reports_the_places_above() {
    let data = json!({"l": (0..50_000).collect::<Vec<_>>(), "x": 1});
    let rendered = render("{{ range .l }}{{ end }}{{ .x }}", &data).unwrap();
    assert!(rendered.reads.len() < 5_000);
    assert!(rendered.reads.iter().any(|path| path.to_string() == ".l" || path.is_root()));
}

#[test]
fn a_list_of_lists_of_lists_does_not_explode() {
    let source = "{{ $l := list 1 2 3 4 5 6 7 8 9 10 }}{{ range 12 }}{{ $l = list $l $l $l $l $l $l $l $l $l $l }}{{ end }}";
    for end in [
        "{{ $l }}",
        "{{ toJson $l }}",
        "{{ toYaml $l }}",
        "{{ deepCopy $l | len }}",
        "{{ deepEqual $l (deepCopy $l) }}",
    ] {
        let source = format!("{source}{end}");
        on_a_small_stack(move || assert!(render(&source, &json!({})).is_err()));
    }
}

#[test]
fn a_dict_that_holds_itself_cannot_be_printed() {
    for end in [
        "{{ $d }}",
        "{{ toJson $d }}",
        "{{ toYaml $d }}",
        "{{ deepCopy $d }}",
        "{{ deepEqual $d $d }}",
        "{{ printf \"%v\" $d }}",
    ] {
        let source = format!("{{{{ $d := dict }}}}{{{{ $_ := set $d \"me\" $d }}}}{end}");
        on_a_small_stack(move || assert_eq!(limit(&source, &json!({})), "levels in a value"));
    }
}

#[test]
fn a_very_deep_value_is_made_and_dropped_but_not_printed() {
    let make = "{{ $d := dict }}{{ range 10000 }}{{ $d = dict \"d\" $d }}{{ end }}";
    on_a_small_stack(move || {
        assert_eq!(super::text(make, &json!({})), "");
        assert_eq!(limit(&format!("{make}{{{{ $d }}}}"), &json!({})), "levels in a value");
    });
}

#[test]
fn recursion_of_templates_is_bounded() {
    let count = |depth: usize| {
        format!(
            "{{{{define \"n\"}}}}{{{{if .}}}}{{{{template \"n\" (sub . 1)}}}}{{{{end}}}}{{{{end}}}}{{{{template \"n\" {depth}}}}}"
        )
    };
    on_a_small_stack(move || {
        // A call, and an `if` in all but the last.
        assert!(render(&count(limits::TEMPLATE_DEPTH - 1), &json!({})).is_ok());
        assert!(render(&count(limits::TEMPLATE_DEPTH), &json!({})).is_err());
        assert!(render(&count(limits::TEMPLATE_DEPTH * 100), &json!({})).is_err());
    });
    on_a_small_stack(|| {
        assert_eq!(
            limit("{{define \"x\"}}{{template \"x\" .}}{{end}}{{template \"x\" .}}", &json!({})),
            "nested template calls"
        );
        let deep = format!("{}{{{{template \"x\" .}}}}{}", "{{if true}}".repeat(60), "{{end}}".repeat(60));
        let source = format!("{{{{define \"x\"}}}}{deep}{{{{end}}}}{{{{template \"x\" .}}}}");
        assert_eq!(limit(&source, &json!({})), "nested steps");
        let parentheses =
            format!("{{{{define \"x\"}}}}{{{{{}template{} }}}}{{{{end}}}}", "(".repeat(50), ")".repeat(50));
        assert!(Template::parse("f", &parentheses).is_err());
    });
}

#[test]
fn a_regular_expression_is_bounded() {
    let length = |bytes: usize| {
        render(&format!("{{{{ regexMatch (repeat {bytes} \"a?\" | trunc {bytes}) \"a\" }}}}"), &json!({}))
    };
    let plain = |bytes: usize| length(bytes).is_ok();
    assert!(plain(60) && !plain(limits::REGEX_SOURCE_BYTES + 1) && !plain(limits::REGEX_SOURCE_BYTES * 100));
    let spaced = |bytes: usize| {
        render(
            &format!("{{{{ regexMatch (printf \"(?x)%s\" (repeat {} \" \")) \"a\" }}}}", bytes - 4),
            &json!({}),
        )
    };
    assert!(spaced(limits::REGEX_SOURCE_BYTES).is_ok());
    assert!(spaced(limits::REGEX_SOURCE_BYTES + 1).is_err());
    assert!(render("{{ regexMatch \"(((a{50}){50}){50}){50}\" \"a\" }}", &json!({})).is_err());
    assert!(render(&format!("{{{{ regexMatch \"{}\" \"a\" }}}}", "(".repeat(20_000)), &json!({})).is_err());
}

#[test]
fn matching_is_paid_for_by_text_and_pattern() {
    let data = json!({"t": "A".repeat(200_000), "u": "a".repeat(1_000)});
    // Every search of these goes to the end of the text and finds one letter.
    for function in [
        "regexFindAll \".*[^A-Z]|[A-Z]\" .t -1",
        "regexSplit \".*[^A-Z]|[A-Z]\" .t -1",
        "regexReplaceAll \".*[^A-Z]|[A-Z]\" .t \"\"",
    ] {
        assert_eq!(limit(&format!("{{{{ {function} }}}}"), &data), "steps", "{function}");
    }
    assert_eq!(limit("{{ range 1000 }}{{ $x := regexMatch \"[^b]{60}c\" $.t }}{{ end }}", &data), "steps");
    assert!(render("{{ regexReplaceAll \"a\" .u \"b\" }}", &data).is_ok());
    assert!(render("{{ regexMatch (repeat 4097 \"a\") \"a\" }}", &data).is_err());
    assert!(render("{{ regexMatch (repeat 500 \"\\\\Q\") \"a\" }}", &data).is_ok());
}

#[test]
// Not a hundred times: JSON that deep overflows the stack when it is dropped, so no parser makes it.
fn a_value_may_be_128_deep() {
    let deep = |depth: usize| (0..depth).fold(json!(1), |inner, _| json!([inner]));
    on_a_small_stack(move || {
        for source in ["{{ .d }}", "{{ toJson .d }}", "{{ toYaml .d }}", "{{ deepCopy .d }}"] {
            assert!(render(source, &json!({"d": deep(limits::VALUE_DEPTH)})).is_ok(), "{source}");
            for depth in [limits::VALUE_DEPTH + 1, limits::VALUE_DEPTH * 8] {
                let data = json!({"d": deep(depth)});
                assert_eq!(limit(source, &data), "levels in a value", "{source}");
            }
        }
    });
}

#[test]
fn deep_data_is_refused_and_not_a_crash() {
    let mut deep = json!(1);
    for _ in 0..1_000 {
        deep = json!([deep]);
    }
    on_a_small_stack(move || {
        for source in ["{{ .d }}", "{{ toJson .d }}", "{{ toYaml .d }}", "{{ deepCopy .d }}"] {
            assert_eq!(limit(source, &json!({"d": deep.clone()})), "levels in a value");
        }
    });
}

#[test]
fn the_clock_is_the_only_time_there_is() {
    let template = Template::parse("f", "{{ now }}{{ now | date \"2006\" }}").unwrap();
    let first = template.render(&json!({}), &clock()).unwrap();
    assert_eq!(first, template.render(&json!({}), &clock()).unwrap());
    assert_eq!(first.text, "2026-03-04 15:06:07.089 +0000 UTC2026");
}
