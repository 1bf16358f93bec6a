//! JSONPath as kubectl writes it.

use linchpin_lang::jsonpath::{JsonPath, MAX_INDEX, MAX_RESULTS, MAX_SOURCE_BYTES, MAX_STEPS, MAX_UNION};
use linchpin_lang::reads::Reads;
use serde_json::{Value as Json, json};

fn object() -> Json {
    json!({
        "metadata": {"name": "db", "annotations": {"example.com/x": "yes", "a b": "space"}},
        "items": [{"n": 0, "t": "a"}, {"n": 1, "t": "b"}, {"n": 2, "t": "a", "deep": {"n": 9}}],
        "status": {
            "phase": "Running", "wanted": "b", "ok": true, "none": null,
            "conditions": [{"type": "Progressing", "status": "True"}, {"type": "Ready", "status": "False", "n": 2.0}]
        }
    })
}

fn find(path: &str) -> Json {
    let object = object();
    let compiled = JsonPath::compile("f", path).unwrap_or_else(|error| panic!("{path}: {error}"));
    Json::from(compiled.find(&object).expect("within bounds").into_iter().cloned().collect::<Vec<_>>())
}

#[test]
fn every_form_kubectl_reads_finds_the_same() {
    for path in [
        ".status.phase",
        "{.status.phase}",
        "{$.status.phase}",
        "$.status.phase",
        "status.phase",
        "{status.phase}",
        " { .status.phase } ",
        "['status']['phase']",
        "$['status'].phase",
        ".status['phase']",
        ".status[\"phase\"]",
        "@.status.phase",
        ".status.[\"phase\"]",
        ".sta\\tus.phase",
    ] {
        assert_eq!(find(path), json!(["Running"]), "{path}");
    }
}

#[test]
fn paths_find_what_they_say() {
    for (path, expected) in [
        (".metadata.annotations.example\\.com/x", json!(["yes"])),
        (".metadata.annotations['example.com/x']", json!(["yes"])),
        (".metadata.annotations['a b']", json!(["space"])),
        (".metadata.annotations.a\\ b", json!(["space"])),
        (".items[0].n", json!([0])),
        (".items[-1].n", json!([2])),
        (".items[-4].n", json!([])),
        (".items[99].n", json!([])),
        (".items[0:2].n", json!([0, 1])),
        (".items[1:].n", json!([1, 2])),
        (".items[:-1].n", json!([0, 1])),
        (".items[::2].n", json!([0, 2])),
        (".items[-2:].n", json!([1, 2])),
        (".items[5:9].n", json!([])),
        (".items[2:1].n", json!([])),
        (".items[*].n", json!([0, 1, 2])),
        (".items[0,2].n", json!([0, 2])),
        (".items[0]['t','n']", json!(["a", 0])),
        (".items[*]['n','t']", json!([0, "a", 1, "b", 2, "a"])),
        (".items[0].*", json!([0, "a"])),
        (".metadata.annotations[*]", json!(["yes", "space"])),
        ("..n", json!([0, 1, 2, 9, 2.0])),
        (".items..n", json!([0, 1, 2, 9])),
        ("..conditions[0].type", json!(["Progressing"])),
        ("..[0].t", json!(["a"])),
        (".items[?(@.n>0)].t", json!(["b", "a"])),
        (".items[?(@.n>=1)].n", json!([1, 2])),
        (".items[?(@.n<1)].n", json!([0])),
        (".items[?(@.n<=1)].n", json!([0, 1])),
        (".items[?(@.t != 'a')].n", json!([1])),
        (".items[?(@.deep)].n", json!([2])),
        (".items[?(@.deep.n==9)].n", json!([2])),
        (".items[?(@.t==$.status.wanted)].n", json!([1])),
        (".items[?('b'==@.t)].n", json!([1])),
        (".items[?(@.missing=='a')].n", json!([])),
        (".items[?(@.t==1)].n", json!([])),
        (".status.conditions[?(@.type==\"Ready\")].status", json!(["False"])),
        ("{.status.conditions[?(@.type=='Ready')].status}", json!(["False"])),
        (".status.conditions[?(@.n==2)].type", json!(["Ready"])),
        (".status.conditions[?(@.status == 'True')].type", json!(["Progressing"])),
        (".status.ok", json!([true])),
        (".status.none", json!([null])),
        (".status.none.x", json!([])),
        (".nothing.at.all", json!([])),
        (".status.phase[0]", json!([])),
        (".status.phase[*]", json!([])),
        (".status[?(@.x==1)]", json!([])),
    ] {
        assert_eq!(find(path), expected, "{path}");
    }
    assert_eq!(find("."), json!([object()]));
    assert_eq!(find("$"), json!([object()]));
    assert_eq!(find("{.}"), json!([object()]));
}

#[test]
fn what_is_not_supported_is_refused_with_the_place_and_a_way_out() {
    for (path, message) in [
        ("", "at character 1: the path is empty; write .status.phase"),
        ("{}", "the path is empty"),
        ("{range .items[*]}{.n}{end}", "at character 2: {range} is not supported; use [*] for every element"),
        (
            "{.a}{.b}",
            "at character 5: a second pair of braces is not supported; write one condition for each path",
        ),
        ("phase: {.a}", "at character 8: text outside the braces is not supported"),
        ("{.a} ready", "at character 5: text outside the braces is not supported"),
        ("{.a", "at character 4: expected a closing brace, found the end"),
        ("{.a{.b}", "at character 4: a brace inside the braces is not supported"),
        (".a..b..c", "at character 6: a second .. is not supported"),
        (".a[(@.length-1)]", "at character 4: a script is not supported; use [-1] for the last element"),
        (".a[?(@.x==1 && @.y==2)]", "more than one comparison in a filter is not supported; use cel"),
        (".a[?(@.x=~'y')]", "at character 9: =~ is not supported; use operator: matches"),
        (".a[?@.x==1]", "expected a filter in parentheses"),
        (".a[?(@.x==1)", "expected ] after the filter, found the end"),
        (".a[?(@.x==)]", "expected @.field, a number, a quoted text, true or false, found ')'"),
        (".a[?(x==1)]", "expected @.field, a number, a quoted text, true or false, found 'x'"),
        (".a[", "expected a quoted name, an index, a slice, * or ?(…), found the end"),
        (".a[b]", "at character 4: expected a quoted name, an index, a slice, * or ?(…), found 'b'"),
        (".a['b", "at character 4: expected a closing quote"),
        (".a[0", "expected a comma or ], found the end"),
        (".a[100001]", "at character 4: the path is too large: indexes up to 100000 are allowed"),
        (".a[99999999999999999999]", "indexes up to 100000 are allowed"),
        (".a[0:3:-1]", "a slice that does not go forward is not supported"),
        (".a[0:3:0]", "a slice that does not go forward is not supported"),
        (".a[-]", "expected a digit"),
        (".a.", "expected a field name"),
        (".a..", "expected a name, * or [ after .."),
        ("...a", "expected a name, * or [ after .."),
        (".a b", "at character 4: expected a dot, a bracket or the end of the path, found 'b'"),
        (".é b", "at character 4: expected"),
        (".a]", "found ']'"),
        (".a\\", "expected a character after the backslash"),
    ] {
        let error = JsonPath::compile("conditions[1].jsonPath", path).expect_err(path).to_string();
        assert!(error.starts_with("conditions[1].jsonPath: at character "), "{error}");
        assert!(error.contains(message), "{path}: {error}");
    }
}

#[test]
fn the_text_is_bounded() {
    let padded = |length: usize| format!(".a{}", " ".repeat(length - 2));
    assert!(JsonPath::compile("f", &padded(MAX_SOURCE_BYTES)).is_ok());
    assert!(JsonPath::compile("f", &padded(MAX_SOURCE_BYTES + 1)).is_err());
    assert!(JsonPath::compile("f", &padded(MAX_SOURCE_BYTES * 100)).is_err());
    let steps = |count: usize| JsonPath::compile("f", &".a".repeat(count));
    assert!(steps(MAX_STEPS).is_ok());
    assert!(steps(MAX_STEPS + 1).is_err() && steps(MAX_STEPS * 100).is_err());
    let union = |count: usize| JsonPath::compile("f", &format!("[{}]", vec!["0"; count].join(",")));
    assert!(union(MAX_UNION).is_ok());
    assert!(union(MAX_UNION + 1).is_err() && union(MAX_UNION * 100).is_err());
    let index = |index: i64| JsonPath::compile("f", &format!("[{index}]"));
    assert!(index(MAX_INDEX).is_ok() && index(-MAX_INDEX).is_ok());
    assert!(
        index(MAX_INDEX + 1).is_err() && index(-MAX_INDEX - 1).is_err() && index(MAX_INDEX * 100).is_err()
    );
    assert!(JsonPath::compile("f", "[?(@.a[?(@.b==1)])]").is_ok());
    assert!(JsonPath::compile("f", "[?(@.a[?(@.b[?(@.c)])])]").is_err());
}

#[test]
fn what_a_path_may_find_and_look_at_is_bounded() {
    let many = |path: &str, length: usize| {
        let data = json!(vec![0; length]);
        JsonPath::compile("f", path).expect(path).find(&data).map(|found| found.len())
    };
    assert_eq!(many("[*]", MAX_RESULTS), Ok(MAX_RESULTS));
    assert!(many("[*]", MAX_RESULTS + 1).is_err());
    assert!(many("[*]", MAX_RESULTS * 100).is_err());
    assert_eq!(many("[?(@>0)]", MAX_RESULTS * 10), Ok(0));
    assert!(
        many("[?(@==$[?(@>0)])]", MAX_RESULTS).is_err(),
        "a filter that looks at everything for each element"
    );

    let doubling = "[0,0,0,0,0,0,0,0]".repeat(12);
    let mut nested = json!(1);
    for _ in 0..20 {
        nested = json!([nested]);
    }
    assert!(JsonPath::compile("f", &doubling).expect("compiles").find(&nested).is_err());
}

#[test]
fn deep_data_is_walked_without_the_stack() {
    let thread = std::thread::Builder::new().stack_size(256 << 10).spawn(|| {
        let mut deep = json!({"n": 1});
        for _ in 0..5000 {
            deep = Json::Object([("a".to_owned(), deep)].into_iter().collect());
        }
        let found = JsonPath::compile("f", "..n").expect("compiles").find(&deep).map(|found| found.len());
        // Dropping a value this deep would itself overflow a small stack.
        std::mem::forget(deep);
        found
    });
    assert_eq!(thread.expect("a thread").join().expect("no overflow"), Ok(1));
}

#[test]
fn it_is_known_beforehand_what_a_path_reads() {
    for (path, expected) in [
        (".status.phase", vec!["status.phase"]),
        (".status.conditions[?(@.type=='Ready')].status", vec!["status.conditions"]),
        (".items[?(@.t==$.status.wanted)].n", vec!["items", "status.wanted"]),
        (".items[?(@.x[?(@.y==$.spec.z)])].n", vec!["items", "spec.z"]),
        (".metadata.annotations.example\\.com/x", vec!["metadata.annotations.example.com/x"]),
        (".spec['a','b']", vec!["spec"]),
        (".spec..x", vec!["spec"]),
    ] {
        let reads = JsonPath::compile("f", path).expect(path).reads();
        assert!(!reads.whole, "{path}");
        let paths: Vec<String> = reads.paths.iter().map(|path| path.join(".")).collect();
        assert_eq!(paths, expected, "{path}");
    }
    for path in [".", "..x", "[*]", "[0].a", ".items[?(@.t==$..x)]"] {
        assert_eq!(JsonPath::compile("f", path).expect(path).reads(), Reads::everything(), "{path}");
    }
}
