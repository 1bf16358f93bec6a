//! What users say about objects, conditions, expressions and profiles, evaluated within the budget of the step.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::Arc,
};

use linchpin_lang::{
    answer::{Answer as LangAnswer, NotYet},
    cel::Expression,
    compare::FieldCondition,
};
use linchpin_words::Text;
use serde_json::Value;

use crate::{
    contract::{Projection, names_instead},
    plan::{BoundExpression, Clauses, Profile, Test},
    readiness::{self, RuleAnswer, RuleWords},
    step::effort::{Effort, Key},
};

/// What must hold of an object, all of it together.
#[derive(Clone, Copy)]
pub(super) struct ClauseSet<'a> {
    conditions: &'a [Arc<FieldCondition>],
    cel: Option<&'a Expression>,
    bound: Option<&'a BoundExpression>,
}

/// How it turned out.
pub(super) enum ClauseResult {
    Holds,
    Fails {
        /// Why; none where that was reported before, and is not kept for all of many objects.
        why: Option<Text>,
        /// In which way.
        how: Failing,
    },
    /// It was not evaluated: the next step goes on.
    Postponed,
}

/// In which way clauses do not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failing {
    /// They are disproved.
    Disproved,
    /// What they read is not there yet.
    NotYet,
    /// One evaluation takes more than a step may.
    Over,
    /// They do not fit what they read.
    Wrong,
}

/// The answers that are kept: that clauses hold, or in which way they do not.
const HOLDS: u64 = 0;
const WAYS: [Failing; 4] = [Failing::Disproved, Failing::Over, Failing::NotYet, Failing::Wrong];

impl Failing {
    fn as_answer(self) -> u64 {
        WAYS.iter()
            .zip(HOLDS + 1..)
            .find_map(|(way, answer)| (*way == self).then_some(answer))
            .unwrap_or(HOLDS + 1)
    }

    fn from_answer(answer: u64) -> Self {
        WAYS.into_iter()
            .zip(HOLDS + 1..)
            .find_map(|(way, known)| (known == answer).then_some(way))
            .unwrap_or(Self::Disproved)
    }
}

impl<'a> ClauseSet<'a> {
    pub(super) fn by_test(test: &'a Test) -> Self {
        Self { conditions: &test.conditions, cel: test.cel.as_deref(), bound: test.bound.as_deref() }
    }

    fn by_profile(clauses: &'a Clauses) -> Self {
        Self { conditions: &clauses.conditions, cel: clauses.cel.as_deref(), bound: None }
    }

    /// A hash of this question about one version of an object.
    pub(super) fn key(&self, item: &Projection) -> u64 {
        self.about(Key::default().text(&item.uid).number(item.version))
    }

    fn about(&self, subject: Key) -> u64 {
        let asked = self.conditions.iter().map(|condition| condition.fingerprint());
        let asked = asked.chain(self.cel.map(Expression::fingerprint));
        let asked = asked.chain(self.bound.map(|bound| bound.fingerprint));
        asked.fold(subject.number(self.conditions.len() as u64), Key::number).get()
    }

    /// Judges one version of an object, one of `many` perhaps.
    pub(super) fn rule(&self, item: &Projection, many: bool, effort: &Effort) -> ClauseResult {
        let detail = if many { Detail::Nothing } else { Detail::of(item) };
        self.rule_on(&item.content, || self.key(item), detail, effort)
    }

    /// Judges something that is always the same under the same name.
    pub(super) fn rule_on_named(&self, object: &Value, name: &str, effort: &Effort) -> ClauseResult {
        self.rule_on(object, || self.about(Key::default().text(name)), Detail::Values, effort)
    }

    fn rule_on(
        &self,
        object: &Value,
        key: impl Fn() -> u64,
        detail: Detail,
        effort: &Effort,
    ) -> ClauseResult {
        if self.conditions.is_empty() && self.cel.is_none() && self.bound.is_none() {
            return ClauseResult::Holds;
        }
        let many = detail == Detail::Nothing;
        let mut said = None;
        let answer = effort.answer(many, &key, |spent| match self.fault(object, detail, spent) {
            None => HOLDS,
            Some(Fault { why, how }) => {
                said = why.map(Text::from);
                how.as_answer()
            }
        });
        match (answer, said) {
            (None, _) => ClauseResult::Postponed,
            (Some(HOLDS), _) => ClauseResult::Holds,
            (Some(answer), Some(why)) => {
                if !many {
                    effort.keep_words(key(), &why);
                }
                ClauseResult::Fails { why: Some(why), how: Failing::from_answer(answer) }
            }
            (Some(answer), None) => {
                ClauseResult::Fails { why: effort.words(key()), how: Failing::from_answer(answer) }
            }
        }
    }

    /// Why it does not hold of an object of which only that is kept; none if that has to wait for the next step.
    pub(super) fn why(&self, item: &Projection, effort: &Effort) -> Option<Text> {
        if !effort.may_go_on() {
            return None;
        }
        let mut spent = 1;
        let fault = self.fault(&item.content, Detail::of(item), &mut spent);
        effort.spend(spent);
        fault?.why.map(Text::from)
    }

    /// What does not hold, if anything.
    fn fault(&self, object: &Value, detail: Detail, spent: &mut u64) -> Option<Fault> {
        let disproved = |explain: &mut dyn FnMut(bool) -> String| match detail {
            Detail::Nothing => Fault { why: None, how: Failing::Disproved },
            Detail::Wanted => Fault { why: Some(explain(false)), how: Failing::Disproved },
            Detail::Values => Fault { why: Some(explain(true)), how: Failing::Disproved },
        };
        for condition in self.conditions {
            match condition.evaluate_counted(object, spent) {
                Ok(LangAnswer::True) => {}
                Ok(LangAnswer::False) => {
                    return Some(disproved(&mut |values| condition.explain(object, values, spent)));
                }
                Ok(LangAnswer::NotYet(why)) => {
                    let mut fault = Fault::not_yet(&why);
                    if let Some(why) = fault.why.as_mut().filter(|_| detail == Detail::Values) {
                        why.push_str(&names_in_place(condition, object));
                    }
                    return Some(fault);
                }
                Err(error) => return Some(Fault::wrong(error.to_string())),
            }
        }
        let mut judge = |cel: &Expression, bindings: BTreeMap<&str, &Value>| match cel
            .evaluate_counted(&bindings, spent)
        {
            Ok(LangAnswer::True) => None,
            Ok(LangAnswer::False) => Some(disproved(&mut |values| cel.explain(&bindings, values, spent))),
            Ok(LangAnswer::NotYet(why)) => Some(Fault::not_yet(&why)),
            Err(error) => Some(Fault::wrong(error.to_string())),
        };
        let own = self.cel.and_then(|cel| judge(cel, BTreeMap::from([("self", object)])));
        own.or_else(|| {
            let bound = self.bound?;
            let dep = bound.dep(object);
            judge(&bound.cel, BTreeMap::from([("dep", &*dep), ("self", &bound.constant)]))
        })
    }
}

/// Which keys there are instead of one that a condition reads.
fn names_in_place(condition: &FieldCondition, object: &Value) -> String {
    let lists = condition.reads().paths.into_iter().map(|path| names_instead(object, &path));
    lists.into_iter().find(|names| !names.is_empty()).unwrap_or_default()
}

/// How much is reported of what does not hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Nothing: it is one of many.
    Nothing,
    /// What is wanted, but no value of the object.
    Wanted,
    /// What is wanted and what is there.
    Values,
}

impl Detail {
    /// What may be reported of an object: nothing that a Secret holds.
    fn of(item: &Projection) -> Self {
        if item.is_secret() { Self::Wanted } else { Self::Values }
    }
}

struct Fault {
    /// Why; none where it is not reported.
    why: Option<String>,
    how: Failing,
}

impl Fault {
    fn wrong(why: String) -> Self {
        Self { why: Some(why), how: Failing::Wrong }
    }

    fn not_yet(why: &NotYet) -> Self {
        let over = matches!(why, NotYet::TooLarge { .. });
        Self { why: Some(why.to_string()), how: if over { Failing::Over } else { Failing::NotYet } }
    }
}

/// A profile of the cluster's, as the readiness table asks it about one object.
pub(super) struct AppliedProfile<'a> {
    pub(super) profile: &'a Profile,
    pub(super) item: Option<&'a Projection>,
    pub(super) many: bool,
    pub(super) effort: &'a Effort,
    /// Whether something was postponed, so that what the table says does not count.
    pub(super) postponed: Cell<bool>,
    /// Why the clauses that were asked last do not hold.
    pub(super) why: RefCell<Option<Text>>,
}

impl AppliedProfile<'_> {
    fn holds(&self, clauses: &Clauses) -> RuleAnswer {
        let Some(item) = self.item else { return RuleAnswer::Unknown };
        match ClauseSet::by_profile(clauses).rule(item, self.many, self.effort) {
            ClauseResult::Holds => RuleAnswer::True,
            ClauseResult::Fails { why, how } => {
                self.why.replace(why);
                match how {
                    Failing::Disproved => RuleAnswer::False,
                    Failing::NotYet | Failing::Over => RuleAnswer::Unknown,
                    Failing::Wrong => RuleAnswer::Wrong,
                }
            }
            ClauseResult::Postponed => {
                self.postponed.set(true);
                RuleAnswer::Unknown
            }
        }
    }
}

impl readiness::TaughtRule for AppliedProfile<'_> {
    fn knows_ready(&self) -> bool {
        self.profile.ready_when.cel.is_some() || !self.profile.ready_when.conditions.is_empty()
    }

    fn ready(&self, _: &Value) -> RuleAnswer {
        self.holds(&self.profile.ready_when)
    }

    fn failed(&self, _: &Value) -> RuleAnswer {
        self.profile.failed_when.as_ref().map_or(RuleAnswer::False, |clauses| self.holds(clauses))
    }

    fn words(&self) -> Option<&RuleWords> {
        self.profile.words.as_ref()
    }

    fn why_not(&self) -> Option<String> {
        self.why.borrow().as_ref().map(ToString::to_string)
    }

    fn says(&self, object: &Value) -> Option<String> {
        let path = self.profile.says.as_ref()?;
        let mut spent = 0;
        let found = self.effort.may_say().then(|| path.find_counted(object, &mut spent));
        self.effort.say(spent);
        let found = found?.ok()?;
        found.first().and_then(|words| words.as_str()).filter(|words| !words.is_empty()).map(str::to_owned)
    }
}
