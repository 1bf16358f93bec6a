//! What an expression can never exceed: its text, its depth, its lists, what it makes.

use linchpin_lang::answer::{Answer, NotYet};
use linchpin_lang::cel::{
    Bindings, EvaluateError, Expression, MAX_LIST_NESTED, MAX_LIST_SINGLE, MAX_SOURCE_BYTES,
};
use serde_json::{Value as Json, json};

use super::{compile, judge, judge_over};

#[test]
fn the_length_of_a_text_is_bounded() {
    let padded = |length: usize| format!("true{}", " ".repeat(length - 4));
    assert!(compile(&padded(MAX_SOURCE_BYTES)).is_ok());
    for length in [MAX_SOURCE_BYTES + 1, MAX_SOURCE_BYTES * 100] {
        let error = compile(&padded(length)).expect_err("too long").to_string();
        assert!(error.contains(&format!("the expression has {length} bytes; 1024 are allowed")), "{error}");
    }
}

/// Runs on half of the 2 MiB we promise, although tests are built without optimisation.
fn on_a_small_stack(body: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(1 << 20).spawn(body).expect("a thread");
    assert!(thread.join().is_ok());
}

#[test]
fn deep_texts_are_refused_and_never_overflow_the_stack() {
    on_a_small_stack(|| {
        for (part, end) in [
            ("1+", "1"),
            ("(", ")"),
            ("[", "]"),
            ("!", "true"),
            ("-", "1"),
            ("{1:", "}"),
            ("self.a.", "b"),
            ("true?", "1"),
            ("a.b", ""),
            ("!!(", ""),
            ("[[", ""),
            ("x.map(x,", ""),
            ("self[", ""),
            ("''+", "''"),
            ("1==", "1"),
            ("a||", "a"),
            ("self.?", "a"),
        ] {
            for count in [60, 70, 250, 300, 500, 1000] {
                let source: String = part.repeat(count).chars().take(1020).collect();
                let expression = Expression::compile("f", &format!("{source}{end}"), &["self", "a", "x"]);
                if let Ok(expression) = expression {
                    let _ = expression.evaluate(&Bindings::from([("self", &json!({"a": 1}))]));
                }
            }
        }
    });
    let brackets = |count: usize| format!("{}true{}", "(".repeat(count), ")".repeat(count));
    assert!(compile(&brackets(31)).is_ok());
    assert!(compile(&brackets(32)).expect_err("too deep").to_string().contains("32 levels are allowed"));
    let sum = |terms: usize| format!("{} == 1", vec!["1"; terms].join("+"));
    // The comparison is a level too, and so is a number.
    assert!(compile(&sum(63)).is_ok());
    assert!(compile(&sum(64)).expect_err("too deep").to_string().contains("nested too deeply"));
    assert!(compile(&sum(400)).expect_err("too deep").to_string().contains("nested too deeply"));
}

fn list(length: usize) -> Json {
    json!({"a": vec![1; length], "b": vec![1; length]})
}

fn is_too_large(answer: &Result<Answer, EvaluateError>) -> bool {
    matches!(answer, Ok(Answer::NotYet(NotYet::TooLarge { .. })))
}

#[test]
fn a_list_at_the_bound_is_judged_and_a_longer_one_is_undecided() {
    let single = "self.a.all(x, x == 1)";
    let nested = "self.a.all(x, self.b.all(y, x == y))";
    assert_eq!(judge_over(single, &list(MAX_LIST_SINGLE)), Ok(Answer::True));
    assert_eq!(judge_over(nested, &list(MAX_LIST_NESTED)), Ok(Answer::True));
    for times in [1, 100] {
        assert!(is_too_large(&judge_over(single, &list(MAX_LIST_SINGLE * times + 1))));
        assert!(is_too_large(&judge_over(nested, &list(MAX_LIST_NESTED * times + 1))));
    }
    let Ok(Answer::NotYet(reason)) = judge_over(single, &list(MAX_LIST_SINGLE + 1)) else {
        panic!("undecided")
    };
    assert_eq!(reason.to_string(), "too large to judge: self.a has more than 10000 elements");
}

#[test]
fn nothing_can_grow_beyond_its_bounds() {
    let doubled = |text: &str, times: usize| format!("['{text}']{}.size() == 1", ".map(x,x+x)".repeat(times));
    assert_eq!(judge(&doubled("a", 10)), Ok(Answer::True));
    assert!(is_too_large(&judge(&doubled("aaaaaaaaaaaaaaaa", 40))));
    assert!(is_too_large(&judge_over("self.a.map(x, self.a + self.a).size() > 0", &list(10_000))));
    assert!(is_too_large(&judge_over(
        "self.a.map(x, self.a).map(y, self.a).all(z, z == self.a)",
        &list(10_000)
    )));
    let long = json!({"a": vec!["x"; 10_000], "b": "y".repeat(1 << 20)});
    assert!(is_too_large(&judge_over("self.a.all(x, !self.b.contains('z'))", &long)));
    assert!(is_too_large(&judge_over("self.a.all(x, !self.b.matches('z(a|b)*c'))", &long)));
    let half = json!({"b": "y".repeat(1 << 16)});
    assert_eq!(
        judge_over("self.b.matches('y$')", &half),
        Ok(Answer::True),
        "a plain pattern over a long text"
    );
    assert!(is_too_large(&judge_over("self.b.matches('[^a]{99}z')", &long)), "a costly one");
    assert!(is_too_large(&judge_over("self.a.all(x, self.b == self.b)", &long)));
    assert!(is_too_large(&judge_over(
        "self.b.split('').size() > 1 && self.b.replace('', self.b) != ''",
        &long
    )));
}

#[test]
fn too_large_is_not_absorbed_by_what_comes_after_it() {
    assert!(is_too_large(&judge_over("self.a.all(x, x == 1) || true", &list(MAX_LIST_SINGLE + 1))));
    assert_eq!(judge_over("true || self.a.all(x, x == 1)", &list(MAX_LIST_SINGLE + 1)), Ok(Answer::True));
}
