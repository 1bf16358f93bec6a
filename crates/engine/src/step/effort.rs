//! How much one step may evaluate, and what it need not evaluate again.
//!
//! What users write (expressions, conditions, templates) is evaluated over what was observed, and neither the number of
//! objects nor the price of an expression is ours to choose. So a step has a budget, [`limits::TURN_SHARE`], counted and
//! not timed: the same inputs give the same decision. While any of it is left, an evaluation is made as a whole; once
//! nothing is left, the rest is postponed to the next step. Answers are kept by what they depend on (an object's uid and
//! version, and the expression), so that the next step goes on where this one ended, and what has not changed is never
//! evaluated again. A few cheap answers are not kept: asking again costs less than keeping.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
};

use linchpin_words::{Text, hash::Fnv, limits};

/// An answer that took no more steps than this is cheap.
const CHEAP: u64 = 256;
/// So many cheap answers of one step are not kept. All of them together take a small part of the budget.
const FEW: u32 = 64;

/// Answers of earlier steps to what has not changed since. Volatile, and never more than one step used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Verdicts(Option<Box<KeptVerdicts>>);

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct KeptVerdicts {
    /// Changes with each step: what a step did not use has the mark of an earlier one.
    round: bool,
    used: usize,
    answers: BTreeMap<u64, (u64, bool)>,
    /// Why, for the few that are reported.
    words: BTreeMap<u64, Text>,
}

impl Verdicts {
    /// How many answers are kept.
    pub fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |kept| kept.answers.len())
    }

    /// Whether none is kept.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn begin(&mut self) {
        if let Some(kept) = &mut self.0 {
            kept.round = !kept.round;
            kept.used = 0;
        }
    }

    fn get(&mut self, key: u64) -> Option<u64> {
        let kept = self.0.as_mut()?;
        let (answer, round) = kept.answers.get_mut(&key)?;
        if *round != kept.round {
            *round = kept.round;
            kept.used += 1;
        }
        Some(*answer)
    }

    fn put(&mut self, key: u64, answer: u64) {
        let kept = self.0.get_or_insert_default();
        let before = kept.answers.insert(key, (answer, kept.round));
        if before.is_none_or(|(_, round)| round != kept.round) {
            kept.used += 1;
        }
    }

    /// Forgets what was not used: objects that have gone or changed, expressions that are no longer there.
    fn end(&mut self) {
        let Some(kept) = &mut self.0 else { return };
        if kept.used < kept.answers.len() {
            let KeptVerdicts { round, answers, words, .. } = kept.as_mut();
            answers.retain(|_, (_, used)| used == round);
            words.retain(|key, _| answers.contains_key(key));
        }
        if kept.answers.is_empty() {
            self.0 = None;
        }
    }
}

/// What one step has to spend.
pub(in crate::step) struct Effort {
    spent: Cell<u64>,
    /// What rendering may still take once nothing is left, so that what is long to evaluate delays nothing that is ready.
    reserve: Cell<u64>,
    /// What finding words takes, of objects that say themselves what is wrong: beside the rest, as words are not kept.
    words: Cell<u64>,
    objects: Cell<usize>,
    evaluations: Cell<u32>,
    postponed: Cell<bool>,
    verdicts: RefCell<Verdicts>,
    /// What each dependency of the plan showed in this step, as one number.
    marks: RefCell<BTreeMap<usize, u64>>,
}

impl Effort {
    /// A whole budget, and what earlier steps found.
    pub(in crate::step) fn new(mut verdicts: Verdicts) -> Self {
        verdicts.begin();
        Self {
            spent: Cell::new(0),
            reserve: Cell::new(limits::TURN_SHARE / 4),
            words: Cell::new(limits::TURN_SHARE / 4),
            objects: Cell::new(limits::TURN_OBJECTS),
            evaluations: Cell::new(0),
            postponed: Cell::new(false),
            verdicts: RefCell::new(verdicts),
            marks: RefCell::default(),
        }
    }

    /// Whether so many more objects may be looked at. If not, no later step can do it either.
    pub(in crate::step) fn looks_at(&self, objects: usize) -> bool {
        let left = self.objects.get().checked_sub(objects);
        self.objects.set(left.unwrap_or(self.objects.get()));
        left.is_some()
    }

    /// The answer to the question of `key`: the one that is kept, or that of `evaluate`, which says what it took. None
    /// if it is postponed. Answers about one of `many` objects are always kept.
    pub(in crate::step) fn answer(
        &self,
        many: bool,
        key: impl Fn() -> u64,
        evaluate: impl FnOnce(&mut u64) -> u64,
    ) -> Option<u64> {
        let always = many || self.evaluations.get() >= FEW;
        let asked = (always || !self.verdicts.borrow().is_empty()).then(&key);
        if let Some(kept) = asked.and_then(|key| self.verdicts.borrow_mut().get(key)) {
            return Some(kept);
        }
        if !self.may_go_on() {
            return None;
        }
        let mut spent = 1;
        let answer = evaluate(&mut spent);
        self.spend(spent);
        self.evaluations.set(self.evaluations.get() + 1);
        if always || spent > CHEAP {
            self.verdicts.borrow_mut().put(asked.unwrap_or_else(key), answer);
        }
        Some(answer)
    }

    /// The answer that is kept for `key`.
    pub(in crate::step) fn kept(&self, key: impl FnOnce() -> u64) -> Option<u64> {
        let mut verdicts = self.verdicts.borrow_mut();
        if verdicts.is_empty() { None } else { verdicts.get(key()) }
    }

    /// Keeps an answer that took so many steps, unless it is one of a few cheap ones; then with words.
    pub(in crate::step) fn keep(&self, key: impl FnOnce() -> u64, answer: u64, spent: u64, words: &Text) {
        self.evaluations.set(self.evaluations.get() + 1);
        if spent > CHEAP || self.evaluations.get() > FEW {
            let key = key();
            self.verdicts.borrow_mut().put(key, answer);
            self.keep_words(key, words);
        }
    }

    /// Whether anything is left for one more evaluation; if not, this step has postponed something.
    pub(in crate::step) fn may_go_on(&self) -> bool {
        let left = self.spent.get() < limits::TURN_SHARE;
        self.postponed.set(self.postponed.get() || !left);
        left
    }

    /// Whether anything is left to render one more action; if not, this step has postponed something.
    pub(in crate::step) fn may_render(&self) -> bool {
        self.reserve.get() > 0 || self.may_go_on()
    }

    /// Takes what rendering took.
    pub(in crate::step) fn rendered(&self, steps: u64) {
        if self.spent.get() >= limits::TURN_SHARE {
            self.reserve.set(self.reserve.get().saturating_sub(steps));
        }
        self.spend(steps);
    }

    /// Takes what an evaluation took.
    pub(in crate::step) fn spend(&self, steps: u64) {
        self.spent.set(self.spent.get().saturating_add(steps));
    }

    /// Whether anything is left for finding words.
    pub(in crate::step) fn may_say(&self) -> bool {
        self.words.get() > 0
    }

    /// Takes what finding words took.
    pub(in crate::step) fn say(&self, steps: u64) {
        self.words.set(self.words.get().saturating_sub(steps));
    }

    /// The words that go with an answer that is kept.
    pub(in crate::step) fn words(&self, key: u64) -> Option<Text> {
        self.verdicts.borrow().0.as_ref()?.words.get(&key).cloned()
    }

    /// Keeps words with an answer that is kept.
    pub(in crate::step) fn keep_words(&self, key: u64, words: &Text) {
        if let Some(kept) = &mut self.verdicts.borrow_mut().0
            && kept.answers.contains_key(&key)
        {
            kept.words.insert(key, words.clone());
        }
    }

    /// What a dependency shows in this step, as one number: found once.
    pub(in crate::step) fn mark(&self, position: usize, find: impl FnOnce() -> u64) -> u64 {
        if let Some(mark) = self.marks.borrow().get(&position) {
            return *mark;
        }
        let mark = find();
        self.marks.borrow_mut().insert(position, mark);
        mark
    }

    /// What was spent so far.
    pub(in crate::step) fn spent(&self) -> u64 {
        self.spent.get()
    }

    /// What is kept, and whether something was postponed.
    pub(in crate::step) fn end(self) -> (Verdicts, bool) {
        let mut verdicts = self.verdicts.into_inner();
        verdicts.end();
        (verdicts, self.postponed.get())
    }
}

/// A hash of everything put into it.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::step) struct Key(Fnv);

impl Key {
    pub(in crate::step) fn text(mut self, text: &str) -> Self {
        std::hash::Hasher::write(&mut self.0, text.as_bytes());
        self.number(text.len() as u64)
    }

    pub(in crate::step) fn number(mut self, number: u64) -> Self {
        std::hash::Hasher::write(&mut self.0, &number.to_le_bytes());
        self
    }

    pub(in crate::step) fn get(self) -> u64 {
        std::hash::Hasher::finish(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evaluate(effort: &Effort, many: bool, key: u64, price: u64) -> Option<u64> {
        effort.answer(
            many,
            || key,
            |spent| {
                *spent += price;
                key * 2
            },
        )
    }

    #[test]
    fn what_is_beyond_the_budget_is_postponed_and_goes_on_in_the_next_step() {
        let (mut verdicts, mut steps, mut evaluated) = (Verdicts::default(), 0, 0);
        loop {
            let effort = Effort::new(verdicts);
            let answers: Vec<Option<u64>> =
                (0..40).map(|key| evaluate(&effort, true, key, limits::TURN_SHARE / 10)).collect();
            let (kept, postponed) = effort.end();
            steps += 1;
            assert!(kept.len() > evaluated && kept.len() - evaluated <= 10, "{}", kept.len());
            evaluated = kept.len();
            assert_eq!(postponed, answers.contains(&None));
            verdicts = kept;
            if !postponed {
                assert!((0..40).all(|key| answers[usize::try_from(key).unwrap()] == Some(key * 2)));
                break;
            }
        }
        assert!((4..=5).contains(&steps), "{steps}");
    }

    #[test]
    fn what_is_not_asked_for_any_more_is_forgotten() {
        let effort = Effort::new(Verdicts::default());
        assert!((0..100).all(|key| evaluate(&effort, true, key, 1).is_some()));
        let effort = Effort::new(effort.end().0);
        assert!((50..60).all(|key| evaluate(&effort, true, key, limits::TURN_SHARE).is_some()));
        assert_eq!(effort.spent(), 0, "they are kept");
        let (verdicts, _) = effort.end();
        assert_eq!(verdicts.len(), 10);
        assert!(Effort::new(verdicts).end().0.is_empty());
    }

    #[test]
    fn a_few_cheap_answers_are_not_kept_and_dear_ones_are() {
        let effort = Effort::new(Verdicts::default());
        assert!((0..u64::from(FEW)).all(|key| evaluate(&effort, false, key, CHEAP / 2).is_some()));
        assert!(effort.verdicts.borrow().is_empty());
        evaluate(&effort, false, 100, 1);
        assert_eq!(effort.end().0.len(), 1, "not one of the few");
        let effort = Effort::new(Verdicts::default());
        evaluate(&effort, false, 100, CHEAP);
        assert_eq!(effort.end().0.len(), 1, "dear");
    }
}
