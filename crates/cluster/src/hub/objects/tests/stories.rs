//! A wide watch and its task through stories that nobody thought of.
//!
//! A store in which three names come, change and go; a task that reads lists one object at a time and follows the
//! store's history, asking who is interested and reporting in two separate steps; readers who join and leave; a
//! connection that breaks; a narrow watch that is further or behind. After every step, whatever the watch shows of a
//! name must be what was in the store at the version that the watch says it is at: nothing older, nothing newer, and no
//! absence that was none; and of an object that is there, all must be kept that its reader reads.

use super::*;
use proptest::{collection::vec, prelude::*};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// In how many ways an object can be read.
const READS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// Somebody writes an object, or deletes it.
    Write(usize),
    Delete(usize),
    /// Somebody asks for a name, reading more or less of it, or stops asking.
    Join(usize, usize),
    Leave(usize, usize),
    /// The task goes on by one step, whatever it is doing.
    Work,
    /// The connection breaks, or the task begins to read everything anew.
    Lose,
    Restart,
    /// What a narrow watch has seen, so many versions ago, is offered.
    Offer(usize, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let (name, reads) = (0..NAMES.len(), 0..READS);
    prop_oneof![
        3 => name.clone().prop_map(Step::Write),
        2 => name.clone().prop_map(Step::Delete),
        4 => (name.clone(), reads.clone()).prop_map(|(name, reads)| Step::Join(name, reads)),
        2 => (name.clone(), reads).prop_map(|(name, reads)| Step::Leave(name, reads)),
        12 => Just(Step::Work),
        1 => Just(Step::Lose),
        1 => Just(Step::Restart),
        2 => (name, 0..4u64).prop_map(|(name, ago)| Step::Offer(name, ago)),
    ]
}

fn reader(name: &str, reads: usize) -> Want {
    let reads = [ReadSet::nothing(), ReadSet::dotted(["data"]), ReadSet::held_by("us")][reads].clone();
    want_more(name, reads)
}

/// What the task has in hand between asking who is interested and reporting.
#[derive(Clone, Debug)]
struct InHand {
    name: &'static str,
    version: u64,
    interest: Option<u64>,
    /// What the interest reads, by number.
    reads: Vec<usize>,
}

/// An object projected to what those read of it who are interested now: their numbers represent that.
fn take(watch: &Watching, name: &'static str, version: u64) -> InHand {
    let readers = watch.scope.readers(name);
    let reads = (0..READS).filter(|reads| readers.contains(&reader(name, *reads))).collect();
    InHand { name, version, interest: watch.scope.revision(name), reads }
}

fn project(taken: &InHand) -> Option<WatchItem> {
    let kept = Projection {
        kind: family().kind,
        namespace: family().namespace,
        name: taken.name.into(),
        uid: "u".into(),
        generation: 1,
        version: taken.version,
        deleting: false,
        content: taken.reads.clone().into(),
    };
    let (name, version) = (taken.name.into(), taken.version);
    Some(WatchItem { name, version, revision: taken.interest?, kept: Some(Arc::new(kept)), bytes: 1 })
}

#[derive(Debug)]
enum Task {
    /// Nothing yet, or sent to begin anew.
    Idle,
    Listing {
        at: u64,
        left: Vec<&'static str>,
        seen: Vec<InHand>,
    },
    Following {
        at: u64,
        in_hand: Option<InHand>,
        /// Whether the connection broke and the watch has not been notified yet that it has caught up.
        lost: bool,
    },
}

struct Story {
    /// What happened, in order: a name, and whether it is there since. The version is one more than the index.
    history: Vec<(&'static str, bool)>,
    watch: Watching,
    task: Task,
    readers: BTreeMap<Want, u64>,
    /// Where the store was when a name was first asked for.
    joined: BTreeMap<&'static str, u64>,
    reported_as_of: u64,
}

impl Story {
    fn new() -> Self {
        let watch = watching(WatchSelect::All);
        Self {
            history: Vec::new(),
            watch,
            task: Task::Idle,
            readers: BTreeMap::new(),
            joined: BTreeMap::new(),
            reported_as_of: 0,
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.history.len()).unwrap()
    }

    /// The version of an object at a version of the store, if it was there.
    fn truth(&self, name: &str, at: u64) -> Option<u64> {
        let past = &self.history[..usize::try_from(at).unwrap()];
        let last = past.iter().rposition(|(changed, _)| *changed == name)?;
        past[last].1.then(|| u64::try_from(last).unwrap() + 1)
    }

    fn note(taken: &InHand) -> WatchReport {
        let passed = || WatchReport::Passed { name: taken.name.into(), version: taken.version };
        project(taken).map_or_else(passed, WatchReport::Changed)
    }

    fn work(&mut self) {
        self.task = match std::mem::replace(&mut self.task, Task::Idle) {
            Task::Idle => {
                self.watch.apply(WatchReport::Looking);
                let at = self.now();
                let left = NAMES.into_iter().filter(|name| self.truth(name, at).is_some()).collect();
                Task::Listing { at, left, seen: Vec::new() }
            }
            Task::Listing { at, mut left, mut seen } => {
                if let Some(name) = left.pop() {
                    seen.push(take(&self.watch, name, self.truth(name, at).unwrap()));
                    Task::Listing { at, left, seen }
                } else {
                    let items = seen.iter().filter_map(project).collect();
                    let passed = seen.iter().filter(|taken| taken.interest.is_none());
                    let others = passed.map(|taken| taken.name.into()).collect();
                    self.watch.apply(WatchReport::Snapshot { items, others, as_of: at });
                    Task::Following { at, in_hand: None, lost: false }
                }
            }
            Task::Following { at, in_hand: Some(taken), lost } => {
                let note = Self::note(&taken);
                let in_hand = if self.watch.must_be_read_again(&note) {
                    Some(take(&self.watch, taken.name, taken.version))
                } else {
                    self.watch.apply(note);
                    None
                };
                Task::Following { at, in_hand, lost }
            }
            Task::Following { at, in_hand: None, lost } => {
                let (at, in_hand, lost) = match self.history.get(usize::try_from(at).unwrap()) {
                    Some((name, true)) => (at + 1, Some(take(&self.watch, name, at + 1)), lost),
                    Some((name, false)) => {
                        self.watch.apply(WatchReport::Gone { name: (*name).into(), version: at + 1 });
                        (at + 1, None, lost)
                    }
                    None => {
                        if lost {
                            self.watch.apply(WatchReport::Live);
                        }
                        (at, None, false)
                    }
                };
                Task::Following { at, in_hand, lost }
            }
        };
    }

    fn take_step(&mut self, step: Step) {
        match step {
            Step::Write(name) => self.history.push((NAMES[name], true)),
            Step::Delete(name) => {
                if self.truth(NAMES[name], self.now()).is_some() {
                    self.history.push((NAMES[name], false));
                }
            }
            Step::Join(name, reads) => {
                let want = reader(NAMES[name], reads);
                if self.watch.scope.revision(NAMES[name]).is_none() {
                    self.joined.insert(NAMES[name], self.now());
                }
                if !self.readers.contains_key(&want) {
                    let revision = self.watch.add(NAMES[name], &want);
                    self.readers.insert(want, revision);
                }
            }
            Step::Leave(name, reads) => {
                let want = reader(NAMES[name], reads);
                if self.readers.remove(&want).is_some() {
                    self.watch.remove(NAMES[name], &want);
                }
            }
            Step::Work => self.work(),
            Step::Lose => {
                // What is in hand when the connection breaks has been read already, and is reported.
                while matches!(self.task, Task::Following { in_hand: Some(_), .. }) {
                    self.work();
                }
                self.watch.apply(WatchNote::Lost);
                self.task = match std::mem::replace(&mut self.task, Task::Idle) {
                    Task::Following { at, .. } => Task::Following { at, in_hand: None, lost: true },
                    Task::Idle | Task::Listing { .. } => Task::Idle,
                };
            }
            Step::Restart => {
                while matches!(self.task, Task::Following { in_hand: Some(_), .. }) {
                    self.work();
                }
                self.task = Task::Idle;
            }
            Step::Offer(name, ago) => self.offer(NAMES[name], self.now().saturating_sub(ago)),
        }
    }

    /// A narrow watch begins to look when a name is asked for, and not before.
    fn offer(&mut self, name: &'static str, as_of: u64) {
        let as_of = as_of.max(self.joined.get(name).copied().unwrap_or_default());
        let mut narrow = watching(WatchSelect::Name(name.into()));
        for want in self.watch.scope.readers(name) {
            narrow.add(name, &want);
        }
        let item = self.truth(name, as_of).and_then(|version| project(&take(&narrow, name, version)));
        narrow.apply(snapshot(item.into_iter().collect(), as_of));
        // As the hub does: only what it does not know itself.
        if !self.watch.knows(name) {
            self.watch.adopt(name, &narrow);
        }
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        for (want, revision) in &self.readers {
            let name = want.object_ref().unwrap().name;
            let Some((version, as_of)) = seen(&self.watch, *revision, &name) else { continue };
            prop_assert_eq!(version, self.truth(&name, as_of), "{} as of {}", name, as_of);
            prop_assert!(
                as_of >= self.reported_as_of,
                "{} was reported before {}",
                self.reported_as_of,
                as_of
            );
            self.reported_as_of = as_of;
            let Some(Seen::Objects(view)) = self.watch.view(*revision, Some(&name)) else { continue };
            for reads in (1..READS).filter(|reads| *want == reader(&name, *reads)) {
                let kept = |item: &Arc<Projection>| item.content.as_array().unwrap().contains(&reads.into());
                prop_assert!(view.items.iter().all(kept), "{} lacks what is read of it", name);
            }
        }
        Ok(())
    }
}

proptest! {
    #[test]
    fn what_is_told_is_what_was_there_and_in_the_end_all_is_told(steps in vec(step(), 1..80)) {
        let mut story = Story::new();
        for step in steps {
            story.take_step(step);
            story.check()?;
        }
        story.take_step(Step::Lose);
        for _ in 0..200 {
            story.work();
            story.check()?;
        }
        // What is there and was passed over is all that can be missing; one more look shows it.
        let late = story.watch.latecomers();
        prop_assert!(late.iter().all(|name| story.truth(name, story.now()).is_some()), "{:?}", late);
        story.take_step(Step::Restart);
        for _ in 0..10 {
            story.work();
            story.check()?;
        }
        prop_assert!(story.watch.latecomers().is_empty());
        for (want, revision) in &story.readers {
            let name = want.object_ref().unwrap().name;
            prop_assert_eq!(seen(&story.watch, *revision, &name), Some((story.truth(&name, story.now()), story.now())));
        }
    }
}
