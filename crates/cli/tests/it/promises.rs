//! What a document promises, and the tests that hold us to it: a test that is renamed or taken away is missed.

use std::{collections::BTreeMap, fs, path::Path};

/// Whether every promise of a table names tests, each by a word of `files` and its name, that are there.
pub(crate) fn are_held(files: &[(&str, &str)], promises: &[(&str, &[&str])]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = |path: &str| {
        fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path} of the table: {error}"))
    };
    let texts: BTreeMap<&str, String> = files.iter().map(|(word, path)| (*word, text(path))).collect();
    for (promise, tests) in promises {
        assert!(!tests.is_empty(), "nobody tries: {promise}");
        for test in *tests {
            let (file, name) = test.split_once("::").unwrap();
            let text = texts.get(file).unwrap_or_else(|| panic!("{file} is no file of the table"));
            assert!(text.contains(&format!("fn {name}(")), "{promise:?}: there is no {test}");
        }
    }
}
