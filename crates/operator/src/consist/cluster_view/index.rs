//! Who concerns whom, found by what objects carry instead of by asking everybody of a namespace.
//!
//! An employee is found by its labels, its protection finalizers and the employers in its entries; an employer by one label
//! of its selector (the rarest), by the names that it selects, by its finalizers and its key. Words are kept as hashes with
//! a key of this process: two may meet in one, so everything that is found is judged once more.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    hash::{BuildHasher as _, Hash, RandomState},
    sync::Arc,
};

use linchpin_consist::{
    EmployeeSelection, PodView,
    marks::{key as entry_key, protects},
    settle::EmployerView,
};

use super::{ClusterView, EmployerKey};
use crate::consist::crew::{AdapterWorkers, ReadEmployer, Worker};

/// An employee: the number of its kind, its namespace, its name.
pub(super) type EmployeeKey = (usize, String, String);

/// Something that an object carries.
#[derive(Clone, Copy, Hash)]
enum Word<'a> {
    Label(&'a str, &'a str),
    Name(&'a str),
    Finalizer(&'a str),
    /// An employer, by its key.
    Employer(&'a str),
    /// More than [`WORDS`] words: looked at for every employer instead.
    Crowded,
}

/// The most words that an employee is found by. Each costs a set of its own, and labels are anybody's.
const WORDS: usize = 256;

/// Objects by their words.
#[derive(Default)]
pub(super) struct WordIndex<T> {
    hasher: RandomState,
    by_word: HashMap<u64, BTreeSet<T>>,
    words: BTreeMap<T, BTreeSet<u64>>,
}

impl<T: Ord + Clone> WordIndex<T> {
    /// A word about employees of a kind in a namespace.
    fn word(&self, kind: usize, namespace: &str, word: Word<'_>) -> u64 {
        self.hasher.hash_one((kind, namespace, word))
    }

    /// Who carries a word, and who else has the same hash.
    fn carriers(&self, word: u64) -> impl Iterator<Item = &T> {
        self.by_word.get(&word).into_iter().flatten()
    }

    fn count(&self, word: u64) -> usize {
        self.by_word.get(&word).map_or(0, BTreeSet::len)
    }

    /// Says what an object carries now, instead of what it did before.
    fn put(&mut self, of: T, words: BTreeSet<u64>) {
        let before = self.words.remove(&of).unwrap_or_default();
        for old in before.difference(&words) {
            self.forget(*old, &of);
        }
        for new in words.difference(&before) {
            self.by_word.entry(*new).or_default().insert(of.clone());
        }
        if !words.is_empty() {
            self.words.insert(of, words);
        }
    }

    /// An object is gone.
    pub(super) fn take(&mut self, of: &T) {
        for old in self.words.remove(of).unwrap_or_default() {
            self.forget(old, of);
        }
    }

    fn forget(&mut self, word: u64, of: &T) {
        if let Some(carriers) = self.by_word.get_mut(&word) {
            carriers.remove(of);
            if carriers.is_empty() {
                self.by_word.remove(&word);
            }
        }
    }
}

impl ClusterView {
    /// Who is at work from now on: what they make of employers is what these are found by.
    pub(super) fn employ(&mut self, crew: Arc<AdapterWorkers>) {
        self.crew = crew;
        let all: Vec<_> =
            self.employers.iter().map(|(key, employer)| (key.clone(), Arc::clone(employer))).collect();
        for (key, employer) in all {
            self.index_employer(key, &employer);
        }
    }

    pub(super) fn index_employer(&mut self, key: EmployerKey, employer: &EmployerView) {
        let mut words = BTreeSet::new();
        let index = &self.employers_by;
        for worker in self.crew.workers().filter(|worker| worker.employer == key.0) {
            let read = worker.read(employer);
            let word = |word: Word<'_>| index.word(worker.employee, &key.1, word);
            match &read.selection {
                EmployeeSelection::Labels(labels) => {
                    let labels = labels.iter().map(|(name, value)| word(Word::Label(name, value)));
                    words.extend(labels.min_by_key(|word| index.count(*word)));
                }
                EmployeeSelection::Names(names) => {
                    words.extend(names.iter().map(|name| word(Word::Name(name))));
                }
                EmployeeSelection::Nothing => {}
            }
            words.insert(word(Word::Finalizer(&read.finalizers.written)));
            words.insert(word(Word::Finalizer(&read.finalizers.other)));
            words.insert(word(Word::Employer(&entry_key(&employer.kind.kind, &key.1, &employer.name))));
        }
        self.employers_by.put(key, words);
    }

    pub(super) fn index_employee(&mut self, key: EmployeeKey, view: &PodView) {
        let index = &self.employees_by;
        let word = |word: Word<'_>| index.word(key.0, &key.1, word);
        let entries = view.entries().keys();
        let mut words = BTreeSet::new();
        if view.labels.len() + view.finalizers.len() + entries.len() > WORDS {
            words.insert(word(Word::Crowded));
        } else {
            words.extend(view.labels.iter().map(|(name, value)| word(Word::Label(name, value))));
            let protections = view.finalizers.iter().filter(|finalizer| protects(finalizer));
            words.extend(protections.map(|finalizer| word(Word::Finalizer(finalizer))));
            words.extend(entries.iter().map(|employer| word(Word::Employer(employer))));
        }
        self.employees_by.put(key, words);
    }

    /// The employers that select an employee of a kind, whichever adapter is asked.
    pub(in crate::consist) fn selecting(
        &self,
        kind: usize,
        namespace: &str,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> Vec<&Arc<EmployerView>> {
        let selects = |_: &EmployerView, read: &ReadEmployer| read.selection.selects(name, labels);
        let found = self.judged(kind, namespace, self.by_selection(kind, namespace, name, labels), selects);
        found.into_iter().filter_map(|key| self.employers.get(key)).collect()
    }

    /// The employers that an employee of a kind concerns: they select it, or it carries a mark of theirs.
    pub(in crate::consist) fn concerned(
        &self,
        kind: usize,
        namespace: &str,
        view: &PodView,
    ) -> Vec<&EmployerKey> {
        let index = &self.employers_by;
        let word = |word: Word<'_>| index.carriers(index.word(kind, namespace, word));
        let marks = view.entries().keys();
        let mut found = self.by_selection(kind, namespace, &view.name, &view.labels);
        let protections = view.finalizers.iter().filter(|finalizer| protects(finalizer));
        found.extend(protections.flat_map(|finalizer| word(Word::Finalizer(finalizer))));
        found.extend(marks.iter().flat_map(|employer| word(Word::Employer(employer))));
        let concerned = |employer: &EmployerView, read: &ReadEmployer| {
            read.selection.selects(&view.name, &view.labels)
                || view.finalizers.iter().any(|finalizer| read.finalizers.has(finalizer))
                || marks.contains(&entry_key(&employer.kind.kind, namespace, &employer.name))
        };
        self.judged(kind, namespace, found, concerned)
    }

    /// Who may select an employee.
    fn by_selection(
        &self,
        kind: usize,
        namespace: &str,
        name: &str,
        labels: &BTreeMap<String, String>,
    ) -> BTreeSet<&EmployerKey> {
        let index = &self.employers_by;
        let word = |word: Word<'_>| index.carriers(index.word(kind, namespace, word));
        let labels = labels.iter().flat_map(|(name, value)| word(Word::Label(name, value)));
        labels.chain(word(Word::Name(name))).collect()
    }

    /// Those of which an adapter for employees of this kind says so.
    fn judged<'a>(
        &'a self,
        kind: usize,
        namespace: &str,
        found: BTreeSet<&'a EmployerKey>,
        says: impl Fn(&EmployerView, &ReadEmployer) -> bool,
    ) -> Vec<&'a EmployerKey> {
        let is_so = |key: &&EmployerKey| {
            let Some(employer) = self.employers.get(*key).filter(|_| key.1 == namespace) else {
                return false;
            };
            let mut workers =
                self.crew.workers().filter(|worker| worker.employer == key.0 && worker.employee == kind);
            workers.any(|worker| says(employer, &worker.read(employer)))
        };
        found.into_iter().filter(is_so).collect()
    }

    /// The employees that matter for an employer: it selects them, or they carry a mark of it.
    pub(in crate::consist) fn employees_of(
        &self,
        worker: &Worker,
        employer: &EmployerView,
        read: &ReadEmployer,
    ) -> Vec<Arc<PodView>> {
        let (kind, namespace) = (worker.employee, employer.namespace.as_str());
        let key = entry_key(&employer.kind.kind, namespace, &employer.name);
        let index = &self.employees_by;
        let word = |word: Word<'_>| index.word(kind, namespace, word);
        let mut words = vec![
            word(Word::Finalizer(&read.finalizers.written)),
            word(Word::Finalizer(&read.finalizers.other)),
            word(Word::Employer(&key)),
            word(Word::Crowded),
        ];
        if let EmployeeSelection::Labels(labels) = &read.selection {
            let labels = labels.iter().map(|(name, value)| word(Word::Label(name, value)));
            words.extend(labels.min_by_key(|word| index.count(*word)));
        }
        let carriers = words.into_iter().flat_map(|word| index.carriers(word));
        let carriers = carriers.filter(|(of, place, _)| *of == kind && place == namespace);
        let mut names: BTreeSet<&str> = carriers.map(|(_, _, name)| name.as_str()).collect();
        if let EmployeeSelection::Names(selected) = &read.selection {
            names.extend(selected.iter().map(String::as_str));
        }
        let Some(here) = self.employees.get(&(kind, namespace.to_owned())) else { return Vec::new() };
        let matters = |view: &&Arc<PodView>| {
            read.selection.selects(&view.name, &view.labels)
                || view.finalizers.iter().any(|finalizer| read.finalizers.has(finalizer))
                || view.mentions(&key)
        };
        names.into_iter().filter_map(|name| here.get(name)).filter(matters).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
