//! Every case of the corpus must come out as Go and sprig rendered it.

use linchpin_lang::template::Template;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::clock;

#[derive(Deserialize)]
struct Corpus {
    data: Map<String, Value>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    data: String,
    template: String,
    output: Option<String>,
    #[serde(default)]
    error: String,
}

#[test]
fn every_case_renders_as_go_renders_it() {
    let corpus: Corpus = serde_json::from_str(include_str!("../../../corpus/template/cases.json")).unwrap();
    let mut differences = Vec::new();
    for case in &corpus.cases {
        let rendered =
            Template::parse("case", &case.template).map_err(|error| error.to_string()).and_then(|template| {
                let rendered = template.render(&corpus.data[&case.data], &clock());
                rendered.map(|rendered| rendered.text).map_err(|error| error.to_string())
            });
        let same = match (&case.output, &rendered) {
            (Some(expected), Ok(text)) => expected == text,
            (None, Err(_)) => true,
            _ => false,
        };
        if !same {
            differences.push(format!(
                "{}: {:?}\n    Go:   {:?} {}\n    ours: {rendered:?}",
                case.name, case.template, case.output, case.error
            ));
        }
    }
    println!("{} cases, {} differences", corpus.cases.len(), differences.len());
    assert!(corpus.cases.len() >= 400, "the corpus shrank to {} cases", corpus.cases.len());
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), differences.join("\n"));
}
